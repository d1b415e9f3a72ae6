"""Operators on indices, slices, range calls, minima and templates of values."""
import ast

from .source import paren


def slices(site):
    """Bounds of a slice added, dropped or moved by one; the step turned round."""
    for node in site.nodes:
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            continue
        part = node.slice
        start, end = slice_text(site, node)
        low, up, step = (site.t(x) if x is not None else "" for x in (part.lower, part.upper, part.step))
        options = []
        if not low:
            options += [("1", up, step, 1.0)]
        else:
            options += [("", up, step, 1.2), (plus(low, "+"), up, step, 1.1), (plus(low, "-"), up, step, 1.1)]
        if not up:
            options += [(low, "-1", step, 1.0)]
        else:
            options += [(low, "", step, 1.2), (low, plus(up, "+"), step, 1.0), (low, plus(up, "-"), step, 1.0)]
        if low and up:
            options += [(up, low, step, 1.6), (low, "%s + %s" % (low, up), step, 1.9)]
        if low and not up:
            options += [("", low, step, 1.1), ("-" + wrapped(low), "", step, 1.4)]
        if up and not low:
            options += [(up, "", step, 1.1), ("-" + wrapped(up), "", step, 1.3), ("", "-" + wrapped(up), step, 1.4)]
        if low.startswith("-"):
            options += [(low[1:], up, step, 1.2)]
        if up.startswith("-"):
            options += [(low, up[1:], step, 1.2)]
        if not step:
            options += [(low, up, "-1", 1.3), (low, up, "2", 1.7)]
        else:
            options += [(low, up, "", 1.4)]
            options += [(low, up, step[1:] if step.startswith("-") else "-" + wrapped(step), 1.2)]
        for a, b, c, cost in options:
            text = "%s:%s%s" % (a, b, ":" + c if c else "")
            yield cost, "slice bounds", [(start, end, text)]
        yield 1.9, "drop slice", site.rep(node, site.t(node.value))


def slice_text(site, node):
    """The span between the brackets."""
    gap_start = site.src.span(node.value)[1]
    end = site.src.span(node)[1]
    at = site.src.find(gap_start, end, "[")
    return at[1], end - 1


def wrapped(text):
    return text if text.replace("_", "").isalnum() else "(%s)" % text


def plus(text, sign):
    """The text of a bound moved by one, in the form that people write."""
    for tail, back in ((" + 1", "+"), (" - 1", "-")):
        if text.endswith(tail) and back != sign:
            return text[:-len(tail)]
    try:
        return str(int(text) + (1 if sign == "+" else -1))
    except ValueError:
        return "%s %s 1" % (text, sign)


def indices(site):
    """Another index: first, last, second, the length less one, two indices swapped."""
    for node in site.nodes:
        if not isinstance(node, ast.Subscript) or isinstance(node.slice, (ast.Slice, ast.Tuple)):
            continue
        index = node.slice.value if type(node.slice).__name__ == "Index" else node.slice
        if not hasattr(index, "lineno"):
            continue
        kinds = site.kinds_of(node.value)
        if kinds and not kinds & {"list", "tuple", "str", "bytes", "deque", "array", "ndarray"}:
            continue
        text = site.t(index)
        if isinstance(index, (ast.Constant, ast.UnaryOp)):
            for other, cost in (("0", 1.1), ("-1", 1.1), ("1", 1.1), ("-2", 1.6), ("2", 1.6)):
                if other != text and not (isinstance(index, ast.Constant) and isinstance(index.value, str)):
                    yield cost, "index %s to %s" % (text, other), site.rep(index, other)
        else:
            yield 1.6, "index from the end", site.rep(index, "-" + paren(index, text))
            yield 2.0, "first element", site.rep(index, "0")
            yield 2.0, "last element", site.rep(index, "-1")
        inner = node.value
        if isinstance(inner, ast.Subscript) and not isinstance(inner.slice, ast.Slice):
            first = inner.slice.value if type(inner.slice).__name__ == "Index" else inner.slice
            if hasattr(first, "lineno"):
                yield 1.2, "swap indices", site.swap(first, index)
        if isinstance(node.ctx, ast.Load):
            yield 2.3, "drop index", site.rep(node, site.t(inner))


