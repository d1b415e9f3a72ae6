"""Operators on names: misspelt ones, another variable, a forgotten self, imports."""
import ast
import difflib
import re

from . import imports
from .site import BUILTINS, arguments, class_members
from .source import annotations

NAME_ERROR = re.compile(r"name '(\w+)' is not defined")
UNBOUND = re.compile(r"(?:local variable|free variable) '(\w+)'")
ATTRIBUTE = re.compile(r"'?([\w.]+)'? (?:object )?has no attribute '(\w+)'")
KEYWORD = re.compile(r"(?:unexpected keyword argument '(?=\w+')|(?='\w+' is an invalid keyword argument)')(\w+)'")


def close(word, names, limit=4):
    """Look-alikes, best first, with a cost from 0 (nearly equal) to 1."""
    scored = []
    for name in set(names):
        if name == word or name.startswith("__") and not word.startswith("_"):
            continue
        ratio = difflib.SequenceMatcher(None, word.lower(), name.lower()).ratio()
        if word in name or name in word:
            ratio = max(ratio, .7)
        if ratio >= .55:
            scored.append((1 - ratio, name))
    return [(cost, name) for cost, name in sorted(scored)[:limit]]


def undefined(site):
    """Names that nothing defines: look-alikes, self attributes, imports."""
    hinted = {m.group(1) for h in site.hints for m in [NAME_ERROR.search(h["text"]) or UNBOUND.search(h["text"])] if m}
    scope = set(site.scope())
    for node in site.nodes + annotations(site.stmt):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        name = node.id
        known = name in scope or name in BUILTINS
        if known and name not in hinted:
            continue
        base = .1 if name in hinted else .3
        lookalikes = close(name, site.scope() + list(BUILTINS))
        for cost, other in lookalikes:
            local = 0 if other in site.locals() else (.1 if other in scope else .2)
            yield base + cost + local, "misspelt name %s to %s" % (name, other), site.rep(node, other)
        if site.cls is not None and site.func is not None:
            owner = (arguments(site.func) or ["self"])[0]
            if name in class_members(site.cls):
                yield base, "missing self", site.rep(node, "%s.%s" % (owner, name))
            for cost, other in close(name, class_members(site.cls), 2):
                yield base + .3 + cost, "missing self", site.rep(node, "%s.%s" % (owner, other))
        for cost, spans in imports.missing(site, name, node):
            yield base + cost, "missing import %s" % name, spans
        for other in site.locals():
            yield base + 1.0, "name %s to %s" % (name, other), site.rep(node, other)
        if isinstance(node._parent, ast.Attribute) or not known:
            yield base + 1.4, "name to string", site.rep(node, repr(name))


def bindings(site):
    """A misspelt name where it is bound: nobody reads it, and another spelling is missing."""
    missed = [m.group(1) for h in site.ctx.hints for m in [NAME_ERROR.search(h["text"]) or UNBOUND.search(h["text"])] if m]
    if not missed:
        return
    reads = site.reads()
    for node in site.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            for cost, other in close(node.id, missed, 2):
                yield .1 + cost + (0 if not reads.get(node.id) else .6), "misspelt name %s to %s" % (node.id, other), site.rep(
                    node, other)


def attributes(site):
    """Misspelt attributes and methods, from the object's real names and the project's."""
    hinted = {}
    for hint in site.hints:
        m = ATTRIBUTE.search(hint["text"])
        if m:
            hinted[m.group(2)] = hint["names"] or builtin_names(m.group(1))
    module = site.ctx.module(site.src)
    for node in site.nodes:
        if not isinstance(node, ast.Attribute):
            continue
        name = node.attr
        at = attribute_span(site, node)
        names = hinted.get(name)
        if names is not None:
            owner = set(names) or set(module.attributes)
            if site.cls is not None and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                owner |= set(class_members(site.cls))
            for cost, other in close(name, owner, 5):
                yield .1 + cost, "misspelt attribute %s to %s" % (name, other), [at + (other,)]
            for other in MEANT.get(name, ()):
                if other in owner:
                    yield .3, "attribute %s to %s" % (name, other), [at + (other,)]
            for spans in imports.module_attribute(site, node):
                yield .5, "import of a module's member", spans
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") and site.cls is not None:
            members = class_members(site.cls)
            kind = members.get(name, "read")
            set_here = [m for m, what in members.items() if what != "read"]
            lookalike = dict((o, c) for c, o in close(name, set_here, 3))
            for other, what in members.items():
                if other == name or other.startswith("__") or what == "read" or kind not in (what, "read"):
                    continue
                cost = 1.2 + lookalike.get(other, .5)
                yield cost, "attribute %s to %s" % (name, other), [at + (other,)]
            missed = [m for m, what in members.items() if what == "read"] if isinstance(node.ctx, ast.Store) else []
            for cost, other in close(name, missed, 2):
                yield .3 + cost, "misspelt attribute %s to %s" % (name, other), [at + (other,)]
            for cost, other in close(name, set_here, 2):
                if kind == "read":
                    yield .3 + cost, "misspelt attribute %s to %s" % (name, other), [at + (other,)]
            if isinstance(node.ctx, ast.Load) and name in site.locals():
                yield 1.6, "drop self", site.rep(node, name)
        elif isinstance(node.ctx, ast.Load) and not isinstance(node._parent, ast.Call) and names is None:
            for other in siblings(site, node, module):
                yield 1.8, "attribute %s to %s" % (name, other), [at + (other,)]
        elif isinstance(node.ctx, ast.Store):
            for cost, other in close(name, module.attributes, 2):
                yield 1.3 + cost, "attribute %s to %s" % (name, other), [at + (other,)]


