"""Operators on statements: returns, blocks, order, guards, increments."""
import ast

from .site import arguments, stored
from .source import FUNCTIONS, header_end, is_docstring, paren

SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Delete, ast.AnnAssign, ast.Pass, ast.Break,
          ast.Continue, ast.Assert, ast.Global, ast.Nonlocal)


def lines_of(site, stmt):
    first = min([stmt.lineno] + [d.lineno for d in getattr(stmt, "decorator_list", [])])
    return site.src.line_start(first), site.src.line_end(stmt.end_lineno)


def below(site, stmt, indent, text):
    """A new line behind a statement."""
    at = site.src.line_end(stmt.end_lineno)
    before = "" if site.src.utf8[at - 1:at] in (b"\n", b"\r") else site.src.newline
    return [(at, at, before + indent + text + site.src.newline)]


def above(site, stmt, text):
    at = lines_of(site, stmt)[0]
    return [(at, at, site.src.indent(stmt) + text + site.src.newline)]


def step(site):
    """One level of indentation as the file writes it."""
    if site.func is not None and site.func.body[0].lineno > site.func.lineno:
        inner, outer = site.src.indent(site.func.body[0]), site.src.indent(site.func)
        if inner.startswith(outer) and inner != outer:
            return inner[len(outer):]
    return "    "


def reindent(site, stmt, indent):
    """The lines of a statement with another indentation; None for strings over several lines."""
    start, end = lines_of(site, stmt)
    old = site.src.indent(stmt)
    lines = site.src.utf8[start:end].decode("utf-8", "replace").splitlines(True)
    if any(isinstance(n, (ast.Constant, ast.JoinedStr)) and n.lineno != n.end_lineno for n in ast.walk(stmt) if hasattr(n, "lineno")):
        return None
    out = [indent + l[len(old):] if l.startswith(old) else l for l in lines]
    if out and not out[-1].endswith(("\n", "\r")):
        out[-1] += site.src.newline
    return "".join(out)


def returns(site):
    """A missing return, another value returned."""
    stmt, src = site.stmt, site.src
    if site.func is None or not src.alone(stmt):
        return
    none_seen = any(None in pair for pair in site.ctx.compares) or any("NoneType" in h["text"] for h in site.ctx.hints)
    bonus = -.5 if none_seen and not has_return(site.func) else 0
    names = [n for n in stored(site.func) if n not in arguments(site.func)]
    start = src.span(stmt)[0]
    body, place = site.body_of()
    last = place == len(body) - 1
    if isinstance(stmt, ast.Expr) and not is_docstring(stmt) and not isinstance(stmt.value, (ast.Yield, ast.YieldFrom, ast.Await)):
        yield (1.0 if last else 1.5) + bonus, "missing return", [(start, start, "return ")]
    if isinstance(stmt, ast.Assign) and last and len(stmt.targets) == 1:
        yield 1.5 + bonus, "missing return", [(start, src.span(stmt.value)[0], "return ")]
    if isinstance(stmt, ast.Return):
        if stmt.value is None:
            for name in names + arguments(site.func):
                yield 1.3, "return %s" % name, [src.span(stmt) + ("return " + name,)]
        else:
            for name in names + arguments(site.func):
                if name not in ("self", "cls") and site.t(stmt.value) != name:
                    yield 1.6, "return %s" % name, site.rep(stmt.value, name)
            for text in ("True", "False", "None", "[]", "0", "''"):
                if isinstance(stmt.value, (ast.Constant, ast.List, ast.Dict, ast.Tuple)):
                    yield 2.3, "return %s" % text, site.rep(stmt.value, text)
    if stmt is site.func.body[-1] and not isinstance(stmt, (ast.Return, ast.Raise)) and not is_docstring(stmt):
        ranked = sorted(names, key=lambda n: (n not in ("result", "results", "total", "out", "output", "res", "ans", "count"),
                                              names.index(n)))
        indent = src.indent(stmt)
        for n, name in enumerate(ranked[:6]):
            yield 1.1 + .1 * n + bonus, "missing return %s" % name, below(site, stmt, indent, "return " + name)
        for n, name in enumerate(arguments(site.func)):
            if n < 4:
                yield (1.2 if name == "self" else 1.6) + bonus, "missing return %s" % name, below(site, stmt, indent, "return " + name)
        for text, cost in (("True", 1.5), ("False", 1.5), ("0", 2.0), ("''", 2.2), ("[]", 2.2), ("-1", 2.0)):
            yield cost + bonus, "missing return %s" % text, below(site, stmt, indent, "return " + text)
    elif last and isinstance(stmt, (ast.Assign, ast.AugAssign)) and isinstance(stmt._parent, (ast.If, ast.Try, ast.ExceptHandler, ast.With)):
        for name in names[:4]:
            yield 1.9 + bonus, "missing return %s" % name, below(site, stmt, src.indent(stmt), "return " + name)


