"""A statement under suspicion, with all that the operators ask about it."""
import ast
import builtins
import sys

from .source import FUNCTIONS, own_nodes

STDLIB = set(getattr(sys, "stdlib_module_names", ())) | set("""
abc argparse array ast asyncio base64 bisect calendar cmath collections concurrent configparser contextlib copy csv
ctypes dataclasses datetime decimal difflib enum fnmatch fractions functools getpass glob gzip hashlib heapq hmac html
http inspect io itertools json keyword linecache locale logging math mimetypes multiprocessing numbers operator os
pathlib pickle platform pprint queue random re secrets shlex shutil signal socket sqlite3 stat statistics string struct
subprocess sys tempfile textwrap threading time timeit traceback types typing unicodedata unittest urllib uuid warnings
weakref xml zipfile zlib""".split())


class Context:
    """The project: its sources, what is defined where, and what the traced run told."""

    def __init__(self, sources, types, test_texts):
        self.sources = sources
        self.types = types
        self.test_words, self.test_numbers, self.test_names = literals(test_texts)
        self.modules = {p: ModuleInfo(s) for p, s in sources.items()}
        self.hints = []
        self.compares = []

    def module(self, src):
        return self.modules[src.path]

    def numbers_near(self, site):
        out = [n for n in self.module(site.src).numbers if abs(n) < 1e12]
        return out[:24]

    def defining(self, name):
        """The project's modules that define a name at top level."""
        return [p for p, m in self.modules.items() if name in m.functions or name in m.classes or name in m.variables]


class ModuleInfo:
    """The names of one module."""

    def __init__(self, src):
        self.functions, self.classes, self.variables, self.imports = {}, {}, {}, {}
        self.numbers, self.strings, self.attributes, self.keywords = [], [], {}, set()
        self.coroutines, self.attributes_of = set(), {}
        for stmt in src.stmts:
            if stmt._func is None and stmt._cls is None:
                self._top(stmt)
        for node in ast.walk(src.tree):
            if isinstance(node, ast.Constant):
                self._literal(node)
            elif isinstance(node, ast.Attribute):
                self.attributes[node.attr] = self.attributes.get(node.attr, 0) + 1
                if isinstance(node.value, ast.Name):
                    of = self.attributes_of.setdefault(node.value.id, [])
                    if node.attr not in of:
                        of.append(node.attr)
            elif isinstance(node, ast.AsyncFunctionDef):
                self.coroutines.add(node.name)
            elif isinstance(node, ast.keyword) and node.arg:
                self.keywords.add(node.arg)

    def _top(self, stmt):
        if isinstance(stmt, FUNCTIONS):
            self.functions[stmt.name] = stmt
        elif isinstance(stmt, ast.ClassDef):
            self.classes[stmt.name] = stmt
        elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
            for alias in stmt.names:
                self.imports[(alias.asname or alias.name).split(".")[0]] = stmt
        else:
            for name in targets(stmt):
                self.variables[name] = stmt

    def _literal(self, node):
        value = node.value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value not in self.numbers:
            self.numbers.append(value)
        elif isinstance(value, str) and len(value) <= 60 and value not in self.strings:
            self.strings.append(value)

    def names(self):
        return list(self.functions) + list(self.classes) + list(self.variables) + list(self.imports)


def targets(stmt):
    """The plain names that a statement's own expressions bind."""
    out = []
    for node in own_nodes(stmt):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            out.append(node.id)
    return out


def literals(texts):
    """Strings, numbers and names of the test files."""
    words, numbers, names = [], [], set()
    for text in texts:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str) and len(node.value) <= 60 and node.value not in words:
                    words.append(node.value)
                elif isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
                    if node.value not in numbers:
                        numbers.append(node.value)
            elif isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.keyword) and node.arg:
                names.add(node.arg)
            elif isinstance(node, ast.alias):
                names.add(node.name)
    return words, numbers, names


