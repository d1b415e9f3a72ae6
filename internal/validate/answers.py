"""Finds code that knows a test's own input or answer instead of computing it."""
import ast

# What base cases compare with and return: it tells nothing.
COMMON = {repr(v) for v in (0, 1, -1, 2, "", b"", None, True, False, ())}

# Calls that leave an input recognizable.
SAME = ("tuple", "list", "set", "frozenset", "dict", "str", "bytes", "int", "float", "repr", "sorted", "abs")
SAME_METHODS = ("strip", "lower", "upper", "casefold", "copy")

EQUALITIES = ("Eq", "NotEq", "Is", "IsNot", "In", "NotIn")


def literal(node):
    """A literal as text, lists and tuples alike; None for anything that is computed."""
    try:
        return repr(level(ast.literal_eval(node)))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def level(value):
    if isinstance(value, (list, tuple)):
        return tuple(level(v) for v in value)
    if isinstance(value, dict):
        return tuple(sorted((repr(level(k)), level(v)) for k, v in value.items()))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def joined(texts):
    """Some literals as one tuple."""
    return "(%s%s)" % (", ".join(texts), "," if len(texts) == 1 else "")


def literals(tree):
    """All literals of a tree, those inside others included."""
    out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            text = literal(node)
            if text is not None:
                out.add(text)
    return out


def is_text(text):
    return text.lstrip("b")[:1] in ("'", '"')


def is_mark(text):
    """A short text is how code tells kinds and symbols apart."""
    return is_text(text) and len(text) <= 5


def given_by(body):
    """The literal that a branch gives back or assigns in its first statement."""
    first = body[0] if body else None
    if isinstance(first, (ast.Return, ast.Assign)) and first.value is not None:
        return literal(first.value)
    return None


def literal_in(text):
    """What a text spells, when it spells a literal."""
    try:
        return repr(level(ast.literal_eval(ast.literal_eval(text))))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text


def pinned(node):
    """The one number between two bounds."""
    low, high = literal(node.left), literal(node.comparators[1])
    try:
        low, high = int(low), int(high)
    except (TypeError, ValueError):
        return set()
    step = 1 if type(node.ops[0]).__name__.startswith("Lt") else -1
    strict = [type(op).__name__ in ("Lt", "Gt") for op in node.ops]
    first, end = low + step * strict[0], high - step * strict[1]
    return {repr(first)} if first == end else set()


def pairs(table):
    """The [key, value] of a literal table, [None, value] for a sequence."""
    if isinstance(table, ast.Call) and getattr(table.func, "id", "") == "dict" and len(table.args) == 1:
        items = [getattr(e, "elts", ()) for e in getattr(table.args[0], "elts", ())]
        return [p for p in ([literal(x) for x in i] for i in items) if len(p) == 2 and None not in p]
    if isinstance(table, ast.Dict):
        found = [[literal(k), literal(v)] for k, v in zip(table.keys, table.values) if k is not None]
        return [p for p in found if None not in p]
    if isinstance(table, (ast.List, ast.Tuple)):
        return [[None, v] for v in map(literal, table.elts) if v is not None]
    return []


