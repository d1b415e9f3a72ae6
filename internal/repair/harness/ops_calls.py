"""Operators on calls, methods, strings and exceptions."""
import ast
import builtins
import difflib
import re

from .site import arguments, class_members, stored
from .source import paren

CALLEES = [("min", "max", .8), ("any", "all", .9), ("sum", "max", 1.6), ("sum", "len", 1.4), ("ceil", "floor", .9),
           ("round", "int", 1.3), ("int", "float", 1.2), ("sorted", "list", 1.5), ("sorted", "reversed", 1.4),
           ("list", "set", 1.4), ("list", "tuple", 1.5), ("str", "repr", 1.3), ("sin", "cos", 1.1), ("range", "enumerate", 1.5),
           ("log", "log10", 1.3), ("log", "log2", 1.3), ("ord", "chr", 1.1), ("set", "sorted", 1.7), ("zip", "zip_longest", 1.8),
           ("heappush", "heappop", 1.4), ("nlargest", "nsmallest", .9), ("bisect_left", "bisect_right", .9),
           ("combinations", "permutations", 1.0), ("len", "max", 1.9), ("dict", "list", 1.8), ("isinstance", "issubclass", 1.4),
           ("filter", "map", 1.5), ("sum", "min", 1.8), ("mean", "median", 1.0), ("dumps", "loads", 1.0),
           ("getattr", "hasattr", 1.4), ("sqrt", "isqrt", 1.2), ("math.ceil", "math.floor", .9), ("ceil", "round", 1.3),
           ("floor", "round", 1.3), ("str", "int", 1.6), ("abs", "int", 1.9), ("bin", "hex", 1.3), ("print", "return", 9),
           ("combinations", "product", 1.3), ("permutations", "product", 1.4), ("deepcopy", "copy", 1.0), ("tuple", "set", 1.6),
           ("stdev", "pstdev", 1.1), ("stdev", "variance", 1.2), ("radians", "degrees", .9), ("defaultdict", "dict", 1.6),
           ("gcd", "lcm", 1.1), ("heappop", "heapify", 1.8), ("match", "search", 1.0), ("match", "fullmatch", 1.0),
           ("search", "fullmatch", 1.2), ("findall", "finditer", 1.3), ("date", "datetime", 1.5), ("choice", "choices", 1.2)]
METHODS = [("append", "extend", .9), ("append", "appendleft", 1.1), ("append", "insert", 1.9), ("upper", "lower", .8),
           ("strip", "lstrip", .9), ("strip", "rstrip", .9), ("lstrip", "rstrip", .9), ("startswith", "endswith", .8),
           ("keys", "values", .9), ("keys", "items", 1.0), ("values", "items", 1.0), ("pop", "popleft", 1.0),
           ("find", "rfind", 1.0), ("index", "rindex", 1.0), ("index", "find", 1.2), ("split", "rsplit", 1.0),
           ("split", "splitlines", 1.2), ("ljust", "rjust", .8), ("ljust", "center", 1.1), ("rjust", "center", 1.1),
           ("title", "capitalize", .9), ("upper", "title", 1.1), ("upper", "capitalize", 1.1), ("lower", "capitalize", 1.4),
           ("lower", "title", 1.3), ("isalpha", "isalnum", .9), ("isdigit", "isalpha", .9), ("isdigit", "isalnum", 1.0),
           ("isdigit", "isnumeric", 1.3), ("isupper", "islower", .8), ("isspace", "isalpha", 1.3), ("add", "discard", 1.2),
           ("add", "remove", 1.3), ("remove", "discard", 1.1), ("union", "intersection", .8), ("difference", "union", 1.0),
           ("difference", "intersection", 1.0), ("difference", "symmetric_difference", 1.0), ("add", "update", 1.1),
           ("union", "symmetric_difference", 1.1), ("intersection", "symmetric_difference", 1.2), ("issubset", "issuperset", .8),
           ("issubset", "isdisjoint", 1.3), ("get", "pop", 1.2), ("pop", "remove", 1.3), ("insert", "append", 1.5),
           ("setdefault", "get", 1.0), ("count", "index", 1.1), ("count", "find", 1.3), ("swapcase", "lower", 1.3),
           ("swapcase", "upper", 1.3), ("partition", "rpartition", .9), ("read", "readlines", 1.1), ("readline", "readlines", 1.0),
           ("fromkeys", "get", 2.2), ("lower", "casefold", 1.5), ("extendleft", "extend", 1.1), ("replace", "strip", 1.8),
           ("isidentifier", "isalnum", 1.3), ("clear", "copy", 1.6), ("most_common", "elements", 1.6), ("weekday", "isoweekday", .9),
           ("sub", "findall", 1.8), ("match", "search", 1.0), ("match", "fullmatch", 1.0), ("search", "fullmatch", 1.2),
           ("removeprefix", "removesuffix", .8), ("lstrip", "removeprefix", 1.0), ("rstrip", "removesuffix", 1.0),
           ("encode", "decode", .9), ("exists", "is_file", 1.3), ("is_file", "is_dir", 1.0), ("stem", "name", 1.0), ("pop", "clear", 1.9)]


