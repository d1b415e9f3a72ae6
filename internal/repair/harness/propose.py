"""Candidates, lazily and best first."""
import ast
import hashlib
import heapq
import itertools
import re

from . import imports, ops_bounds, ops_calls, ops_expr, ops_names, ops_stmt
from .site import Site

OPERATORS = (ops_expr.OPERATORS + ops_bounds.OPERATORS + ops_names.OPERATORS + imports.OPERATORS
             + ops_calls.OPERATORS + ops_stmt.OPERATORS)
CHEAPEST = .1
IDIOMS = [re.compile(p) for p in (
    r"range\(len\(\w+\)\)", r"range\(1, \w+ \+ 1\)", r"len\([\w.]+\) - 1\b", r"\w+\[-1\]", r"% 2 == 0", r"% 2 == 1", r"// 2\b",
    r"\b(\w+) \+= 1\b", r"\[1:\]", r"\[:-1\]", r"\[:\w+\]", r"\[::-1\]", r"(\w+) if \1\b", r"== 0:", r"\bis None\b", r"\bis not None\b",
    r"return (True|False)$", r"(\w+)\.append\(", r"if not \w+:", r"\w+ = (?:0|\[\]|\{\}|''|\"\")$", r"range\(\w+ \+ 1, ", r"\* 100\b", r"sum\(\w+\) / len\(\w+\)")]
ODD = [re.compile(p) for p in (
    r"--", r"- -", r"\+ -", r"\+ 0\b", r"- 0\b", r"\* 1\b", r"\+ 1 \+ 1", r"- 1 - 1", r"\+ 1 - 1", r"- 1 \+ 1", r"\b(\w+) ([<>=!]=?|[-/%]) \1\b(?!\s*[\[.(])",
    r"not not", r"\b(\w+) = \1$", r"range\(0\)", r"/ 0\b", r"% 1\b", r"% 0\b", r"\b(True|False) (and|or)", r"(and|or) (True|False)", r"[^/]/ \w+ [=!]=")]
# What is added and taken off is one far more often than any other number.
TERM, ONE = re.compile(r"[+-]=? \d+\b(?!\.)"), re.compile(r"[+-]=? 1\b(?!\.)")
ROW = re.compile(r"[(\[](-?\d+(?:, -?\d+){2,})[)\]]")


class Candidate:
    def __init__(self, number, cost, op, src, stmt, spans):
        self.number, self.cost, self.op, self.src, self.stmt, self.spans = number, cost, op, src, stmt, spans
        self.tries = 0
        self.id = self.is_hot = None
        self.alone = self.company = False
        self.line = stmt.lineno
        self.behaviour = None

    def utf8(self):
        return self.src.edited(self.spans)

    def tidy(self):
        """Takes off the parentheses round a new text where they change nothing."""
        bare = [(a, b, text[1:-1] if text[:1] == "(" and text[-1:] == ")" else text) for a, b, text in self.spans]
        if bare == self.spans:
            return
        dumps = []
        for spans in (self.spans, bare):
            try:
                dumps.append(ast.dump(ast.parse(self.src.edited(spans))))
            except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
                return
        if dumps[0] == dumps[1]:
            self.spans = bare

    def hot(self, imported):
        """Whether a swap of code objects reaches the edit."""
        func = self.stmt._func
        if func is None:
            return False
        start, end = self.src.span(func.body[0])[0], self.src.span(func)[1]
        first = self.src.line_start(func.body[0].lineno)
        for a, b, _ in self.spans:
            if a < min(start, first) or b > max(end, self.src.line_end(func.end_lineno)):
                return False
        while func is not None:
            ran = imported.get(self.src.path, ())
            if any(n in ran for n in range(func.body[0].lineno, func.end_lineno + 1)):
                return False
            func = func._func
        return True


def identity(path, new):
    """The name under which a refused candidate is remembered."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape") + b"\0" + new).hexdigest()


def naturalness(before, after):
    """A small price or bonus for the form of the new lines: what is odd in a line is likely its fault."""
    price = 0.0
    for pattern in IDIOMS:
        price -= .15 * (len(pattern.findall(after)) - len(pattern.findall(before)))
    for pattern in ODD:
        more = len(pattern.findall(after)) - len(pattern.findall(before))
        price += .5 * more if more > 0 else .3 * more
    if len(TERM.findall(before)) == len(TERM.findall(after)):
        price += .3 * (len(ONE.findall(before)) - len(ONE.findall(after)))
    price += .2 * (rising(before) - rising(after))
    return max(-.3, min(1.0, price))


def rising(text):
    """How many rows of three or more whole numbers in brackets only rise."""
    rows = [[int(n) for n in row.split(",")] for row in ROW.findall(text)]
    return sum(all(a < b for a, b in zip(row, row[1:])) for row in rows)


class Stream:
    """All candidates in order of cost; statements are expanded when their turn comes."""

    def __init__(self, ctx, ranked):
        self.ctx = ctx
        self.waiting = [(price + CHEAPEST - .3, n, susp, src, stmt, price) for n, (price, susp, src, stmt) in enumerate(ranked)]
        heapq.heapify(self.waiting)
        self.ready = []
        self.seen = set()
        self.units = set()
        self.number = itertools.count()
        self.faults = {}

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            while self.waiting and (not self.ready or self.waiting[0][0] <= self.ready[0][0]):
                self._expand(heapq.heappop(self.waiting))
            if not self.ready:
                raise StopIteration
            candidate = heapq.heappop(self.ready)[2]
            key = self._key(candidate)
            if key is not None and key not in self.seen:
                self.seen.add(key)
                return candidate

    def left(self):
        return len(self.ready) + 40 * len(self.waiting)

    def _key(self, candidate):
        src = candidate.src
        unit = src.unit(candidate.stmt)
        key = src.fingerprint(candidate.spans, unit)
        if key is None:
            return None
        if (src.path, unit) not in self.units:
            self.units.add((src.path, unit))
            same = (src.path, src.fingerprint([], unit))
            self.seen.add(same)
            if (src.path, key) == same:
                return None
        return (src.path, key)

    def _expand(self, entry):
        _, _, susp, src, stmt, price = entry
        site = Site(self.ctx, src, stmt, susp)
        for operator in OPERATORS:
            try:
                for cost, name, spans in operator(site):
                    self._push(price, cost, name, src, stmt, spans)
            except (AttributeError, TypeError, ValueError, IndexError, KeyError, RecursionError) as err:
                # A shape of code that the operator does not know costs its edits there, not the run.
                name = operator.__name__
                self.faults[name] = "%s at %s:%d: %s" % (type(err).__name__, src.path, stmt.lineno, err)

    def _push(self, price, cost, name, src, stmt, spans):
        if any(end < start or end > len(src.utf8) for start, end, _ in spans):
            return
        low, high = min(s[0] for s in spans), max(s[1] for s in spans)
        first = src.utf8.rfind(b"\n", 0, low) + 1
        last = src.utf8.find(b"\n", high)
        last = len(src.utf8) if last < 0 else last
        if high - low < 400:
            before = src.utf8[first:last].decode("utf-8", "replace")
            text, at = [], first
            for start, end, new in sorted(spans, key=lambda s: (s[0], s[1])):
                text.append(src.utf8[at:start].decode("utf-8", "replace") + new)
                at = max(at, end)
            cost += naturalness(before, "".join(text) + src.utf8[at:last].decode("utf-8", "replace"))
        number = next(self.number)
        candidate = Candidate(number, price + cost, name, src, stmt, spans)
        candidate.price, candidate.prior = price, cost
        heapq.heappush(self.ready, (candidate.cost, number, candidate))