class Choices(ast.NodeVisitor):
    """Collects the places where a literal chooses a result, each as
    [kind, function, literals asked for, literal given or pairs of a table, line].

    branch    a branch on a comparison with literals that gives a literal back
    equal     a function's input compared with a literal
    table     a literal table that is looked up by something computed
    constant  a function whose only result is a literal
    """

    def __init__(self, body):
        self.found, self.where, self.inputs, self.tables = [], [], [], [{}]
        self.testing = False
        for node in body:
            self.visit(node)

    def add(self, kind, asked, given, node):
        self.found.append([kind, ".".join(self.where), sorted(asked), given, getattr(node, "lineno", 0)])

    # Scopes.

    def visit_ClassDef(self, node):
        self.where.append(node.name)
        self.generic_visit(node)
        self.where.pop()

    def visit_FunctionDef(self, node):
        self.where.append(node.name)
        self.inside(node, self.params(node.args))
        self.where.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self.inside(node, self.params(node.args))

    @staticmethod
    def params(args):
        every = list(getattr(args, "posonlyargs", ())) + args.args + args.kwonlyargs + [args.vararg, args.kwarg]
        return {a.arg for a in every if a is not None}

    def inside(self, node, params):
        before, self.testing = self.testing, False
        self.inputs.append(params)
        self.tables.append({})
        self.generic_visit(node)
        if isinstance(getattr(node, "body", None), list) and params - {"self", "cls"}:
            self.constant(node)
        self.inputs.pop()
        self.tables.pop()
        self.testing = before

    def constant(self, node):
        returns = [n for n in ast.walk(node) if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom))]
        if len(returns) == 1 and returns[0] in node.body and returns[0].value is not None:
            given = literal(returns[0].value)
            if given is not None:
                self.add("constant", (), given, returns[0])

    def visit_For(self, node):
        self.takes(node.target, node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_For

    def visit_comprehension(self, node):
        self.takes(node.target, node.iter)
        self.visit(node.iter)
        for test in node.ifs:
            self.condition(test)

    def comprehends(self, node):
        for part in node.generators:
            self.visit(part)
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                self.visit(getattr(node, field))

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehends

    def takes(self, target, source):
        """The items of an input are inputs."""
        if self.inputs and any(self.is_input(n) for n in ast.walk(source) if isinstance(n, ast.expr)):
            self.inputs[-1] |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}

    def is_input(self, node):
        """Whether an expression is what a function was handed, in some form."""
        if isinstance(node, ast.Name):
            return any(node.id in names for names in self.inputs)
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self.is_input(node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            return bool(node.elts) and all(self.is_input(e) for e in node.elts)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                return node.func.id in SAME and len(node.args) == 1 and self.is_input(node.args[0])
            return isinstance(node.func, ast.Attribute) and node.func.attr in SAME_METHODS and self.is_input(node.func.value)
        return False

    # Choices.

    def condition(self, test):
        before, self.testing = self.testing, True
        self.visit(test)
        self.testing = before

    def visit_If(self, node):
        self.branch(node, given_by(node.body), given_by(node.orelse))
        self.condition(node.test)
        for child in node.body + node.orelse:
            self.visit(child)

    def visit_IfExp(self, node):
        self.branch(node, literal(node.body), literal(node.orelse))
        self.condition(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_While(self, node):
        self.condition(node.test)
        for child in node.body + node.orelse:
            self.visit(child)

    def visit_Assert(self, node):
        self.condition(node.test)

    def branch(self, node, then, otherwise):
        for given, ops in ((then, ("Eq", "Is", "In")), (otherwise, ("NotEq", "IsNot", "NotIn"))):
            asked = set()
            for part in ast.walk(node.test):
                if isinstance(part, ast.Compare) and all(type(op).__name__ in ops for op in part.ops):
                    for op, side in zip([part.ops[0]] + part.ops, [part.left] + part.comparators):
                        asked |= self.members(op, side)
            if asked and given is not None:
                self.add("branch", asked, given, node)

    @staticmethod
    def members(op, side):
        if type(op).__name__ in ("In", "NotIn") and isinstance(side, (ast.Tuple, ast.List, ast.Set)):
            return {literal(m) for m in side.elts} - {None}
        return {literal(side)} - {None}

    def visit_Compare(self, node):
        left = node.left
        for op, right in zip(node.ops, node.comparators):
            if type(op).__name__ in EQUALITIES:
                inclusion = type(op).__name__ in ("In", "NotIn")
                if self.is_input(left) and not (inclusion and is_text(literal(right) or "")):
                    self.equal(self.members(op, right), left, node)
                elif self.is_input(right) and not inclusion:
                    self.equal(self.members(op, left), right, node)
            left = right
        if len(node.ops) == 2 and self.is_input(node.comparators[0]):
            self.equal(pinned(node), node.comparators[0], node)
        self.generic_visit(node)

    def equal(self, asked, side, node):
        """A text inside a condition is how code tells kinds apart: only where
        the comparison itself is the value is it an answer."""
        if isinstance(side, ast.Call) and getattr(side.func, "id", "") in ("str", "repr"):
            asked = {literal_in(a) for a in asked}
        asked = {a for a in asked if not (self.testing and is_text(a))}
        if asked:
            self.add("equal", asked, None, node)

    def visit_Match(self, node):
        for case in node.cases:
            asked = self.pattern(case.pattern)
            given = given_by(case.body)
            if asked and given is not None:
                self.add("branch", asked, given, case.body[0])
            if self.is_input(node.subject):
                self.equal({a for a in asked if not is_text(a)}, node.subject, case.body[0])
        self.generic_visit(node)

    def pattern(self, node):
        """The literals that a pattern asks for, a sequence of them as one."""
        if hasattr(node, "value"):
            return {literal(node.value)} - {None}
        parts = [sorted(self.pattern(p)) for p in getattr(node, "patterns", ())]
        if type(node).__name__ == "MatchOr":
            return {a for p in parts for a in p}
        if parts and all(len(p) == 1 for p in parts):
            return {joined([p[0] for p in parts])}
        return set()

    # Tables.

    def visit_Assign(self, node):
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if pairs(node.value):
                self.tables[-1][node.targets[0].id] = node.value
            elif self.inputs and self.is_input(node.value):
                self.inputs[-1].add(node.targets[0].id)
        self.generic_visit(node)

    def visit_Subscript(self, node):
        index = getattr(node.slice, "value", node.slice) if type(node.slice).__name__ == "Index" else node.slice
        if isinstance(node.ctx, ast.Load) and literal(index) is None and type(index).__name__ != "Slice":
            self.lookup(node.value, node)
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop", "index") and node.args and literal(node.args[0]) is None:
            self.lookup(node.func.value, node)
        self.generic_visit(node)

    def lookup(self, table, node):
        name = last(table)
        table = next((t[name] for t in reversed(self.tables) if name in t), table)
        entries = pairs(table)
        if entries:
            self.add("table", (), entries, node)


def choices(body):
    return Choices(body).found


def planted(before, after):
    """The choices that are new: not those that stood in another place, nor
    those that a function has in the stead of as many others, which are mended
    literals. An input compared with another literal is new all the same."""
    old, new = choices(before), choices(after)
    known = [[c[0]] + c[2:4] for c in old]
    fresh = []
    for c in new:
        if [c[0]] + c[2:4] in known:
            known.remove([c[0]] + c[2:4])
        else:
            fresh.append(c)
    kept = [[c[0]] + c[2:4] for c in new]
    gone = {}
    for c in old:
        if [c[0]] + c[2:4] in kept:
            kept.remove([c[0]] + c[2:4])
        else:
            gone[tuple(c[:2])] = gone.get(tuple(c[:2]), 0) + 1
    return [c for c in fresh if telling(c) and (
        c[0] == "equal" or sum(f[:2] == c[:2] for f in fresh) > gone.get(tuple(c[:2]), 0))]


def telling(choice):
    kind, _, asked, given, _ = choice
    if kind == "table":
        return any(not {k, v} - {None} <= COMMON for k, v in given)
    return not set(asked) | ({given} - {None}) <= COMMON


class Test:
    """What one test says: all its literals, and those that it hands to each function it calls."""

    def __init__(self, node, shared):
        self.texts = literals(node) | shared
        self.truths = set()
        self.calls = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Assert):
                self.truth(part.test)
            elif isinstance(part, ast.Call):
                if last(part.func) in ("assertTrue", "assertFalse"):
                    self.truths.add(repr(last(part.func) == "assertTrue"))
                self.call(part)

    def truth(self, test):
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if not isinstance(test, ast.Compare):
            self.truths.add(repr(not negated))

    def call(self, node):
        handed = self.calls.setdefault(last(node.func), set())
        args = node.args + [k.value for k in node.keywords]
        for arg in args:
            handed |= literals(arg)
        known = [literal(a) for a in args]
        if None in known:
            handed |= self.texts
        else:
            handed.add(joined(known))


def read_tests(sources):
    """The tests of some files; what stands outside of functions belongs to all of its file."""
    out = []
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        shared = set()
        for node in tree.body:
            if not isinstance(node, SCOPES):
                shared |= literals(node)
        out += [Test(n, shared) for n in ast.walk(tree) if isinstance(n, FUNCTIONS)]
    return out


class Question:
    """One new choice, asked of the tests."""

    def __init__(self, choice, tests):
        self.kind, where, self.asked, self.given, self.line = choice
        self.tests = tests
        names = [n for n in where.split(".") if n]
        # A test hands over what it gives to the function or its class by name,
        # or, when none does so, anything.
        self.names = names if any(n in t.calls for t in tests for n in names) else None

    def tells(self):
        return any(getattr(self, self.kind)(t) for t in self.tests)

    def calls(self, test):
        return self.names is None or any(n in test.calls for n in self.names)

    def handed(self, test):
        if self.names is None:
            return test.texts
        return set().union(*[test.calls.get(n, set()) for n in self.names])

    def hands_over(self, asked, test):
        """Whether a test hands over all of some literals, those apart that tell nothing."""
        rare = {a for a in asked if a not in COMMON and not is_mark(a)}
        return bool(rare) and rare <= self.handed(test)

    def branch(self, test):
        if self.given in COMMON:
            return self.given in test.texts | test.truths and self.hands_over(self.asked, test)
        return self.given in test.texts and any(a in test.texts for a in self.asked)

    def equal(self, test):
        return self.hands_over(self.asked, test)

    def table(self, test):
        """A table of which the tests know at least half of what tells something."""
        rare = [p for p in self.given if not set(p) - {None} <= COMMON]
        if not any(self.pair(p, test) for p in rare):
            return False
        return 2 * sum(any(self.pair(p, t) for t in self.tests) for p in rare) >= len(rare)

    def pair(self, pair, test):
        key, value = pair
        if value in COMMON:
            return self.hands_over([key], test)
        return self.calls(test) and value in test.texts and (key is None or key in test.texts)

    def constant(self, test):
        return self.calls(test) and self.given in test.texts


def hard_coded(found, sources):
    """The lines of new choices of which some test speaks."""
    tests = read_tests(sources)
    spoken = {}
    for question in [Question(c, tests) for c in found]:
        if question.line not in spoken and question.tells():
            spoken[question.line] = question.kind
    return [{"line": line, "kind": spoken[line]} for line in sorted(spoken)]
