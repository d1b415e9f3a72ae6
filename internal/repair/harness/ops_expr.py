"""Operators on expressions: comparison, arithmetic, logic, constants, bounds.

Every operator is a function of a Site and yields (cost, name, spans).  A lower
cost is tried earlier; the costs are priors over one-line bugs in small
programs, not tuned to any test.
"""
import ast

from .source import paren

COMPARE = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}
COMPARE_TO = {
    "<": [("<=", .8), (">", 1.0), (">=", 1.2), ("!=", 1.9), ("==", 1.9)],
    "<=": [("<", .8), (">=", 1.0), (">", 1.2), ("==", 1.8), ("!=", 2.1)],
    ">": [(">=", .8), ("<", 1.0), ("<=", 1.2), ("!=", 1.9), ("==", 1.9)],
    ">=": [(">", .8), ("<=", 1.0), ("<", 1.2), ("==", 1.8), ("!=", 2.1)],
    "==": [("!=", 1.0), ("<=", 1.6), (">=", 1.6), ("in", 1.8), ("<", 1.9), (">", 1.9), ("is", 2.2)],
    "!=": [("==", 1.0), ("<", 1.7), (">", 1.7), ("not in", 1.8), ("<=", 2.0), (">=", 2.0)],
    "is": [("is not", 1.0), ("==", 1.1)],
    "is not": [("is", 1.0), ("!=", 1.1)],
    "in": [("not in", 1.0), ("==", 1.8)],
    "not in": [("in", 1.0), ("!=", 1.8)],
}
ARITH = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^",
}
ARITH_TO = {
    "+": [("-", .8), ("*", 1.1), ("/", 1.7), ("//", 1.8), ("%", 1.9), ("|", 1.9), ("**", 2.0)],
    "-": [("+", .8), ("*", 1.4), ("/", 1.6), ("%", 1.7), ("//", 1.7), ("**", 2.1)],
    "*": [("+", 1.0), ("/", 1.0), ("**", 1.1), ("//", 1.1), ("-", 1.4), ("%", 1.6), ("@", 2.2)],
    "/": [("//", .8), ("*", .9), ("%", 1.2), ("-", 1.5), ("+", 1.6), ("**", 2.0)],
    "//": [("/", .8), ("%", .9), ("*", 1.0), ("-", 1.5), ("+", 1.6)],
    "%": [("//", .9), ("/", 1.1), ("*", 1.3), ("-", 1.4), ("+", 1.5)],
    "**": [("*", .9), ("+", 1.6), ("//", 1.7), ("/", 1.7)],
    "@": [("*", 1.0)],
    "<<": [(">>", .8), ("*", 1.5)], ">>": [("<<", .8), ("//", 1.6)],
    "&": [("|", .8), ("^", 1.0), ("-", 1.4), ("and", 1.8)],
    "|": [("&", .8), ("^", 1.0), ("+", 1.5), ("or", 1.8)],
    "^": [("&", 1.0), ("|", 1.0), ("**", 1.1)],
}


def compare(site):
    """Swaps one comparison operator of a chain."""
    for node in site.nodes:
        if not isinstance(node, ast.Compare):
            continue
        left = node.left
        for op, right in zip(node.ops, node.comparators):
            word = COMPARE[type(op)]
            at = site.gap(left, right, word)
            if at:
                for other, cost in COMPARE_TO[word]:
                    if other in ("is",) and not isinstance(right, ast.Constant):
                        continue
                    yield cost, "comparison %s to %s" % (word, other), [(at[0], at[1], other)]
            if len(node.ops) == 1 and site.compound_condition(node):
                yield 2.4, "negate comparison", site.rep(node, "not (%s)" % site.t(node))
            left = right


def arithmetic(site):
    """Swaps a binary operator, by text and, where precedence differs, by tree."""
    for node in site.nodes:
        if not isinstance(node, ast.BinOp):
            continue
        word = ARITH[type(node.op)]
        at = site.gap(node.left, node.right, word)
        if not at or (word == "%" and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)):
            continue
        text = word == "+" and "str" in site.kinds_of(node.left) | site.kinds_of(node.right)
        for other, cost in ARITH_TO[word]:
            if text and other != "*":
                cost += 1.5
            yield cost, "operator %s to %s" % (word, other), [(at[0], at[1], other)]
            left, right = paren(node.left, site.t(node.left)), paren(node.right, site.t(node.right))
            yield cost + .1, "operator %s to %s" % (word, other), site.rep(
                node, "(%s %s %s)" % (left, other, right))
        if word in ("-", "/", "//", "%", "**", "<<", ">>") or (word == "+" and text):
            yield 1.1, "swap operands", site.swap(node.left, node.right)
        for keep, cost in ((node.left, 1.5), (node.right, 1.9)):
            drop = node.right if keep is node.left else node.left
            if isinstance(drop, ast.Constant) and drop.value == 1 and word in "+-":
                cost = .9
            yield cost, "drop operand", site.rep(node, paren(keep, site.t(keep)))
        for reassociated in reassociate(site, node, word):
            yield reassociated
        if word == "//":
            yield 2.0, "round up", site.rep(node, "-(-%s // %s)" % (paren(node.left, site.t(node.left)), site.t(node.right)))