def has_return(func):
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(func)) or any(
        isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(func))


def blocks(site):
    """A statement moved out of its block, or into the block before or after it."""
    stmt, src = site.stmt, site.src
    if not src.alone(stmt):
        return
    body, place = site.body_of()
    parent = stmt._parent
    start, end = lines_of(site, stmt)
    inside = isinstance(parent, (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.ExceptHandler, ast.AsyncFor))
    if inside and place == len(body) - 1 and place > 0:
        outer = parent
        if isinstance(parent, ast.ExceptHandler):
            outer = parent._parent
        moved = reindent(site, stmt, src.indent(outer))
        if moved is not None:
            cost = 1.0 if isinstance(stmt, (ast.Return, ast.AugAssign)) else 1.5
            if outer.end_lineno == stmt.end_lineno:
                yield cost, "move out of the block", [(start, end, moved)]
            else:
                at = src.line_end(outer.end_lineno)
                yield cost + .1, "move out of the block", [(start, end, ""), (at, at, moved)]
            outermost = outer._parent
            if isinstance(outermost, (ast.For, ast.While)) and outer.end_lineno == stmt.end_lineno == outermost.end_lineno:
                moved = reindent(site, stmt, src.indent(outermost))
                yield cost + .2, "move out of both blocks", [(start, end, moved)]
    if inside and place == 0 and len(body) > 1:
        moved = reindent(site, stmt, src.indent(parent))
        if moved is not None and parent.body and parent.body[0] is stmt:
            at = lines_of(site, parent)[0]
            yield 1.5, "move before the block", [(at, at, moved), (start, end, "")]
    if place > 0:
        before = body[place - 1]
        if isinstance(before, (ast.For, ast.While, ast.If, ast.With, ast.AsyncFor)):
            tail = before
            while isinstance(getattr(tail, "orelse", None), list) and tail.orelse:
                tail = tail.orelse[-1] if not isinstance(tail.orelse[-1], ast.If) else tail.orelse[-1]
                if not isinstance(tail, ast.If):
                    break
            inner = tail.body[-1] if hasattr(tail, "body") and isinstance(tail, (ast.For, ast.While, ast.If, ast.With)) else tail
            depth = 0
            while inner is not None and inner.end_lineno == before.end_lineno and depth < 3:
                moved = reindent(site, stmt, src.indent(inner))
                if moved is not None:
                    yield 1.3 + .2 * depth, "move into the block", [(start, end, moved)]
                inner = inner.body[-1] if isinstance(inner, (ast.For, ast.While, ast.If, ast.With)) and not getattr(
                    inner, "orelse", None) else None
                depth += 1
    if place + 1 < len(body):
        after = body[place + 1]
        if isinstance(after, (ast.For, ast.While)) and isinstance(stmt, SIMPLE) and not is_docstring(stmt):
            moved = reindent(site, stmt, src.indent(after.body[0]))
            if moved is not None and after.body[0].lineno > after.lineno:
                at = lines_of(site, after.body[0])[0]
                yield 1.5, "move into the loop", [(start, end, ""), (at, at, moved)]