def table(pairs):
    out = {}
    for a, b, cost in pairs:
        out.setdefault(a, []).append((b, cost))
        out.setdefault(b, []).append((a, cost))
    return out


CALLEE, METHOD = table(CALLEES), table(METHODS)


def callees(site):
    """Another function: its counterpart, or a sibling in the module with as many parameters."""
    module = site.ctx.module(site.src)
    scope = set(site.scope()) | set(dir(builtins))
    for node in site.nodes:
        if isinstance(node, ast.Attribute):
            end = site.src.span(node)[1]
            at = (end - len(node.attr.encode("utf-8")), end)
            known = METHOD.get(node.attr, []) + (CALLEE.get(node.attr, []) if isinstance(node.value, ast.Name) else [])
            for other, cost in known:
                yield cost, "method %s to %s" % (node.attr, other), [at + (other,)]
            continue
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        called = isinstance(node._parent, ast.Call) and node._parent.func is node
        passed = isinstance(node._parent, (ast.keyword, ast.Call)) and not called
        if called or passed:
            for other, cost in CALLEE.get(node.id, []):
                if other in scope:
                    yield cost, "call %s to %s" % (node.id, other), site.rep(node, other)
        if called and node.id in module.functions:
            mine = len(module.functions[node.id].args.args)
            for other, func in module.functions.items():
                if other != node.id and len(func.args.args) == mine and func is not site.func:
                    yield 1.6, "call %s to %s" % (node.id, other), site.rep(node, other)
    for node in site.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) \
                and node.func.value.id in ("self", "cls") and site.cls is not None:
            end = site.src.span(node.func)[1]
            for other, kind in class_members(site.cls).items():
                if kind == "method" and other != node.func.attr and not other.startswith("__"):
                    yield 1.6, "call sibling method", [(end - len(node.func.attr.encode()), end, other)]


WRAPS = {"str": ("int", "float", "len", "list"), "int": ("str", "abs", "float"), "float": ("int", "round", "abs", "str"),
         "list": ("len", "sorted", "set", "sum", "tuple"), "set": ("sorted", "list", "len"), "dict": ("list", "len", "sorted"),
         "tuple": ("list", "set", "len"), "generator": ("list", "sum"), "range": ("list",), "": ("int", "str", "list", "sorted",
                                                                                         "set", "abs", "len")}
STRINGS = (".lower()", ".strip()", ".upper()", ".split()")


def wrapping(site):
    """A call wrapped round an expression or taken off it."""
    for node in site.nodes:
        if isinstance(node, ast.Call):
            if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
                arg = node.args[0]
                text = site.t(arg)
                yield 1.6, "unwrap call", site.rep(node, paren(arg, text))
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, (
                    ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)):
                yield (1.6 if len(node.args) == 0 else 1.9), "drop method call", site.rep(node, site.t(node.func.value))
            if not node.args and not node.keywords:
                yield 1.9, "drop call", site.rep(node, site.t(node.func))
        if not hasattr(node, "lineno") or not isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp,
                                                                ast.GeneratorExp, ast.ListComp)):
            continue
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or not wrappable(node):
            continue
        kinds = site.kinds_of(node)
        text = site.t(node)
        for kind in (kinds & set(WRAPS)) or ({""} if not kinds else ()):
            for name in WRAPS[kind]:
                yield 2.1 if kinds else 2.4, "wrap %s" % name, site.rep(node, "%s(%s)" % (name, text.strip("()") if isinstance(
                    node, ast.GeneratorExp) else text))
        if "str" in kinds or not kinds:
            for tail in STRINGS:
                yield (1.9 if kinds else 2.4), "add %s" % tail, site.rep(node, paren(node, text) + tail)
        if kinds & {"list", "dict", "set"} and isinstance(site.stmt, (ast.Assign, ast.Return, ast.For)):
            yield 1.9, "copy", site.rep(node, text + ".copy()")
        if isinstance(node, (ast.Attribute, ast.Name)) and (not kinds or kinds & {"method", "function", "builtin_function_or_method"}):
            yield 1.7, "call it", site.rep(node, text + "()")