def reassociate(site, node, word):
    """(a op b) op c against a op (b op c), the forgotten pair of parentheses."""
    inner = node.left
    if isinstance(inner, ast.BinOp):
        other = ARITH[type(inner.op)]
        if other != word or word in ("-", "/", "//", "**"):
            a, b, c = inner.left, inner.right, node.right
            text = "%s %s (%s %s %s)" % (paren(a, site.t(a)), other, site.t(b), word, paren(c, site.t(c)))
            yield 1.3, "parentheses", site.rep(node, "(" + text + ")")
    inner = node.right
    if isinstance(inner, ast.BinOp):
        other = ARITH[type(inner.op)]
        a, b, c = node.left, inner.left, inner.right
        text = "(%s %s %s) %s %s" % (paren(a, site.t(a)), word, paren(b, site.t(b)), other, paren(c, site.t(c)))
        yield 1.3, "parentheses", site.rep(node, "(" + text + ")")


def augmented(site):
    """Swaps an augmented assignment's operator, or assignment against it."""
    stmt = site.stmt
    if isinstance(stmt, ast.AugAssign):
        word = ARITH[type(stmt.op)]
        at = site.gap(stmt.target, stmt.value, word + "=")
        if at:
            for other, cost in ARITH_TO[word]:
                if other not in ("and", "or"):
                    yield cost, "operator %s= to %s=" % (word, other), [(at[0], at[1], other + "=")]
            yield 1.2, "operator %s= to =" % word, [(at[0], at[1], "=")]
            if word == "-":
                yield 1.7, "swap operands", [(at[0], at[1], "= %s -" % site.t(stmt.value)),
                                             site.rep(stmt.value, site.t(stmt.target))[0]]
    elif isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
        target = stmt.targets[0]
        if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            at = site.gap(target, stmt.value, "=")
            if at:
                in_loop = site.loop() is not None
                kinds = site.kinds_of(target)
                for other, cost in (("+=", 1.2), ("-=", 1.5), ("*=", 1.6), ("|=", 2.0), ("//=", 2.0)):
                    if not kinds and isinstance(target, ast.Name) and not in_loop:
                        cost += .5
                    yield cost + (0 if in_loop else .5), "operator = to %s" % other, [(at[0], at[1], other)]


def logic(site):
    """and/or swap, negation dropped or added, a clause dropped."""
    for node in site.nodes:
        if isinstance(node, ast.BoolOp):
            word = "and" if isinstance(node.op, ast.And) else "or"
            other = "or" if word == "and" else "and"
            gaps = [site.gap(a, b, word) for a, b in zip(node.values, node.values[1:])]
            if all(gaps):
                yield .8, "%s to %s" % (word, other), [(a, b, other) for a, b in gaps]
                if len(gaps) > 1:
                    for a, b in gaps:
                        yield 1.1, "%s to %s" % (word, other), [(a, b, other)]
            inner = (" %s " % other).join(paren(v, site.t(v)) for v in node.values)
            yield .9, "%s to %s" % (word, other), site.rep(node, "(" + inner + ")")
            for regrouped in regroup(site, node, word, other):
                yield regrouped
            for value in node.values:
                rest = [v for v in node.values if v is not value]
                yield 1.9, "drop clause", site.rep(node, (" %s " % word).join(site.t(v) for v in rest))
                if not isinstance(value, ast.UnaryOp):
                    yield 1.5, "add not", site.rep(value, "not " + paren(value, site.t(value)))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield 1.0, "drop not", site.rep(node, site.t(node.operand))
            yield 2.0, "not over the whole", site.rep(node, "(not (%s))" % site.t(node.operand))
    for node in conditions(site):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            continue
        if isinstance(node, ast.Compare):
            continue
        yield 1.2, "add not", site.rep(node, "not " + paren(node, site.t(node)))