def order(site):
    """A statement swapped with the next one, deleted, or replaced by pass."""
    stmt, src = site.stmt, site.src
    if not src.alone(stmt) or is_docstring(stmt) or not isinstance(stmt, SIMPLE + (ast.If,)):
        return
    body, place = site.body_of()
    if place + 1 < len(body) and isinstance(body[place + 1], SIMPLE + (ast.If,)) and src.alone(body[place + 1]):
        a, b = lines_of(site, stmt), lines_of(site, body[place + 1])
        second = src.utf8[b[0]:b[1]].decode("utf-8", "replace")
        if second.endswith(("\n", "\r")) and a[1] <= b[0]:
            first = src.utf8[a[0]:a[1]].decode("utf-8", "replace")
            yield 1.5, "swap statements", [(a[0], a[1], second), (b[0], b[1], first)]
    start, end = lines_of(site, stmt)
    if len(body) > 1:
        cost = 2.0 if isinstance(stmt, (ast.Break, ast.Continue)) else 2.4
        yield cost, "delete statement", [(start, end, "")]
    if isinstance(stmt, (ast.Break, ast.Continue)):
        word = "continue" if isinstance(stmt, ast.Break) else "break"
        yield 1.0, "to %s" % word, [src.span(stmt) + (word,)]
        yield 2.0, "to pass", [src.span(stmt) + ("pass",)]
    if isinstance(stmt, ast.Pass):
        for word in ("continue", "break"):
            yield 1.8, "to %s" % word, [src.span(stmt) + (word,)]
    if isinstance(stmt, ast.If) and isinstance(stmt._parent, ast.If) and src.utf8[src.span(stmt)[0]:].startswith(b"elif"):
        at = src.span(stmt)[0]
        yield 1.5, "elif to if", [(at, at + 4, "if")]
    if isinstance(stmt, ast.If) and place > 0 and isinstance(body[place - 1], ast.If) and not body[place - 1].orelse:
        at = src.span(stmt)[0]
        if src.utf8[at:at + 2] == b"if":
            yield 1.4, "if to elif", [(at, at + 2, "elif")]
    if isinstance(stmt, ast.If) and not stmt.orelse and src.utf8[src.span(stmt)[0]:].startswith(b"if"):
        at = src.span(stmt)[0]
        if True:
            yield 1.9, "if to while", [(at, at + 2, "while")]


def missing_lines(site):
    """A step of a loop, a break, an assignment or a call that is not there."""
    stmt, src = site.stmt, site.src
    if isinstance(stmt, ast.While) and stmt.body[0].lineno > stmt.lineno:
        last = stmt.body[-1]
        indent = src.indent(stmt.body[0])
        for name in sorted({n.id for n in ast.walk(stmt.test) if isinstance(n, ast.Name)}):
            changed = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for s in stmt.body
                          for n in ast.walk(s))
            for text, cost in (("+= 1", 1.0), ("-= 1", 1.1), ("//= 2", 1.5), ("//= 10", 1.5)):
                yield cost + (1.0 if changed else 0), "missing step", below(site, last, indent, "%s %s" % (name, text))
        yield 1.7, "while to if", [(src.span(stmt)[0], src.span(stmt)[0] + 5, "if")]
    if not src.alone(stmt) or site.func is None:
        return
    if site.loop() is not None and isinstance(stmt, (ast.Assign, ast.AugAssign, ast.Expr)):
        body, place = site.body_of()
        if place == len(body) - 1 and isinstance(stmt._parent, ast.If):
            yield 1.6, "missing break", below(site, stmt, src.indent(stmt), "break")
            yield 1.7, "missing continue", below(site, stmt, src.indent(stmt), "continue")
        for name in counters(site):
            yield 1.8, "missing count", below(site, stmt, src.indent(stmt), "%s += 1" % name)
    for hint in site.hints:
        if "local variable" in hint["text"] or "before assignment" in hint["text"]:
            for name in sorted({n.id for n in site.nodes if isinstance(n, ast.Name)}):
                module = site.ctx.module(src)
                first = site.func.body[0]
                word = "global" if name in module.variables else "nonlocal"
                if name in module.variables or site.func._func is not None:
                    yield .5, "missing %s" % word, above(site, first, "%s %s" % (word, name))
                for text, cost in (("0", 1.5), ("[]", 1.6), ("None", 1.7), ("''", 1.8), ("{}", 1.8), ("1", 1.9)):
                    yield cost, "missing initial value", above(site, first, "%s = %s" % (name, text))