def wrappable(node):
    parent = node._parent
    if isinstance(parent, ast.Attribute) or isinstance(parent, (ast.Expr, ast.Starred, ast.withitem, ast.JoinedStr, ast.Raise)):
        return False
    return not (isinstance(parent, ast.Call) and parent.func is node) and not (
        isinstance(parent, ast.Subscript) and parent.value is node)


def arglists(site):
    """Arguments swapped, dropped, added; sort's reverse and key; a parameter passed on."""
    for node in site.nodes:
        if not isinstance(node, ast.Call):
            continue
        args = [a for a in node.args if not isinstance(a, ast.Starred)]
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for n, (a, b) in enumerate(zip(args, args[1:])):
            yield 1.2 if len(args) == 2 else 1.4, "swap arguments", site.swap(a, b)
        if len(args) > 2:
            yield 1.7, "swap arguments", site.swap(args[0], args[2])
        end = site.src.span(node)[1] - 1
        if len(args) >= 2 and not node.keywords:
            yield 1.8, "drop argument", [(site.src.span(args[-2])[1], end, "")]
        elif len(args) == 1 and not node.keywords and isinstance(node.func, ast.Attribute):
            yield 1.6, "drop argument", [site.src.span(args[0]) + ("",)]
        for key in node.keywords:
            if key.arg and args + node.keywords != [key]:
                first = site.src.span(key.value)
                at = site.src.utf8.rfind(b",", 0, first[0])
                if at > site.src.span(node)[0]:
                    yield 1.7, "drop keyword %s" % key.arg, [(at, first[1], "")]
        comma = ", " if node.args or node.keywords else ""
        if name in ("sort", "sorted", "max", "min"):
            for text, cost in sort_options(site, node, name):
                yield cost, "add %s" % text, [(end, end, comma + text)]
        if name in ("join", "split", "strip", "round", "get", "pop", "dict", "enumerate", "sum", "zip", "int") and len(args) < 2:
            for text, cost in EXTRA_ARGS.get(name, ()):
                yield cost, "add argument %s" % text, [(end, end, comma + text)]
        for other in missing_arguments(site, node, args):
            yield 1.5, "add argument", [(end, end, comma + other)]


EXTRA_ARGS = {"split": (("','", 1.7), ("' '", 1.7), ("'\\n'", 1.9)), "round": (("2", 1.4), ("1", 1.7)), "get": (("0", 1.4), ("[]", 1.7),
              ("''", 1.7), ("None", 2.0)), "pop": (("0", 1.3), ("None", 1.6), ("-1", 2.0)), "enumerate": (("1", 1.2),
              ("start=1", 1.5)), "int": (("2", 1.8), ("16", 1.9)), "sum": (("[]", 2.2),)}


def sort_options(site, node, name):
    have = {k.arg for k in node.keywords}
    if "reverse" not in have and name in ("sort", "sorted"):
        yield "reverse=True", 1.1
    if "key" not in have:
        for text, cost in (("key=len", 1.6), ("key=str.lower", 1.8), ("key=lambda x: x[1]", 1.6), ("key=lambda x: x[0]", 1.9),
                           ("key=str", 2.0), ("key=abs", 2.0), ("key=lambda x: (-x[1], x[0])", 2.0), ("key=int", 2.1)):
            yield text, cost
        for arg in node.args[:1]:
            if isinstance(arg, ast.Name):
                yield "key=%s.get" % arg.id, 1.6


