"""Finds branches that give a test's expected value back for the test's own input."""


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
    return value


def literals(tree):
    """All literals of a tree, those inside others included."""
    out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            text = literal(node)
            if text is not None:
                out.add(text)
    return out


def compared(test):
    """The literals that a condition asks to be equal to something."""
    out = set()
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and all(type(op).__name__ in ("Eq", "Is", "In") for op in node.ops):
            for op, side in zip([node.ops[0]] + node.ops, [node.left] + node.comparators):
                members = side.elts if type(op).__name__ == "In" and isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]
                out |= {literal(m) for m in members} - {None}
    return out


def result_of(body):
    """The literal that a branch gives back or assigns in its first statement."""
    first = body[0]
    if isinstance(first, (ast.Return, ast.Assign)) and first.value is not None:
        return literal(first.value)
    return None


def branches(body):
    """The pairs (literals asked for, literal given, line) of all branches, also those of tables looked up in place."""
    out = []
    for top in body:
        for node in ast.walk(top):
            asked, given = set(), None
            if isinstance(node, ast.If):
                asked, given = compared(node.test), result_of(node.body)
            elif isinstance(node, ast.IfExp):
                asked, given = compared(node.test), literal(node.body)
            elif type(node).__name__ == "match_case":
                asked = literals(node.pattern) | pattern(node.pattern)
                given = result_of(node.body)
            elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Dict):
                for key, value in zip(node.value.keys, node.value.values):
                    if key is not None and literal(key) and literal(value):
                        out.append(({literal(key)}, literal(value), node.lineno))
            if asked and given is not None:
                out.append((asked, given, getattr(node, "lineno", 0) or node.body[0].lineno))
    return out


def pattern(node):
    """A sequence pattern of literals as one literal."""
    parts = [literal(p.value) for p in getattr(node, "patterns", ()) if hasattr(p, "value")]
    if parts and len(parts) == len(node.patterns) and None not in parts:
        return {repr(tuple(ast.literal_eval(p) for p in parts))}
    return set()


# What base cases compare with and return: it tells nothing.
COMMON = {repr(v) for v in (0, 1, -1, 2, 0.0, 1.0, "", b"", None, True, False, ())}


def planted(before, after):
    """The added branches that tell something: [line, literals asked for, literal given]."""
    old = branches(before)
    new = [b for b in branches(after) if (b[0], b[1]) not in [(o[0], o[1]) for o in old]]
    gone = len([b for b in old if (b[0], b[1]) not in [(n[0], n[1]) for n in branches(after)]])
    telling = [[line, sorted(asked), given] for asked, given, line in new if not (asked | {given}) <= COMMON]
    return telling if len(new) > gone else []


def spoken(source):
    """The literals of each test of a file; those of the module itself belong to all."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    shared = set()
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            shared |= literals(node)
    return [sorted(literals(f) | shared) for f in functions]


def hard_coded(branches_, tests):
    """The lines of added branches of which some test speaks: of one input that is asked for, and of what is given."""
    known = [set(t) for source in tests for t in spoken(source)]
    return sorted({line for line, asked, given in branches_
                   if any(given in t and any(a in t for a in asked) for t in known)})