MEANT = {"push": ("append",), "add": ("append", "update"), "append": ("add", "appendleft"), "length": ("__len__",),
         "size": ("__len__",), "contains": ("__contains__",), "remove": ("discard", "pop"), "has_key": ("__contains__",),
         "trim": ("strip",), "toLowerCase": ("lower",), "toUpperCase": ("upper",), "iteritems": ("items",),
         "itervalues": ("values",), "iterkeys": ("keys",), "indexOf": ("index", "find"), "concat": ("extend",),
         "put": ("append", "update"), "has": ("__contains__",), "substr": ("replace",), "charAt": ("index",)}


def siblings(site, node, module):
    """Attributes that the module reads from the same variable."""
    if not isinstance(node.value, ast.Name) or node.value.id in module.imports:
        return []
    return [a for a in module.attributes_of.get(node.value.id, ()) if a != node.attr][:6]


def builtin_names(kind):
    owner = {"str": str, "list": list, "dict": dict, "set": set, "tuple": tuple, "int": int, "float": float,
             "bytes": bytes, "frozenset": frozenset}.get(kind)
    return dir(owner) if owner else []


def attribute_span(site, node):
    end = site.src.span(node)[1]
    return end - len(node.attr.encode("utf-8")), end


def keywords(site):
    """Misspelt keyword arguments and parameters."""
    for node in site.nodes:
        if not isinstance(node, ast.Call):
            continue
        for key in node.keywords:
            if not key.arg:
                continue
            bad = any(m and m.group(1) == key.arg for m in (KEYWORD.search(h["text"]) for h in site.hints))
            accepted = accepted_keywords(site, node)
            if not bad and (not accepted or key.arg in accepted):
                continue
            start = site.src.span(key.value)[0]
            at = site.src.utf8.rfind(key.arg.encode("utf-8"), 0, start)
            span = (at, at + len(key.arg.encode("utf-8")))
            pool = accepted or site.ctx.module(site.src).keywords | COMMON_KEYWORDS | imports.outside_keywords(site, node)
            for cost, other in close(key.arg, pool, 4):
                yield (.1 if bad else .8) + cost, "keyword %s to %s" % (key.arg, other), [span + (other,)]
            for other in accepted or ():
                yield (.6 if bad else 1.3), "keyword %s to %s" % (key.arg, other), [span + (other,)]
            yield (.9 if bad else 2.0), "keyword to positional", [(span[0], start, "")]
    if isinstance(site.stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for spans in parameter_renames(site):
            yield spans


COMMON_KEYWORDS = {"key", "reverse", "default", "sep", "end", "indent", "sort_keys", "encoding", "errors", "maxsplit",
                   "start", "step", "initial", "strict", "ensure_ascii", "newline", "mode", "parents", "exist_ok",
                   "timeout", "repl", "count", "flags", "repeat", "fillvalue", "maxsize", "maxlen", "frozen", "order",
                   "daemon", "target", "args", "kwargs", "text", "check", "capture_output", "shell", "cwd", "env"}


def accepted_keywords(site, call):
    """The parameter names of a function of the project that is called by name."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", None)
    out = set()
    for module in site.ctx.modules.values():
        func = module.functions.get(name)
        if func is not None:
            out |= set(arguments(func))
        cls = module.classes.get(name)
        for owner in [cls] if cls is not None else module.classes.values():
            for stmt in owner.body:
                wanted = "__init__" if cls is not None else name
                if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)) and stmt.name == wanted:
                    out |= set(arguments(stmt)[1:])
    return out


def parameter_renames(site):
    """A parameter whose own body, or whose caller, uses another spelling."""
    func = site.stmt
    wanted = {m.group(1) for h in site.ctx.hints for m in (
        KEYWORD.search(h["text"]), NAME_ERROR.search(h["text"]), UNBOUND.search(h["text"])) if m}
    for arg in func.args.args + func.args.kwonlyargs:
        start = site.src.offset(arg.lineno, arg.col_offset)
        span = (start, start + len(arg.arg.encode("utf-8")))
        for cost, other in close(arg.arg, wanted, 2):
            uses = [n for n in ast.walk(func) if isinstance(n, ast.Name) and n.id == arg.arg]
            spans = [span + (other,)]
            yield .2 + cost, "parameter %s to %s" % (arg.arg, other), spans + [
                site.rep(n, other)[0] for n in uses if not n._fstr]


def definitions(site):
    """A function, method, class or variable that is asked for under another spelling."""
    wanted = set()
    for hint in site.ctx.hints:
        for pattern in (ATTRIBUTE, NAME_ERROR):
            m = pattern.search(hint["text"])
            if m:
                wanted.add(m.group(m.lastindex))
        m = re.search(r"cannot import name '(\w+)'", hint["text"])
        if m:
            wanted.add(m.group(1))
    stmt = site.stmt
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        start = site.src.offset(stmt.lineno, stmt.col_offset)
        at = site.src.find(start, site.src.line_end(stmt.lineno), stmt.name)
        if at:
            for cost, other in close(stmt.name, wanted, 2):
                yield .3 + cost, "definition %s to %s" % (stmt.name, other), [at + (other,)]
            for other, cost in special(stmt.name):
                yield cost, "definition %s to %s" % (stmt.name, other), [at + (other,)]
    elif site.func is None:
        for node in site.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                for cost, other in close(node.id, wanted, 2):
                    yield .3 + cost, "definition %s to %s" % (node.id, other), site.rep(node, other)


SPECIAL = ("__init__", "__str__", "__repr__", "__eq__", "__lt__", "__len__", "__iter__", "__next__", "__getitem__",
           "__setitem__", "__contains__", "__enter__", "__exit__", "__call__", "__hash__", "__add__", "__sub__",
           "__mul__", "__bool__", "__le__", "__gt__", "__ge__", "__ne__", "__delitem__", "__truediv__", "__radd__")


def special(name):
    """The special method that a name with underscores almost is."""
    if name.startswith("_") and name.strip("_") and name not in SPECIAL:
        for cost, other in close(name, SPECIAL, 2):
            if cost < .3:
                yield other, .8 + cost
        if "__%s__" % name.strip("_") in SPECIAL:
            yield "__%s__" % name.strip("_"), .7


def substitution(site):
    """Another variable in scope in place of a name, pruned by the types seen at run time."""
    names, reads = site.locals(), site.reads()
    module = site.ctx.module(site.src)
    for node in site.nodes:
        if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Del):
            continue
        called = isinstance(node._parent, ast.Call) and node._parent.func is node
        if called or (node.id not in names and node.id not in module.variables):
            continue
        kinds = set(site.types.get(node.id, ()))
        store = isinstance(node.ctx, ast.Store)
        for other in names + ([] if store else list(module.variables)):
            if other == node.id:
                continue
            others = set(site.types.get(other, ()))
            cost = 1.5
            if store:
                cost = 2.0
            if kinds and others:
                cost += 0 if kinds & others or numeric(kinds, others) else 1.2
            elif kinds and other in names:
                cost += .4
            if other not in names:
                cost += .4
            if len(node.id) > 2 and close(node.id, [other]):
                cost -= .2
            if other in ("self", "cls"):
                cost += 1.0
            if not store:
                # A real line seldom leaves a variable unread: what nobody else reads belongs here.
                cost += .7 if reads.get(node.id, 0) == 1 and node.id in names else 0
                cost -= .5 if other in names and reads.get(other, 0) == 0 else 0
            if any(isinstance(n, ast.Name) and n.id == other for n in siblings_of(node)):
                cost += .3
            yield cost, "variable %s to %s" % (node.id, other), site.rep(node, other)


def siblings_of(node):
    return list(ast.iter_child_nodes(node._parent))


def numeric(a, b):
    group = {"int", "float", "bool", "Decimal", "Fraction"}
    return bool(a & group and b & group)


def forgotten_self(site):
    """self missing in a method's parameters, or before a local name of the class."""
    stmt = site.stmt
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)) and stmt._cls is not None and stmt._func is None:
        args = stmt.args.args
        static = any(isinstance(d, ast.Name) and d.id in ("staticmethod",) for d in stmt.decorator_list)
        if not static and (not args or args[0].arg not in ("self", "cls")):
            start = site.src.offset(stmt.lineno, stmt.col_offset)
            at = site.src.find(start, site.src.line_end(stmt.end_lineno), "(")
            if at:
                owner = "cls" if stmt.decorator_list and "classmethod" in site.t(stmt.decorator_list[0]) else "self"
                yield .3, "missing self", [(at[1], at[1], owner + (", " if args else ""))]
            line = site.src.line_start(min([stmt.lineno] + [d.lineno for d in stmt.decorator_list]))
            yield .9, "missing staticmethod", [
                (line, line, site.src.indent(stmt) + "@staticmethod" + site.src.newline)]
    if site.cls is not None and site.func is not None:
        members = class_members(site.cls)
        owner = (arguments(site.func) or ["self"])[0]
        for node in site.nodes:
            if isinstance(node, ast.Name) and node.id in members and owner in ("self", "cls"):
                yield (1.3 if node.id in site.locals() else .4), "missing self", site.rep(
                    node, "%s.%s" % (owner, node.id))


OPERATORS = (undefined, bindings, attributes, keywords, definitions, substitution, forgotten_self)