def missing_arguments(site, node, args):
    """Locals that a function of the project still lacks as arguments."""
    if not any("missing" in h["text"] and "argument" in h["text"] for h in site.hints):
        return []
    return site.locals()


def strings(site):
    """Another string: of the module, of the tests, by the difference that a failed assertion shows."""
    module = site.ctx.module(site.src)
    keys = [h["key"] for h in site.hints if "key" in h]
    for node in site.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or isinstance(node._parent, ast.Expr):
            continue
        if node._fstr:
            continue
        value = node.value
        raw = site.t(node)
        for other, cost in string_options(site, module, value, keys, node):
            if other != value:
                yield cost, "string %s to %s" % (short(value), short(other)), site.rep(node, quoted(raw, other))
        names = re.findall(r"\{(\w+)[^{}]*\}", value)
        if names and set(names) <= set(site.scope()) and not raw.startswith(("f", "r", "b", "F")):
            yield .9, "missing f prefix", site.rep(node, "f" + raw)
    for node in site.nodes:
        if isinstance(node, ast.JoinedStr):
            raw = site.t(node)
            for m in re.finditer(r"\.(\d)f", raw):
                for digit in (int(m.group(1)) - 1, int(m.group(1)) + 1):
                    if digit >= 0:
                        yield 1.3, "format digits", site.rep(node, raw[:m.start(1)] + str(digit) + raw[m.end(1):])
            for start, end, new in differences(site):
                if start in raw and raw.count(start) == 1:
                    yield 1.2, "text of the string", site.rep(node, raw.replace(start, end))
            for wrong, right, cost in formats(raw):
                yield cost, "format", site.rep(node, raw.replace(wrong, right))


def formats(raw):
    for a, b in (("<", ">"), (">", "<"), ("^", "<"), ("<", "^"), (">", "^")):
        if re.search(r":.?\%s\d" % a, raw):
            yield a, b, 1.4


def short(text):
    return repr(text if len(text) < 20 else text[:17] + "...")


def quoted(raw, text):
    quote = '"' if raw.endswith('"') else "'"
    shown = repr(text)
    if shown[0] != quote and quote not in text and "'" not in text:
        shown = quote + shown[1:-1] + quote
    return ("b" if raw[:1] in "bB" else "") + shown


def string_options(site, module, value, keys, node):
    in_key = isinstance(node._parent, (ast.Subscript, ast.Dict, ast.Compare)) or type(node._parent).__name__ == "Index"
    for wrong, right, _ in differences(site):
        if wrong and value.count(wrong) == 1:
            yield value.replace(wrong, right), 1.2
    for n, other in enumerate(difflib.get_close_matches(value, [s for s in module.strings if s != value], 3, .6) if value else ()):
        yield other, (.2 if value in keys else 1.2) + .1 * n
    for n, other in enumerate(difflib.get_close_matches(value, [s for s in site.ctx.test_words if s != value], 3, .6) if value else ()):
        yield other, (.3 if value in keys else 1.5) + .1 * n
    for other in module.strings[:30]:
        yield other, 1.8 if in_key else 2.0
    for other in (" ", "", ",", ", ", "\n", "-", "_", "."):
        if len(value) <= 2:
            yield other, 1.6
    for other in (value.upper(), value.lower(), value.capitalize(), value.strip(), value + " ", " " + value, value + "\n"):
        yield other, 1.7
    for m in re.finditer(r"\.(\d)f", value):
        for digit in (int(m.group(1)) - 1, int(m.group(1)) + 1):
            if digit >= 0:
                yield value[:m.start(1)] + str(digit) + value[m.end(1):], 1.3
    for a, b in (("%d", "%m"), ("%m", "%M"), ("%M", "%m"), ("%H", "%I"), ("%y", "%Y"), ("%Y", "%y"), ("+", "*"), ("*", "+"), ("\\d",
                 "\\w"), ("\\w", "\\d"), ("\\s", "\\S"), ("^", ""), ("$", ""), ("%d", "%s"), ("%s", "%d")):
        if a in value:
            yield value.replace(a, b, 1), 1.6
    if value in ("r", "w", "a", "rb", "wb"):
        for other in ("r", "w", "a", "rb", "wb"):
            yield other, 1.2
    for other in site.ctx.test_words[:30]:
        yield other, 2.3


