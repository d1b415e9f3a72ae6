"""Judges the syntax and the structure of Python sources.

Reads one JSON object a line from standard input and answers each with one on
standard output. Nothing is ever executed: sources are bytes that are parsed
and compiled. Runs on every Python from 3.6 on.

Request:  {"id": n, "old": base64 or null, "new": base64}
Answer:   {"id": n, "ok": bool, "error": {...}, "old_error": {...}, ...}
"""
import ast
import base64
import binascii
import difflib
import gc
import json
import sys
import warnings

BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = FUNCTIONS + (ast.ClassDef,)
WATCHED = {
    "os._exit": "os._exit", "posix._exit": "os._exit", "atexit": "atexit",
    "sys.modules": "sys.modules", "_pytest": "_pytest", "gc": "gc",
    "inspect": "inspect", "ctypes": "ctypes", "pytest": "pytest", "unittest": "unittest",
    "builtins": "builtins", "__builtins__": "builtins", "runpy": "runpy",
    "sys.settrace": "sys.settrace", "sys.setprofile": "sys.setprofile", "sys.meta_path": "sys.meta_path",
    "sys.path_hooks": "sys.path_hooks", "sys._getframe": "frames", "sys._current_frames": "frames",
    "os.fork": "os.fork", "os.write": "os.write", "os.dup2": "os.dup2", "os.kill": "os.kill",
    "os.abort": "os.abort", "os.fdopen": "os.fdopen", "os.closerange": "os.closerange",
}

# Attributes and names through which code reaches what it was not handed.
REACHING = {
    "f_back": "frames", "f_locals": "frames", "f_globals": "frames", "tb_frame": "frames", "gi_frame": "frames",
    "cr_frame": "frames", "_getframe": "frames", "__subclasses__": "__subclasses__", "__globals__": "__globals__",
    "__closure__": "__closure__", "cell_contents": "__closure__", "__code__": "__code__",
    "get_objects": "gc", "get_referrers": "gc", "exec": "exec", "eval": "eval", "__import__": "__import__",
}

COMPARISONS = ("__eq__", "__ne__")