def regroup(site, node, word, other):
    """a or (b and c) against (a or b) and c: the pair of parentheses that is not there, or is elsewhere."""
    if len(node.values) != 2:
        return
    first, last = node.values
    if isinstance(last, ast.BoolOp) and type(last.op) is not type(node.op):
        rest = (" %s " % other).join(paren(v, site.t(v)) for v in last.values[1:])
        yield 1.2, "parentheses", site.rep(node, "((%s %s %s) %s %s)" % (
            site.t(first), word, site.t(last.values[0]), other, rest))
    if isinstance(first, ast.BoolOp) and type(first.op) is not type(node.op):
        rest = (" %s " % other).join(paren(v, site.t(v)) for v in first.values[:-1])
        yield 1.2, "parentheses", site.rep(node, "(%s %s (%s %s %s))" % (
            rest, other, site.t(first.values[-1]), word, site.t(last)))


def conditions(site):
    """The expressions of a statement that are used for their truth."""
    stmt = site.stmt
    test = getattr(stmt, "test", None)
    if test is not None:
        yield test
    if isinstance(stmt, ast.Return) and stmt.value is not None:
        if isinstance(stmt.value, (ast.Call, ast.Name, ast.Attribute)) and "bool" in site.kinds_of(stmt.value) | {"bool"}:
            yield stmt.value
    for node in site.nodes:
        if isinstance(node, ast.IfExp):
            yield node.test
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test


def condition_shape(site):
    """Drops a comprehension's filter, swaps the arms of a conditional expression."""
    for node in site.nodes:
        if isinstance(node, ast.IfExp):
            yield 1.2, "swap arms", site.swap(node.body, node.orelse)
            yield 2.1, "keep one arm", site.rep(node, "(%s)" % site.t(node.body))
            yield 2.1, "keep one arm", site.rep(node, "(%s)" % site.t(node.orelse))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and len(node.generators) == 1:
            gen = node.generators[0]
            if gen.ifs:
                start, end = site.src.span(gen.iter)[1], site.src.span(gen.ifs[-1])[1]
                yield 2.2, "drop filter", [(start, end, "")]
            elif isinstance(gen.target, ast.Name):
                yield 2.2, "add filter", [(site.src.span(gen.iter)[1],) * 2 + (" if %s" % site.t(gen.target),)]


SIGNS = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


def signs(site):
    """Drops or adds a sign."""
    for node in site.nodes:
        if isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
            yield 1.2, "drop sign", site.rep(node, paren(node.operand, site.t(node.operand)))
            if not isinstance(node.operand, ast.Constant):
                other = "-" if isinstance(node.op, ast.Invert) else "~"
                yield 1.9, "other sign", site.rep(node, other + paren(node.operand, site.t(node.operand)))
        elif isinstance(node, (ast.Name, ast.Call, ast.Subscript, ast.Attribute, ast.BinOp)) and \
                isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and site.is_value(node):
            kinds = site.kinds_of(node)
            if not kinds or kinds & {"int", "float", "bool", "Decimal", "Fraction"}:
                cost = 1.8 if isinstance(node._parent, (ast.Return, ast.Assign, ast.keyword, ast.Tuple)) else 2.4
                yield cost, "add sign", site.rep(node, "-" + paren(node, site.t(node)))


ROUND = (0, 1, -1, 2, 3, 4, 5, 8, 9, 10, 12, 16, 24, 26, 60, 7, 28, 29, 30, 31, 32, 90, 100, 180, 255, 256, 273.15,
         360, 365, 366, 400, 1000, 1024, 3600, 86400, 0.5, 0.1, 0.01)