def ranges(site):
    """The bounds of range()."""
    for node in site.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"):
            continue
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        args = [site.t(a) for a in node.args]
        options = []
        if len(args) == 1:
            n = args[0]
            options += [([plus(n, "+")], .9), ([plus(n, "-")], .9), (["1", n], .9), (["1", plus(n, "+")], 1.0),
                        ([n, "-1", "-1"], 2.2), ([plus(n, "-"), "-1", "-1"], 1.6), (["2", n], 1.7),
                        (["2", plus(n, "+")], 1.7), (["len(%s)" % n], 1.5), (["0", n, "2"], 2.2)]
        elif len(args) == 2:
            a, b = args
            options += [([a, plus(b, "+")], .8), ([a, plus(b, "-")], .8), ([plus(a, "+"), b], .9),
                        ([plus(a, "-"), b], .9), ([b], 1.2), ([plus(a, "+"), plus(b, "+")], 1.3),
                        ([plus(a, "-"), plus(b, "-")], 1.4), ([b, a], 1.7), ([b, a, "-1"], 1.6), (["0", b], 1.3),
                        (["1", b], 1.3), ([a, "len(%s)" % b], 2.0)]
        elif len(args) == 3:
            a, b, c = args
            turned = c[1:] if c.startswith("-") else "-" + wrapped(c)
            options += [([a, plus(b, "+"), c], .9), ([a, plus(b, "-"), c], .9), ([plus(a, "-"), b, c], 1.0),
                        ([plus(a, "+"), b, c], 1.0), ([a, b, turned], 1.1), ([a, b], 1.3), ([b, a, c], 1.5)]
        start, end = site.src.span(node.args[0])[0], site.src.span(node.args[-1])[1]
        for new, cost in options:
            if ", ".join(new) != ", ".join(args):
                yield cost, "range bounds", [(start, end, ", ".join(new))]


def initial(site):
    """Another start value for a minimum, maximum, product or flag."""
    stmt = site.stmt
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], ast.Name):
        return
    value = stmt.value
    simple = isinstance(value, ast.Constant) or (isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant))
    infinite = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "float"
    empty = isinstance(value, (ast.List, ast.Dict, ast.Tuple)) and not getattr(value, "elts", getattr(value, "keys", None))
    if simple or infinite:
        for text, cost in (("float('-inf')", 1.7), ("float('inf')", 1.7), ("None", 1.9), ("''", 2.0), ("[]", 2.0),
                           ("set()", 2.3), ("{}", 2.2)):
            yield cost, "initial value", site.rep(value, text)
        for name in site.sequences()[:4]:
            yield 1.8, "initial value", site.rep(value, name + "[0]")
            yield 2.2, "initial value", site.rep(value, "len(%s)" % name)
    if empty or (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in (
            "list", "dict", "set") and not value.args):
        for text, cost in (("[]", 1.5), ("{}", 1.5), ("set()", 1.5), ("''", 1.9), ("0", 1.9), ("None", 2.1)):
            if text != site.t(value):
                yield cost, "initial value", site.rep(value, text)


def pairs(site):
    """Key against value, first against second, in dictionaries, tuples and loops."""
    stmt = site.stmt
    for node in site.nodes:
        if isinstance(node, ast.DictComp):
            yield 1.2, "swap key and value", site.swap(node.key, node.value)
        elif isinstance(node, ast.Tuple) and 2 <= len(node.elts) <= 4:
            cost = 1.2 if len(node.elts) == 2 else 1.6
            for a, b in zip(node.elts, node.elts[1:]):
                yield cost, "swap elements", site.swap(a, b)
        elif isinstance(node, ast.List) and 2 <= len(node.elts) <= 3:
            for a, b in zip(node.elts, node.elts[1:]):
                yield 1.7, "swap elements", site.swap(a, b)
        elif isinstance(node, ast.Dict):
            for a, b in zip(node.values, node.values[1:]):
                if len(node.values) <= 6:
                    yield 1.9, "swap values", site.swap(a, b)
            for key, value in zip(node.keys, node.values):
                if key is not None and isinstance(key, ast.Name) and isinstance(value, ast.Name):
                    yield 1.4, "swap key and value", site.swap(key, value)
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Subscript):
        target = stmt.targets[0]
        index = target.slice.value if type(target.slice).__name__ == "Index" else target.slice
        if hasattr(index, "lineno") and not isinstance(index, ast.Slice):
            yield 1.2, "swap key and value", site.swap(index, stmt.value)
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
        yield 1.9, "swap sides", site.swap(stmt.targets[0], stmt.value)


def extremes(site):
    """A value clamped, floored or made absolute."""
    stmt = site.stmt
    value = stmt.value if isinstance(stmt, (ast.Return, ast.Assign)) else None
    if value is None or not hasattr(value, "lineno"):
        return
    kinds = site.kinds_of(value)
    if kinds and not kinds & {"int", "float", "Decimal", "Fraction"}:
        return
    if isinstance(value, (ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.JoinedStr)):
        return
    text = site.t(value)
    yield 2.1, "wrap abs", site.rep(value, "abs(%s)" % text)
    yield 2.2, "wrap max", site.rep(value, "max(0, %s)" % text)
    if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], (ast.Name, ast.Subscript, ast.Attribute)):
        name = site.t(stmt.targets[0])
        yield 1.8, "wrap max", site.rep(value, "max(%s, %s)" % (name, text))
        yield 1.8, "wrap min", site.rep(value, "min(%s, %s)" % (name, text))


OPERATORS = (slices, indices, ranges, initial, pairs, extremes)