def limit_resources(memory):
    """Bounds what a hostile source can take; a platform may lack the module."""
    try:
        import resource
    except ImportError:
        return
    for name, value in (("RLIMIT_AS", memory), ("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 0)):
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):
            pass


def describe(error, lines):
    """Turns an exception of the compiler into a plain record."""
    line = getattr(error, "lineno", None) or 0
    text = lines[line - 1] if 0 < line <= len(lines) else b""
    return {
        "type": type(error).__name__,
        "msg": str(getattr(error, "msg", None) or error)[:300],
        "line": line,
        "text": text[:400].decode("utf-8", "replace"),
    }


def cut(source):
    """Cuts a source into lines as the compiler counts them."""
    return source.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def first_line(node):
    return min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", ())])


class Group:
    """A run of statements with the exact lines it stands on."""

    def __init__(self, nodes, start, last, lines):
        self.nodes, self.start, self.last = nodes, start, last
        self.text = b"\n".join(lines[start - 1:last])


def group(body, lines):
    """Cuts statements into runs that share no line. Without end positions
    (before Python 3.8) the whole body is one run."""
    groups = []
    start, last, nodes = 0, 0, []
    for node in body:
        first = first_line(node)
        end = getattr(node, "end_lineno", None)
        if nodes and (end is None or first <= last):
            nodes.append(node)
            last = max(last, end or first)
            continue
        if nodes:
            groups.append(Group(nodes, start, last, lines))
        start, last, nodes = first, end or first, [node]
    if nodes:
        last = last if getattr(nodes[-1], "end_lineno", None) else len(lines)
        groups.append(Group(nodes, start, last, lines))
    return groups


def same_ends(a, b):
    """Counts the lines that two sources share at their beginning and end."""
    most = min(len(a), len(b))
    front = 0
    while front < most and a[front] == b[front]:
        front += 1
    back = 0
    while back < most - front and a[-1 - back] == b[-1 - back]:
        back += 1
    return front, back


class Module:
    """One parsed source: its top-level statements, grouped by whole lines."""

    def __init__(self, source, base=None):
        self.lines = cut(source)
        self.tree = None
        self.error = None
        self.grown = False
        self.groups = []
        self.future = False
        # Statements keep their meaning whatever stands round them, but for
        # the declared encoding.
        self.plain = not source.startswith(b"\xef\xbb\xbf") and b"coding" not in b"".join(self.lines[:2])
        if base is not None and self.grow(base):
            self.grown = True
            return
        self.parse(source)

    def parse(self, source):
        self.tree = None
        try:
            self.tree = ast.parse(source, "<candidate>")
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
            self.error = describe(error, self.lines)
            return
        self.groups = group(self.tree.body, self.lines)
        self.future = any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in self.tree.body)

    def grow(self, base):
        """Parses only the statements between those that the base begins and
        ends with as well. Says no where that is not surely the same as parsing
        everything: then everything is parsed, and errors are found there."""
        if base.error or base.future or not (self.plain and base.plain) or sys.version_info < (3, 8):
            return False
        front, back = same_ends(base.lines, self.lines)
        head = [g for g in base.groups if g.last <= front]
        tail = [g for g in base.groups if g.start > len(base.lines) - back]
        start = head[-1].last if head else 0
        end = len(self.lines) - (len(base.lines) - tail[0].start + 1) if tail else len(self.lines)
        middle = self.lines[start:end]
        if any(ends and ends[-1].endswith(b"\\") for ends in (self.lines[:start], middle)):
            return False
        try:
            part = ast.parse(b"\n" * start + b"\n".join(middle) + (b"\n" if tail else b""), "<candidate>")
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
            return False
        if any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in part.body):
            return False
        self.groups = head + group(part.body, self.lines) + tail
        self.tree = ast.Module(body=[n for g in self.groups for n in g.nodes], type_ignores=[])
        return True

    def beyond(self, other):
        """The statements that the other module does not have as well. A class
        that both have keeps only the members that differ."""
        if other is None or self.future or other.future:
            return list(self.tree.body)
        known = {g.text for g in other.groups}
        classes = {n.name: n for n in other.tree.body if isinstance(n, ast.ClassDef)}
        out = []
        for run in self.groups:
            if run.text in known:
                continue
            nodes = run.nodes
            twin = classes.get(getattr(nodes[0], "name", None))
            if len(nodes) == 1 and isinstance(nodes[0], ast.ClassDef) and twin is not None:
                nodes = [self.members_beyond(nodes[0], twin, other)]
            out.extend(nodes)
        return out

    def members_beyond(self, node, twin, other):
        known = {g.text for g in group(twin.body, other.lines)}
        body = [n for g in group(node.body, self.lines) if g.text not in known for n in g.nodes]
        fields = {name: getattr(node, name, None) for name in node._fields}
        fields["body"] = body or [ast.copy_location(ast.Pass(), node)]
        return ast.copy_location(ast.ClassDef(**fields), node)

    def compile(self, source, changed=None):
        """Compiles the module as a whole: what a statement may say can depend
        on the others. Of those only global and the future imports look beyond
        their own, so without them the changed statements are enough. An error
        in a grown module, whose nodes have the base's lines, is looked up in
        the source."""
        tree = self.tree
        if changed is not None and self.plain and not self.future and b"global" not in source:
            tree = ast.Module(body=changed, type_ignores=[]) if sys.version_info >= (3, 8) else ast.Module(body=changed)
        try:
            compile(tree, "<candidate>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
            if not self.grown:
                self.error = describe(error, self.lines)
                return
            self.grown = False
            self.parse(source)
            if self.error is None:
                self.compile(source)


def inner(node):
    """The statements directly inside a statement."""
    for field in BODIES:
        for child in getattr(node, field, None) or ():
            if isinstance(child, ast.stmt):
                yield child
            else:
                for statement in child.body:
                    yield statement


class Facts:
    """What the changed statements of one side define, do and mention."""

    def __init__(self, body, imported=()):
        self.defs = {}
        self.names = {}
        self.functions = {}
        self.bare = []
        self.watched = {}
        self.imported = set(imported)
        self.module = []
        for node in body:
            self.top(node, "")
            self.watch(node)

    def top(self, node, prefix, guarded=False):
        """Collects the definitions of a module or class body. A statement is
        guarded inside a try block, where naming a thing probes for it."""
        if isinstance(node, SCOPES):
            name = prefix + node.name + self.role(node)
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            self.defs.setdefault(name, [kind, node.lineno])
            if kind == "function":
                self.functions.setdefault(name, (node, self.flat(node.body)))
                self.bare_in(node.body, False)
                return
            for child in node.body:
                self.top(child, prefix + node.name + ".")
            return
        if not prefix:
            self.module.append(self.entry(node))
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and not prefix:
            for target in getattr(node, "targets", None) or [node.target]:
                for leaf in ast.walk(target):
                    if isinstance(leaf, ast.Name):
                        self.names.setdefault(leaf.id, node.lineno)
        self.bare_one(node, guarded)
        guarded = guarded or self.is_try(node)
        for child in inner(node):
            self.top(child, prefix, guarded)

    @staticmethod
    def role(node):
        """Keeps a property's setter apart from its getter."""
        for deco in node.decorator_list:
            if isinstance(deco, ast.Attribute) and deco.attr in ("setter", "deleter", "getter"):
                return "@" + deco.attr
        return ""

    def flat(self, body):
        """Lists the statements of a function in order, nested ones included.
        A text on its own is a remark and no statement."""
        out = []
        for node in body:
            if not (isinstance(node, ast.Expr) and self.is_text(node.value)):
                out.append(self.entry(node))
            out.extend(self.flat(inner(node)))
        return out

    def entry(self, node):
        return self.mark(node), node.lineno, self.tokens(node)

    @staticmethod
    def tokens(node):
        """What a statement itself speaks of: attributes, texts, calls."""
        found = set()
        stack = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        for item in getattr(node, "items", None) or ():
            stack.append(item.context_expr)
        while stack:
            at = stack.pop()
            if isinstance(at, ast.Attribute):
                found.add(at.attr)
            elif isinstance(at, ast.Call) and isinstance(at.func, ast.Name):
                found.add(at.func.id)
            elif type(at).__name__ in ("Constant", "Str"):
                value = getattr(at, "value", getattr(at, "s", None))
                if isinstance(value, str) and value:
                    found.add(value)
            stack.extend(ast.iter_child_nodes(at))
        return found

    @staticmethod
    def is_text(value):
        return isinstance(getattr(value, "value", getattr(value, "s", None)), str) and not isinstance(
            value, (ast.Attribute, ast.Await, ast.Yield, ast.Starred))

    @staticmethod
    def mark(node):
        """A fingerprint of a statement without the statements inside it."""
        parts = [type(node).__name__]
        for field in node._fields:
            value = getattr(node, field, None)
            if field in BODIES or value is None or field == "type_comment":
                continue
            for item in value if isinstance(value, list) else (value,):
                parts.append(ast.dump(item) if isinstance(item, ast.AST) else repr(item))
        return "|".join(parts)

    def bare_in(self, body, guarded):
        """Finds statements that are words and do nothing."""
        for node in body:
            self.bare_one(node, guarded)
            self.bare_in(list(inner(node)), guarded or self.is_try(node))

    def bare_one(self, node, guarded):
        if isinstance(node, ast.Expr) and not guarded and self.wordy(node.value):
            self.bare.append([ast.dump(node.value), node.lineno])

    @staticmethod
    def is_try(node):
        return type(node).__name__.startswith("Try")

    def wordy(self, value):
        if isinstance(value, ast.Name):
            return True
        if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
            return all(self.wordy(e) for e in value.elts)
        if isinstance(value, ast.Compare):
            return self.wordy(value.left) and all(self.wordy(e) or self.literal(e) for e in value.comparators)
        if isinstance(value, ast.BoolOp):
            return all(self.wordy(e) for e in value.values)
        if isinstance(value, ast.UnaryOp):
            return self.wordy(value.operand)
        if isinstance(value, ast.BinOp):
            return self.wordy(value.left) and self.wordy(value.right)
        if isinstance(value, ast.Attribute):
            return False
        return self.literal(value) and not self.is_text(value)

    @staticmethod
    def literal(value):
        kinds = ("Num", "Bytes", "NameConstant")
        if type(value).__name__ in kinds:
            return True
        return type(value).__name__ == "Constant" and value.value is not Ellipsis

    def watch(self, top):
        """Counts uses of names that could deceive the test runner."""
        for node in ast.walk(top):
            self.reach(node)
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.saw(alias.name.split(".")[0])
            elif isinstance(node, ast.ImportFrom):
                root = (node.module or "").split(".")[0]
                self.saw(root)
                for alias in node.names:
                    self.saw(root + "." + alias.name)
            elif isinstance(node, ast.Attribute):
                if isinstance(node.value, ast.Name):
                    self.saw(node.value.id + "." + node.attr)
                self.saw(node.attr if node.attr in ("_pytest", "_exit") else "")
            elif isinstance(node, ast.Name) and node.id in ("atexit", "_pytest", "ctypes"):
                self.saw(node.id)
            elif isinstance(node, ast.FunctionDef) and node.name in COMPARISONS and self.constant(node):
                self.count("constant " + node.name)
            elif type(node).__name__ in ("Constant", "Str"):
                text = getattr(node, "value", None) if type(node).__name__ == "Constant" else node.s
                if text in ("_exit", "_pytest", "atexit", "ctypes"):
                    self.saw({"_exit": "os._exit"}.get(text, text))

    def reach(self, node):
        """Counts what reaches past the code's own names: into frames, into a
        module that it patches, into comparisons that it answers for all."""
        if isinstance(node, ast.Attribute) and node.attr in REACHING and node.attr not in ("exec", "eval"):
            self.count(REACHING[node.attr])
        elif isinstance(node, ast.Name) and node.id in REACHING:
            self.count(REACHING[node.id])
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for target in getattr(node, "targets", None) or [node.target]:
                if isinstance(target, ast.Name) and target.id in COMPARISONS:
                    self.count("assigned " + target.id)
                elif isinstance(target, ast.Attribute):
                    self.patches(target.value)
        elif isinstance(node, ast.Call) and node.args and last(node.func) in ("setattr", "delattr"):
            self.patches(node.args[0])
        elif type(node).__name__ in ("Constant", "Str"):
            text = getattr(node, "value", getattr(node, "s", None))
            if isinstance(text, str) and (text in REACHING or text in COMPARISONS or text.startswith("/proc/")):
                self.count(REACHING.get(text, text))

    def patches(self, owner):
        """Counts a write to an attribute of something that was imported."""
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if isinstance(owner, ast.Name) and owner.id in self.imported:
            self.count("assignment into the imported " + owner.id)

    def saw(self, name):
        if name in WATCHED:
            self.count(WATCHED[name])
        elif name == "_exit":
            self.count("os._exit")

    def count(self, name):
        self.watched[name] = self.watched.get(name, 0) + 1

    @staticmethod
    def constant(node):
        """Whether a comparison never looks at what it is compared with."""
        names = [a.arg for a in node.args.args]
        if len(names) != 2:
            return False
        return not any(isinstance(n, ast.Name) and n.id == names[1] for stmt in node.body for n in ast.walk(stmt))


def imports(tree):
    """The names that a module binds by importing."""
    return {a.asname or a.name.split(".")[0] for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom)) for a in node.names}