def class_members(cls):
    """The methods and self attributes of a class, remembered with it; those that nothing sets here are "read"."""
    out = getattr(cls, "_members", None)
    if out is not None:
        return out
    out = cls._members = {}
    for node in ast.walk(cls):
        if isinstance(node, FUNCTIONS) and node._cls is cls:
            out[node.name] = "method"
        elif is_own(node) and not isinstance(node.ctx, ast.Load):
            out.setdefault(node.attr, "attribute")
    for stmt in cls.body:
        for name in targets(stmt):
            out.setdefault(name, "attribute")
    for node in ast.walk(cls):
        if is_own(node):
            out.setdefault(node.attr, "read")
    return out


def is_own(node):
    """Whether the node is an attribute of self or of the class."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def arguments(func):
    a = func.args
    every = getattr(a, "posonlyargs", []) + a.args + a.kwonlyargs
    return [x.arg for x in every] + [x.arg for x in (a.vararg, a.kwarg) if x is not None]


class Site:
    """One statement; the operators' view of it."""

    def __init__(self, ctx, src, stmt, susp):
        self.ctx, self.src, self.stmt, self.susp = ctx, src, stmt, susp
        self.func, self.cls = stmt._func, stmt._cls
        if self.func is not None and self.cls is None:
            self.cls = self.func._cls
        self.nodes = own_nodes(stmt)
        self._reads = None
        self.types = self._types()
        self.hints = [h for h in ctx.hints if any(
            f[0] == src.path and stmt.lineno <= f[1] <= stmt.end_lineno for f in h["frames"])]

    def _types(self):
        if self.func is None:
            return {}
        first = min([self.func.lineno] + [d.lineno for d in self.func.decorator_list])
        for line in (first, self.func.lineno):
            found = self.ctx.types.get("%s:%d:%s" % (self.src.path, line, self.func.name))
            if found:
                return found
        return {}

    def t(self, node):
        return self.src.text(node)

    def rep(self, node, text):
        start, end = self.src.span(node)
        if isinstance(node, ast.Tuple) and self.src.utf8[start:start + 1] != b"(" and not text.startswith("("):
            return [(start, end, text)]
        return [(start, end, text)]

    def swap(self, a, b):
        return self.rep(a, self.t(b)) + self.rep(b, self.t(a))

    def gap(self, left, right, word):
        return self.src.find(self.src.span(left)[1], self.src.span(right)[0], word)

    def kinds_of(self, node):
        """The runtime type names that are known or evident for an expression; empty when unknown."""
        if isinstance(node, ast.Name):
            return set(self.types.get(node.id, ()))
        if isinstance(node, ast.Constant):
            return {type(node.value).__name__}
        if isinstance(node, ast.JoinedStr):
            return {"str"}
        for kind, name in ((ast.List, "list"), (ast.ListComp, "list"), (ast.Dict, "dict"), (ast.DictComp, "dict"),
                           (ast.Set, "set"), (ast.SetComp, "set"), (ast.Tuple, "tuple"), (ast.Compare, "bool"),
                           (ast.GeneratorExp, "generator"), (ast.Lambda, "function")):
            if isinstance(node, kind):
                return {name}
        if isinstance(node, ast.Call):
            return self._call_kinds(node)
        if isinstance(node, ast.BinOp):
            both = self.kinds_of(node.left) | self.kinds_of(node.right)
            return both if both & {"str", "list", "tuple", "set"} else set()
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self.kinds_of(node.value)
        return set()

    def _call_kinds(self, node):
        if isinstance(node.func, ast.Name):
            known = {"len": "int", "sum": "int", "int": "int", "round": "int", "str": "str", "sorted": "list",
                     "list": "list", "set": "set", "dict": "dict", "tuple": "tuple", "float": "float", "abs": "int",
                     "range": "range", "bool": "bool", "isinstance": "bool", "enumerate": "enumerate", "zip": "zip",
                     "any": "bool", "all": "bool", "repr": "str", "ord": "int", "chr": "str"}
            return {known[node.func.id]} if node.func.id in known else set()
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in ("lower", "upper", "strip", "join", "format", "replace", "title", "capitalize"):
                return {"str"}
            if node.func.attr in ("split", "splitlines"):
                return {"list"}
            if node.func.attr in ("startswith", "endswith", "isdigit", "isalpha"):
                return {"bool"}
        return set()

    def is_value(self, node):
        """Whether the expression is used as a value of its own (not called, stored, unpacked)."""
        parent = node._parent
        if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
            return False
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return False
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.args[:1] == [node] and parent.func.id in (
                "isinstance", "len", "sorted", "list", "set", "iter", "enumerate", "zip", "super"):
            return False
        return not isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension, ast.Expr, ast.Starred, ast.With,
                                       ast.withitem, ast.ExceptHandler, ast.Raise, ast.Delete, ast.ClassDef,
                                       ast.Await, ast.JoinedStr)) \
            and not isinstance(parent, FUNCTIONS) and (not self.is_truth(node) or "int" in self.kinds_of(node))

    def is_truth(self, node):
        """Whether the expression decides, or may be the result of and/or."""
        parent = node._parent
        return isinstance(parent, ast.BoolOp) or isinstance(parent, (ast.If, ast.While, ast.IfExp)) and parent.test is node

    def is_bound(self, node):
        """Whether the expression is an index, a slice bound, or an argument of range."""
        parent = node._parent
        if isinstance(parent, ast.UnaryOp):
            node, parent = parent, parent._parent
        if type(parent).__name__ in ("Index", "Slice"):
            return True
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            return not (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub)):
            if isinstance(node, ast.Constant) and node.value == 1:
                return True
        return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range"

    def starts_range(self, node):
        """Whether the expression is the first of several arguments of range, which is rarely the wrong one."""
        parent = node._parent
        return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range" \
            and len(parent.args) > 1 and parent.args[0] is node

    def reads(self):
        """How often each name is read in the enclosing function."""
        if self._reads is None:
            self._reads = {}
            for node in ast.walk(self.func) if self.func is not None else ():
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    self._reads[node.id] = self._reads.get(node.id, 0) + 1
        return self._reads

    def literal_penalty(self, node):
        """Literals in a plain return overfit: they come later."""
        parent = node._parent
        if isinstance(parent, ast.UnaryOp):
            parent = parent._parent
        return .4 if isinstance(parent, ast.Return) else 0

    def compound_condition(self, node):
        return isinstance(node._parent, (ast.BoolOp, ast.IfExp, ast.comprehension)) or \
            getattr(self.stmt, "test", None) is node or isinstance(node._parent, ast.Return)

    def loop(self):
        node = self.stmt._parent
        while node is not None and not isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
                return node
            node = node._parent
        return None

    def locals(self):
        """The names of the enclosing functions, arguments first, in order of appearance."""
        out, func = [], self.func
        while func is not None:
            for name in arguments(func) + stored(func):
                if name not in out:
                    out.append(name)
            func = func._func
        for node in self.nodes:
            if isinstance(node, (ast.comprehension, ast.Lambda)):
                for sub in ast.walk(node.target if isinstance(node, ast.comprehension) else node.args):
                    name = getattr(sub, "id", None) or getattr(sub, "arg", None)
                    if name and name not in out:
                        out.append(name)
        return out

    def sequences(self):
        """Locals that are lists, tuples or strings at run time, arguments first."""
        return [n for n in self.locals() if set(self.types.get(n, ())) & {"list", "tuple", "str"}]

    def scope(self):
        return self.locals() + self.ctx.module(self.src).names()

    def body_of(self):
        """The list of statements that holds this one, and its place in it."""
        for field in ("body", "orelse", "finalbody"):
            block = getattr(self.stmt._parent, field, None)
            if isinstance(block, list):
                for n, stmt in enumerate(block):
                    if stmt is self.stmt:
                        return block, n
        return [self.stmt], 0


def stored(func):
    """The names that a function's body binds, in order, remembered with it."""
    out = getattr(func, "_stored", None)
    if out is not None:
        return out
    out = func._stored = []
    for node in ast.walk(func):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in out:
            out.append(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name and node.name not in out:
            out.append(node.name)
        elif isinstance(node, FUNCTIONS + (ast.ClassDef,)) and node is not func and node.name not in out:
            out.append(node.name)
        elif isinstance(node, ast.alias):
            out.append((node.asname or node.name).split(".")[0])
        elif type(node).__name__ in ("MatchAs", "MatchStar") and node.name:
            out.append(node.name)
    return out


BUILTINS = set(dir(builtins)) | {"__file__", "__name__", "__doc__", "__package__", "__spec__", "__path__", "__class__"}