def numbers(site):
    """Another number: plus or minus one, its sign, a neighbour, one that is seen nearby."""
    for node in site.nodes:
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
            continue
        value = node.value
        if not isinstance(value, (int, float)) or abs(value) > 1e12:
            continue
        text = site.t(node)
        bound = site.is_bound(node)
        options = []
        if isinstance(value, int):
            data = site.func is None and not isinstance(site.stmt, ast.Expr)
            base = .8 if data or bound and not site.starts_range(node) else 1.0
            options += [(value + 1, base), (value - 1, base + .02)]
            options += [(value + 2, 1.9), (value - 2, 1.9), (value * 10, 1.7), (value * 2, 1.8), (value * 100, 2.0)]
            options += [(value // 10, 1.7)] if value % 10 == 0 else []
            options += [(value // 2, 1.8)] if value % 2 == 0 else []
            options += [(value // 100, 1.9)] if value % 100 == 0 else []
            digits = str(abs(value))
            for i in range(len(digits) - 1):
                swapped = digits[:i] + digits[i + 1] + digits[i] + digits[i + 2:]
                options.append((int(swapped), 1.8))
            options += [(value + 10 ** i, 2.1) for i in range(1, len(digits))]
            options += [(value - 10 ** i, 2.1) for i in range(1, len(digits))]
        else:
            options += [(shown(value * k), c) for k, c in ((10, 1.5), (.1, 1.5), (100, 1.7), (.01, 1.7), (2, 1.9),
                                                           (.5, 1.9))]
            options += [(shown(value + k), c) for k, c in ((1, 1.2), (-1, 1.2), (.1, 1.7), (-.1, 1.7), (.05, 2.0),
                                                           (-.05, 2.0), (.5, 1.9), (-.5, 1.9))]
            options += [(shown(1 - value), 1.9)] + [(n, 1.7) for n in misread(text)]
        options += [(0, 1.2), (1, 1.2)] + ([(-value, 1.5)] if value else [])
        options += [(r, 2.1) for r in ROUND]
        options += [(n, 1.9) for n in site.ctx.numbers_near(site)]
        for other, cost in sorted(unique(options, value), key=lambda o: o[1]):
            shape = repr(other) if other >= 0 else ("(%r)" % other if isinstance(node._parent, ast.BinOp) else repr(other))
            yield cost + site.literal_penalty(node), "constant %s to %s" % (text, shape), site.rep(node, shape)


def misread(text):
    """The numbers that differ from a decimal one by a digit, a zero behind the point, or the exponent."""
    head, mark, tail = text.lower().partition("e")
    whole, _, part = head.partition(".")
    texts = [whole + ".0" + part + mark + tail]
    if part.startswith("0"):
        texts.append(whole + "." + part[1:] + mark + tail)
    for i, digit in enumerate(head):
        if digit.isdigit():
            texts += [head[:i] + str(int(digit) + d) + head[i + 1:] + mark + tail for d in (1, -1) if 0 <= int(digit) + d <= 9]
    if mark:
        texts += ["%se%d" % (head, int(tail) + d) for d in (1, -1, 2, -2, 3, -3)]
    for other in texts:
        try:
            yield float(other)
        except ValueError:
            continue


def shown(value):
    return float("%.10g" % value)


def unique(options, value):
    best = {}
    for other, cost in options:
        key = (other, type(other))
        if (other != value or type(other) is not type(value)) and cost < best.get(key, (0, 99))[1]:
            best[key] = (other, cost)
    return best.values()


def words(site):
    """True/False and None."""
    for node in site.nodes:
        if not isinstance(node, ast.Constant):
            continue
        if isinstance(node.value, bool):
            cost = 1.4 if isinstance(node._parent, ast.Return) else 1.0
            yield cost, "constant %s to %s" % (node.value, not node.value), site.rep(node, str(not node.value))
            yield 2.3, "constant to None", site.rep(node, "None")
        elif node.value is None and not isinstance(node._parent, (ast.Compare, ast.Expr)):
            for other, cost in (("0", 1.6), ("[]", 1.6), ("''", 1.7), ("{}", 1.8), ("False", 1.8), ("1", 2.0),
                                ("True", 2.1)):
                yield cost, "constant None to %s" % other, site.rep(node, other)


def offsets(site):
    """An expression plus or minus one, first where it is a bound."""
    for node in site.nodes:
        if not isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.BinOp, ast.Subscript, ast.IfExp)):
            continue
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or not site.is_value(node):
            continue
        kinds = site.kinds_of(node)
        if kinds and not kinds & {"int", "float", "bool", "Decimal", "Fraction"}:
            continue
        bound = site.is_bound(node)
        if bound:
            cost = 1.0
        elif site.is_truth(node):
            cost = 2.4
        elif isinstance(node._parent, (ast.Return, ast.Compare, ast.Assign, ast.AugAssign, ast.BinOp)):
            cost = 1.6 if kinds else 1.9
        else:
            cost = 2.3
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            if isinstance(node.right, ast.Constant):
                continue  # another constant is the same edit
        if not bound and isinstance(node._parent, ast.BinOp) and isinstance(node, ast.BinOp):
            cost += .4
        text = paren(node, site.t(node)) if not isinstance(node, ast.BinOp) or not isinstance(
            node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod)) else site.t(node)
        wrap = isinstance(node._parent, (ast.BinOp, ast.UnaryOp))
        for sign in ("-", "+"):
            new = "%s %s 1" % (text, sign)
            yield cost + (.05 if sign == "+" else 0), "%s 1" % sign, site.rep(node, "(%s)" % new if wrap else new)


OPERATORS = (compare, arithmetic, augmented, logic, condition_shape, signs, numbers, words, offsets)