def last(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def span(node):
    last = max([getattr(n, "end_lineno", None) or getattr(n, "lineno", 0) for n in ast.walk(node)] or [0])
    return [node.lineno, last]


def stub(function):
    """Whether a function only says that it does nothing: with pass or ...,
    by giving None or NotImplemented back, or by raising NotImplementedError."""
    return all(does_nothing(node) for node in function.body)


def does_nothing(node):
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return type(node.value).__name__ in ("Constant", "Str", "Ellipsis", "Num", "NameConstant")
    if isinstance(node, ast.Return):
        value = node.value
        if type(value).__name__ in ("Constant", "NameConstant"):
            value = value.value
        return value is None or value is Ellipsis or type(value).__name__ == "Ellipsis" or (
            isinstance(value, ast.Name) and value.id == "NotImplemented")
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return last(raised) == "NotImplementedError"
    return False


def align(old, new):
    """Aligns two lists of statements. Returns how many are kept, how many are
    deleted with nothing in their place, and the line of the first of those. A
    replacement that still speaks of the same things is a rewrite."""
    kept = deleted = at = 0
    spoken = set()
    for _, _, tokens in new:
        spoken |= tokens
    matcher = difflib.SequenceMatcher(None, [e[0] for e in old], [e[0] for e in new], False)
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        if kind == "equal":
            kept += a1 - a0
        elif kind != "insert":
            gone = (a1 - a0) - (b1 - b0)
            if any(e[2] for e in new[b0:b1]):
                gone = min(gone, sum(1 for e in old[a0:a1] if e[2] - spoken))
            if gone > 0:
                deleted += gone
                at = at or old[a0][1]
    return kept, deleted, at


def compare(old, new):
    """Compares what the changed statements of both sides define and do."""
    out = {"lost": [], "lost_names": [], "functions": [], "bare": [], "watched": []}
    for name, (kind, line) in sorted(old.defs.items()):
        if name not in new.defs:
            out["lost"].append([name, kind, line])
    for name, line in sorted(old.names.items()):
        if name not in new.names:
            out["lost_names"].append([name, line])
    for name, (node, statements) in sorted(old.functions.items()):
        if name not in new.functions:
            continue
        after_node, after = new.functions[name]
        kept, deleted, line = align(statements, after)
        hollow = stub(after_node) and not stub(node)
        if deleted or hollow:
            out["functions"].append({
                "name": name, "old": len(statements), "new": len(after), "kept": kept, "stub": hollow,
                "deleted": deleted, "line": line or node.lineno, "old_span": span(node), "new_span": span(after_node)})
    kept, deleted, line = align(old.module, new.module)
    if deleted:
        out["functions"].append({"name": "", "old": len(old.module), "new": len(new.module),
                                 "kept": kept, "deleted": deleted, "line": line,
                                 "old_span": [0, 0], "new_span": [0, 0]})
    before = [mark for mark, _ in old.bare]
    for mark, line in new.bare:
        if mark in before:
            before.remove(mark)
        else:
            out["bare"].append(line)
    for name, n in sorted(new.watched.items()):
        if n > old.watched.get(name, 0):
            out["watched"].append(name)
    return out


class Cache:
    """Remembers the parsed bases: attempts on the same file share one."""

    def __init__(self, size):
        self.size = size
        self.entries = {}

    def get(self, source):
        module = self.entries.pop(source, None)
        if module is None:
            module = Module(source)
            if module.error is None:
                module.compile(source)
            while len(self.entries) >= self.size:
                self.entries.pop(next(iter(self.entries)))
        self.entries[source] = module
        return module


def judge(request, cache):
    if "planted" in request:
        tests = [base64.b64decode(t) for t in request["tests"]]
        return {"ok": True, "hard_coded": hard_coded(request["planted"], tests)}
    old = None
    if request.get("old") is not None:
        old = cache.get(base64.b64decode(request["old"]))
    source = base64.b64decode(request["new"])
    new = Module(source, old)
    answer = {"old_error": old.error if old else None}
    # What the base has and compiles needs no second look.
    usable = old is not None and old.error is None
    if new.tree is not None:
        changed = new.beyond(old if usable else None)
        new.compile(source, changed if usable else None)
    if new.tree is not None:
        body = [n for n in new.tree.body if not (isinstance(n, ast.Expr) and Facts.is_text(n.value))]
        answer["statements"] = len(body)
        if old is None or old.tree is not None:
            answer.update(compare_modules(old, new, changed if usable else new.beyond(old)))
    answer["error"] = new.error
    answer["ok"] = new.error is None
    return answer


def compare_modules(old, new, changed):
    before = old.beyond(new) if old else []
    out = compare(Facts(before, imports(old.tree) if old else ()), Facts(changed, imports(new.tree)))
    out["planted"] = planted(before, changed)
    if out["lost"] or out["lost_names"]:
        everything = Facts(new.tree.body)
        out["lost"] = [d for d in out["lost"] if d[0] not in everything.defs]
        used = {n.id for n in ast.walk(new.tree) if isinstance(n, ast.Name)}
        out["lost_names"] = [
            [name, line, name in used] for name, line in out["lost_names"]
            if name not in everything.names and name not in everything.defs]
    return out


def main():
    memory = int(sys.argv[1])
    limit_resources(memory)
    warnings.simplefilter("ignore")
    gc.disable()
    cache = Cache(16)
    read, write = sys.stdin.buffer, sys.stdout.buffer
    served = 0
    for line in read:
        request = json.loads(line.decode("utf-8"))
        try:
            answer = judge(request, cache)
        except (RecursionError, MemoryError, binascii.Error) as error:
            answer = {"ok": False, "error": {"type": type(error).__name__, "msg": "too complex to analyse",
                                             "line": 0, "text": ""}, "pathological": True}
        answer["id"] = request["id"]
        write.write(json.dumps(answer).encode("utf-8") + b"\n")
        write.flush()
        served += 1
        if served % 50 == 0:
            gc.collect()


if __name__ == "__main__":
    main()