def differences(site):
    """(wrong, right) pieces by which a failed assertion's strings differ."""
    out = []
    for left, right in site.ctx.compares:
        if not (isinstance(left, str) and isinstance(right, str)) or left == right:
            continue
        for actual, expected in ((left, right), (right, left)):
            n = 0
            while n < min(len(actual), len(expected)) and actual[n] == expected[n]:
                n += 1
            m = 0
            while m < min(len(actual), len(expected)) - n and actual[-1 - m] == expected[-1 - m]:
                m += 1
            wrong, right_ = actual[n:len(actual) - m], expected[n:len(expected) - m]
            for wide in (4, 2, 1, 0):
                a = actual[max(0, n - wide):len(actual) - max(0, m - wide)]
                b = expected[max(0, n - wide):len(expected) - max(0, m - wide)]
                if a and (a, b, 0) not in out:
                    out.append((a, b, 0))
            if wrong:
                out.append((wrong, right_, 0))
    return out[:16]


RAISED = ("ValueError", "KeyError", "TypeError", "IndexError", "ZeroDivisionError", "AttributeError", "LookupError", "RuntimeError",
          "NotImplementedError", "StopIteration", "FileNotFoundError", "OSError", "ArithmeticError", "OverflowError", "PermissionError",
          "Exception", "AssertionError", "TimeoutError", "UnicodeDecodeError", "ImportError")


def exceptions(site):
    """Another exception in raise and except, first those that the tests name or that escaped."""
    escaped = {h["type"] for h in site.ctx.hints}
    known = set(RAISED) | {n for m in site.ctx.modules.values() for n in m.classes if n.endswith(("Error", "Exception"))}
    node = site.stmt
    named = []
    if isinstance(node, ast.Raise) and node.exc is not None:
        named = [node.exc.func if isinstance(node.exc, ast.Call) else node.exc]
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        named = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    elif isinstance(node, ast.Try):
        named = [h.type for h in node.handlers if isinstance(h.type, ast.Name)]
    for part in named:
        if not isinstance(part, ast.Name):
            continue
        for other in sorted(known - {part.id}):
            seen = other in site.ctx.test_names or other in escaped
            yield 1.0 if seen else 1.9, "exception %s to %s" % (part.id, other), site.rep(part, other)
    for part in site.nodes:
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "isinstance" and len(part.args) == 2:
            for other in ("int", "str", "list", "float", "dict", "tuple", "(int, float)", "(list, tuple)", "bool", "set"):
                yield 1.3, "type %s" % other, site.rep(part.args[1], other)


def awaits(site):
    """await forgotten before a coroutine call, or yield against yield from."""
    coroutines = site.ctx.module(site.src).coroutines
    if isinstance(site.func, ast.AsyncFunctionDef):
        for node in site.nodes:
            if isinstance(node, ast.Call) and not isinstance(node._parent, ast.Await):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                yield .9 if name in coroutines else 2.2, "missing await", site.rep(node, "(await %s)" % site.t(node))
    for node in site.nodes:
        if isinstance(node, ast.Yield) and node.value is not None:
            at = site.src.span(node)[0]
            yield 1.4, "yield to yield from", [(at, at + 5, "yield from")]
        elif isinstance(node, ast.YieldFrom):
            at = site.src.find(site.src.span(node)[0], site.src.span(node.value)[0], "yield from")
            if at:
                yield 1.4, "yield from to yield", [at + ("yield",)]
        elif isinstance(node, ast.Lambda) and site.loop() is not None:
            used = {n.id for n in ast.walk(node.body) if isinstance(n, ast.Name)} & set(stored(site.func) if site.func else ())
            for name in sorted(used - set(arguments(node))):
                at = site.src.span(node.body)[0]
                colon = site.src.utf8.rfind(b":", site.src.span(node)[0], at)
                text = ", %s=%s" if node.args.args else " %s=%s"
                yield 1.5, "bind loop variable", [(colon, colon, text % (name, name))]


OPERATORS = (callees, wrapping, arglists, strings, exceptions, awaits)
