"""Suspicion of every statement from one traced run of the tests (Ochiai)."""
import ast
import difflib
import math
import re

from .site import targets
from .source import FUNCTIONS, header_end

PASSED = "passed"


class Located:
    """Suspicion by file and line, and where exceptions came by."""

    def __init__(self, traced, failing):
        red = [t for t in traced["tests"] if t["id"] in failing]
        green = [t for t in traced["tests"] if t["outcome"] == PASSED]
        self.failed, self.passed = {}, {}
        self.bonus = {}
        self.total = max(1, len(red))
        for test in red:
            count(self.failed, test["lines"])
            self._frames(test.get("failure"))
            for err in test.get("raised", ()):
                self._frames(err, .6)
        for test in green:
            count(self.passed, test["lines"])
        broken = {i: e for i, e in traced["errors"].items()}
        self.imported = {p: set(lines) for p, lines in traced["collect"].items()}
        if broken:
            count(self.failed, traced["collect"])
            for err in list(broken.values()) + traced["raised"]:
                self._frames(err)
        self.words = {w for i in failing for w in re.split(r"[^A-Za-z0-9]+|_", i.rsplit("::", 1)[-1].rsplit(".", 1)[-1].lower())}
        self.names = [i.rsplit("::", 1)[-1].rsplit(".", 1)[-1].split("[")[0].lower() for i in failing]

    def _frames(self, failure, scale=1.0):
        if not failure:
            return
        for depth, (path, line, _) in enumerate(reversed(failure["frames"])):
            value = scale * (.8 if depth == 0 else .25)
            key = (path, line)
            self.bonus[key] = max(self.bonus.get(key, 0), value)

    def line(self, path, line):
        red = self.failed.get(path, {}).get(line, 0)
        if not red:
            return 0.0
        return red / math.sqrt(self.total * (red + self.passed.get(path, {}).get(line, 0)))

    def own(self, path, stmt):
        """The suspicion of the lines of a statement itself, and its bonus."""
        last = header_end(stmt)
        first = min([stmt.lineno] + [d.lineno for d in getattr(stmt, "decorator_list", [])])
        lines = range(first, last + 1)
        susp = max([self.line(path, n) for n in lines] or [0.0])
        return susp, max([self.bonus.get((path, n), 0) for n in lines] or [0.0])

    def at_import(self, path, stmt):
        return stmt.lineno in self.imported.get(path, ())

    def named(self, func):
        """Whether a failing test's name speaks of the function."""
        if func is None or len(func.name) < 3:
            return 0.0
        plain = func.name.strip("_").lower()
        if any(re.search(r"(^|_)%s(_|$)" % re.escape(plain), n) for n in self.names):
            return .35
        parts = [p for p in plain.split("_") if len(p) > 2]
        return .15 if parts and all(p in self.words for p in parts) else 0.0


def count(table, lines):
    for path, numbers in lines.items():
        row = table.setdefault(path, {})
        for n in numbers:
            row[n] = row.get(n, 0) + 1


def rank(ctx, located):
    """Yields (price, suspicion, source, statement), price being what suspicion adds to a cost."""
    out = []
    words = asked_for(ctx)
    for path, src in ctx.sources.items():
        direct = {stmt: located.own(path, stmt) for stmt in src.stmts}
        uses = None
        for stmt in src.stmts:
            susp, bonus = direct[stmt]
            top = stmt._func is None
            if top and not isinstance(stmt, (ast.Import, ast.ImportFrom)) or isinstance(stmt, FUNCTIONS):
                if uses is None:
                    uses = references(ctx, located)
                through = inherited(stmt, direct, uses)
                susp = through if top or isinstance(stmt, FUNCTIONS) else max(susp, through)
                if bonus:
                    susp = max(susp, .8)
            elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
                susp = .5 if not bonus else max(.9, susp)
            asked = wanted(stmt, words)
            susp = max(susp, asked)
            if susp <= 0 and not bonus:
                if not located.at_import(path, stmt):
                    continue
                susp = .3
            price = 2.0 * (1.0 - susp) - bonus - located.named(stmt if isinstance(stmt, FUNCTIONS) else stmt._func)
            out.append((price, susp, src, stmt))
    out.sort(key=lambda r: (r[0], r[2].path, r[3].lineno))
    return out


def references(ctx, located):
    """The highest suspicion of a line that reads a name, over the whole project."""
    out = {}
    for path, src in ctx.sources.items():
        for node in ast.walk(src.tree):
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else getattr(node, "attr", None)
            if name and hasattr(node, "lineno"):
                susp = located.line(path, node.lineno)
                if susp > out.get(name, 0):
                    out[name] = susp
    for name in ctx.test_names:
        out.setdefault(name, .5)
    return out


def asked_for(ctx):
    """The identifiers in the messages of the exceptions that were seen."""
    return {w for h in ctx.hints for w in re.findall(r"[A-Za-z_]\w+", h["text"]) if len(w) > 2}


def wanted(stmt, words):
    """The suspicion of a definition that an exception's message names, or nearly names."""
    names = [stmt.name] if isinstance(stmt, FUNCTIONS + (ast.ClassDef,)) else []
    if stmt._func is None and isinstance(stmt, ast.Assign):
        names = targets(stmt)
    best = 0.0
    for name in names:
        if name in words:
            best = .85
        elif difflib.get_close_matches(name, words, 1, .6):
            best = max(best, .75)
    return best


def inherited(stmt, direct, uses):
    """What ran at import is as suspicious as what uses it."""
    if isinstance(stmt, FUNCTIONS):
        return .85 * max([direct[s][0] for s in stmt.body if s in direct] or [0.0])
    if isinstance(stmt, ast.ClassDef):
        inner = [direct[s][0] for f in stmt.body if isinstance(f, FUNCTIONS) for s in f.body if s in direct]
        return .6 * max(inner + [uses.get(stmt.name, 0.0)])
    names = targets(stmt) + [n.attr for n in ast.walk(stmt) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    return max([.9 * uses.get(n, 0.0) for n in names] + [.7 * direct[stmt][0] if not names else 0.0])