def counters(site):
    """Locals that start as a number before the loop."""
    out = []
    for node in ast.walk(site.func):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant) \
                and isinstance(node.value.value, int) and node.targets[0].id not in out:
            out.append(node.targets[0].id)
    return out[:4]


def headers(site):
    """Mutable default to a None guard; decorators; super().__init__()."""
    func, src = site.stmt, site.src
    if not isinstance(func, FUNCTIONS) or func.body[0].lineno <= func.lineno:
        return
    args = func.args.args
    paired = list(zip(args[len(args) - len(func.args.defaults):], func.args.defaults))
    paired += [(a, d) for a, d in zip(func.args.kwonlyargs, func.args.kw_defaults) if d is not None]
    first = next((s for s in func.body if not is_docstring(s)), func.body[-1])
    for arg, default in paired:
        mutable = isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call))
        if mutable:
            indent = src.indent(first)
            text = "%sif %s is None:%s%s%s%s = %s%s" % (indent, arg.arg, src.newline, indent, step(site) if site.func else "    ",
                                                      arg.arg, site.t(default), src.newline)
            at = lines_of(site, first)[0]
            yield .8, "mutable default", site.rep(default, "None") + [(at, at, text)]
    for name in ("staticmethod", "classmethod", "property"):
        have = [d for d in func.decorator_list if isinstance(d, ast.Name) and d.id == name]
        if have:
            start = src.line_start(have[0].lineno)
            yield 1.9, "drop @%s" % name, [(start, src.line_end(have[0].lineno), "")]
        elif func._cls is not None and name == "property" and len(args) == 1:
            yield 1.7, "missing @%s" % name, above(site, func, "@" + name)
    if func.name == "__init__" and func._cls is not None and func._cls.bases:
        yield 1.3, "missing super().__init__", above(site, first, "super().__init__()")
    for a, b in zip(args, args[1:]):
        if a.arg not in ("self", "cls"):
            start = [src.offset(x.lineno, x.col_offset) for x in (a, b)]
            spans = [(s, s + len(x.arg.encode()), y.arg) for s, x, y in zip(start, (a, b), (b, a))]
            yield 1.7, "swap parameters", spans


def guards(site):
    """A clause added to a condition, a guard for empty or missing input."""
    stmt = site.stmt
    test = getattr(stmt, "test", None)
    if isinstance(stmt, (ast.If, ast.While)):
        text = paren(test, site.t(test)) if isinstance(test, (ast.BoolOp, ast.IfExp)) else site.t(test)
        used = [n.id for n in ast.walk(test) if isinstance(n, ast.Name)]
        for name in [n for n in site.locals() if n in used][:4]:
            yield 2.1, "add clause", site.rep(test, "%s and %s" % (name, text))
            yield 2.2, "add clause", site.rep(test, "not %s or %s" % (name, text))
    if site.func is not None and stmt is next((s for s in site.func.body if not is_docstring(s)), None):
        escaped = any(h["type"] in ("IndexError", "ZeroDivisionError", "TypeError", "ValueError", "KeyError") for h in site.ctx.hints)
        for name in [a for a in arguments(site.func) if a not in ("self", "cls")][:2]:
            for value, cost in (("0", 1.9), ("None", 1.9), ("[]", 1.9), ("''", 2.1), ("False", 2.0), ("True", 2.1), (name, 2.0)):
                line = "if not %s:%s%s%sreturn %s" % (name, site.src.newline, site.src.indent(stmt), step(site), value)
                yield cost + (0 if escaped else .5), "guard", above(site, stmt, line)




OPERATORS = (returns, blocks, order, missing_lines, headers, guards)
