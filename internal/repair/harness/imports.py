"""Imports that are missing, misspelt or of the wrong form."""
import ast
import builtins
import difflib
import importlib
import inspect
import pkgutil
import posixpath
import re

from .site import BUILTINS, STDLIB
from .source import is_docstring

HOMES = {
    "collections": "defaultdict Counter deque OrderedDict namedtuple ChainMap",
    "math": "sqrt ceil floor pi gcd factorial log log10 log2 isclose hypot sin cos tan atan2 exp inf nan comb prod isqrt"
            " radians degrees fabs trunc lcm isnan isinf fsum dist",
    "pathlib": "Path PurePath PurePosixPath", "datetime": "datetime date timedelta timezone time",
    "functools": "reduce partial lru_cache wraps cached_property total_ordering cmp_to_key singledispatch cache",
    "itertools": "chain combinations permutations product groupby accumulate islice count cycle zip_longest repeat"
                 " takewhile dropwhile starmap combinations_with_replacement pairwise tee filterfalse compress",
    "dataclasses": "dataclass field asdict astuple replace fields", "enum": "Enum IntEnum Flag auto unique IntFlag",
    "abc": "ABC abstractmethod ABCMeta",
    "typing": "List Dict Set Tuple Optional Union Any Callable Iterable Iterator Sequence Mapping NamedTuple TypeVar"
              " Generic Protocol cast Generator Type Literal ClassVar Final overload TYPE_CHECKING Deque DefaultDict",
    "copy": "deepcopy copy", "random": "randint choice shuffle sample uniform randrange choices seed",
    "string": "ascii_lowercase ascii_uppercase ascii_letters digits punctuation whitespace Template hexdigits",
    "decimal": "Decimal ROUND_HALF_UP getcontext InvalidOperation", "fractions": "Fraction",
    "heapq": "heappush heappop heapify heapreplace nlargest nsmallest heappushpop",
    "bisect": "bisect_left bisect_right bisect insort insort_left", "uuid": "uuid4 UUID uuid5",
    "contextlib": "contextmanager suppress closing ExitStack redirect_stdout", "io": "StringIO BytesIO TextIOWrapper",
    "operator": "itemgetter attrgetter mul add methodcaller xor", "statistics": "mean median stdev mode pstdev variance",
    "threading": "Lock Thread RLock Event Condition", "time": "sleep perf_counter monotonic",
    "json": "dumps loads JSONDecodeError", "re": "compile match search sub findall IGNORECASE fullmatch split",
    "os.path": "join exists basename dirname splitext isfile isdir", "os": "path environ getenv getcwd listdir makedirs sep", "hashlib": "sha256 md5 sha1",
    "textwrap": "dedent indent wrap fill shorten", "unittest.mock": "Mock patch MagicMock",
    "collections.abc": "Iterable Mapping Sequence Hashable MutableMapping Callable", "queue": "Queue PriorityQueue",
    "concurrent.futures": "ThreadPoolExecutor ProcessPoolExecutor as_completed", "types": "SimpleNamespace MappingProxyType",
    "urllib.parse": "urlparse quote unquote urlencode urljoin parse_qs", "secrets": "token_hex", "shutil": "copyfile",
    "subprocess": "run Popen PIPE", "base64": "b64encode b64decode", "glob": "glob", "tempfile": "NamedTemporaryFile",
    "csv": "reader writer DictReader DictWriter", "traceback": "format_exc", "argparse": "ArgumentParser Namespace",
}
ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "dt": "datetime", "sp": "scipy", "ET":
           "xml.etree.ElementTree", "tk": "tkinter", "nx": "networkx", "yaml": "yaml", "requests": "requests"}


def insertion(src):
    """Where a new import line goes: behind the imports, else the docstring and __future__."""
    body = src.tree.body
    last = None
    for stmt in body:
        if isinstance(stmt, (ast.Import, ast.ImportFrom)):
            last = stmt
        elif not is_docstring(stmt):
            break
    if last is None:
        first = next((s for s in body if not is_docstring(s)), None)
        if body and is_docstring(body[0]):
            return src.line_end(body[0].end_lineno), src.newline, src.newline if first is not None else ""
        line = 1
        while line <= len(src.starts) and line <= 3 and re.match(
                rb"#!|#.*coding", src.utf8[src.line_start(line):src.line_end(line)]):
            line += 1
        at = src.line_start(line) if line <= len(src.starts) else len(src.utf8)
        return at, "", src.newline * 2 if first is not None and isinstance(first, (
            ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) else ""
    if isinstance(last, ast.ImportFrom) and last.module == "__future__":
        return src.line_end(last.end_lineno), "", ""
    return src.line_end(last.end_lineno), "", ""


def new_line(src, text):
    at, before, after = insertion(src)
    if at and src.utf8[at - 1:at] not in (b"\n", b"\r"):
        before = src.newline + before
    return [(at, at, before + text + src.newline + after)]


def from_import(src, module, names):
    """Extends an existing from-import of the module, else adds a line."""
    name = ", ".join(names)
    for stmt in src.tree.body:
        if isinstance(stmt, ast.ImportFrom) and stmt.module == module and not stmt.level and stmt.names[0].name != "*":
            last = stmt.names[-1]
            if hasattr(last, "end_lineno"):
                at = src.offset(last.end_lineno, last.end_col_offset)
            else:
                end = src.span(stmt)[1]
                word = (last.asname or last.name).encode("utf-8")
                at = src.utf8.rfind(word, 0, end) + len(word)
            return [(at, at, ", " + name)]
    return new_line(src, "from %s import %s" % (module, name))


def missing(site, name, node):
    """Import lines that would define a name, alone or with the others that are missing; yields (cost, spans)."""
    src = site.src
    missed = sorted(undefined_names(src))
    parent = node._parent
    attr = parent.attr if isinstance(parent, ast.Attribute) else None
    used = {n.attr for n in ast.walk(src.tree)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name}
    if name in STDLIB:
        yield (0 if fits(name, used) else .3), new_line(src, "import " + name)
    for module, names in HOMES.items():
        if name in names.split():
            own = 0 if attr is None or not fits(module, used) or name != module else .1
            also = [n for n in missed if n in names.split() and n != name]
            if also:
                yield own, from_import(src, module, [name] + also)
            yield own + .05, from_import(src, module, [name])
    if name in ALIASES:
        yield .1, new_line(src, "import %s as %s" % (ALIASES[name], name) if ALIASES[name] != name else "import " + name)
    for path in site.ctx.defining(name):
        if path != src.path:
            here = [n for n in missed if n != name and path in site.ctx.defining(n)]
            for cost, text in project_imports(src, path, ", ".join([name] + here)):
                yield cost, new_line(src, text)
    for path in site.ctx.modules:
        stem = posixpath.splitext(path)[0].split("/")
        if stem[-1] == name and path != src.path:
            package = ".".join(stem[:-1])
            yield .2, new_line(src, "from %s import %s" % (package or ".", name) if package else "import " + name)


def fits(module, attrs):
    """Whether the standard module has all the attributes that are used of it."""
    mod = standard(module)
    return mod is not None and all(hasattr(mod, a) for a in attrs)


def project_imports(src, path, name):
    """The ways in which one project file may import from another, usual ones first."""
    mine = posixpath.dirname(src.path)
    stem = posixpath.splitext(path)[0]
    if stem.endswith("/__init__"):
        stem = stem[:-len("/__init__")]
    dotted = stem.replace("/", ".")
    relative = any(isinstance(s, ast.ImportFrom) and s.level for s in src.tree.body)
    if posixpath.dirname(path) == mine and mine:
        yield (.1 if relative else .25), "from .%s import %s" % (stem.rsplit("/", 1)[-1], name)
    yield (.25 if relative else .1), "from %s import %s" % (dotted, name)
    if dotted.startswith("src."):
        yield .15, "from %s import %s" % (dotted[4:], name)


def module_members(site, stmt):
    """The names that can be imported from the module of a from-import."""
    wanted = (stmt.module or "").split(".")[-1]
    out = set()
    for path, module in site.ctx.modules.items():
        stem = posixpath.splitext(path)[0].split("/")
        if stem[-1] == wanted or (stem[-1] == "__init__" and len(stem) > 1 and stem[-2] == wanted):
            out |= set(module.names())
    if not out and not stmt.level and stmt.module and stmt.module.split(".")[0] in STDLIB:
        module = standard(stmt.module)
        out = set(dir(module)) | {m.name for m in pkgutil.iter_modules(getattr(module, "__path__", ()))}
    return out


def module_names(site):
    out = set(STDLIB) | set(HOMES) | set(ALIASES.values())
    if any("No module" in h["text"] for h in site.ctx.hints):
        out |= {m.name for m in pkgutil.iter_modules()}
    for path in site.ctx.modules:
        stem = posixpath.splitext(path)[0]
        out |= {stem.replace("/", "."), stem.split("/")[-1]}
    return out


def lookalikes(word, pool, count=4):
    return difflib.get_close_matches(word, sorted(pool - {word}), count, .5)


def wrong(site):
    """Misspelt module or member in an import statement, or the wrong home of a member."""
    stmt, src = site.stmt, site.src
    if not isinstance(stmt, (ast.Import, ast.ImportFrom)):
        return
    bad = bool(site.hints) or any("import" in h["text"] or "No module" in h["text"] for h in site.ctx.hints)
    base = .1 if bad else 1.2
    start, end = src.span(stmt)
    if isinstance(stmt, ast.ImportFrom):
        members = module_members(site, stmt)
        split = src.find(start, end, "import")
        for alias in stmt.names:
            if alias.name == "*" or (members and alias.name in members and not bad):
                continue
            at = src.find(split[1], end, alias.name)
            if not at or alias.name in members:
                continue
            for n, other in enumerate(lookalikes(alias.name, members)):
                keep = "" if alias.asname or not used_by(src, alias.name) else " as " + alias.name
                yield base + .1 * n + (0 if not keep else .15), "import %s to %s" % (alias.name, other), [
                    at + (other + keep,)]
            for home, names in HOMES.items():
                if alias.name in names.split() and home != stmt.module:
                    at_module = src.find(start, split[0], stmt.module or ".")
                    if at_module and len(stmt.names) == 1:
                        yield base + .2, "import from %s" % home, [at_module + (home,)]
        if stmt.module:
            at = src.find(start, split[0], stmt.module)
            for n, other in enumerate(lookalikes(stmt.module, module_names(site))):
                if at:
                    yield base + .15 + .1 * n, "module %s to %s" % (stmt.module, other), [at + (other,)]
            if at and not stmt.level and src.path.count("/"):
                yield base + .5, "relative import", [(at[0], at[0], ".")]
        if stmt.level:
            at = src.find(start, split[0], ".")
            if at:
                yield base + .4, "relative import", [(at[0], at[0], ".")]
                yield base + .5, "absolute import", [(at[0], at[0] + stmt.level, "")]
    else:
        for alias in stmt.names:
            at = src.find(start + 6, end, alias.name)
            if not at or alias.name in STDLIB:
                continue
            for n, other in enumerate(lookalikes(alias.name, module_names(site))):
                keep = "" if alias.asname or not used_by(src, alias.name) else " as " + alias.name
                yield base + .1 * n + (.15 if keep else 0), "module %s to %s" % (alias.name, other), [at + (other + keep,)]


def used_by(src, name):
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(src.tree))


def module_attribute(site, node):
    """datetime.now() under `import datetime`, and the reverse."""
    if not isinstance(node.value, ast.Name):
        return
    name = node.value.id
    stmt = site.ctx.module(site.src).imports.get(name)
    if stmt is None:
        return
    if isinstance(stmt, ast.Import):
        for alias in stmt.names:
            known = alias.name.split(".")[0] in STDLIB and (alias.asname or alias.name.split(".")[0]) == name
            if known and standard("%s.%s" % (alias.name, node.attr)) is not None:
                at = site.src.find(site.src.span(stmt)[0] + 6, site.src.span(stmt)[1], alias.name)
                if at:
                    yield [at + ("%s.%s" % (alias.name, node.attr),)]
        for module, names in HOMES.items():
            if module == name and name in names.split():
                yield site.rep(node.value, "%s.%s" % (name, name))
                also = sorted(n for n in undefined_names(site.src) if n in names.split() and n != name)
                yield site.rep(stmt, "from %s import %s" % (name, ", ".join([name] + also)))
        for home, names in HOMES.items():
            if node.attr in names.split() and home != name:
                yield new_line(site.src, "import " + home) + site.rep(node.value, home) if home not in \
                    site.ctx.module(site.src).imports else site.rep(node.value, home)
    elif isinstance(stmt, ast.ImportFrom) and len(stmt.names) == 1 and name in STDLIB:
        yield site.rep(stmt, "import " + name)
        if isinstance(node._parent, ast.Attribute):
            yield site.rep(node, name)
    if isinstance(node.value, ast.Name) and isinstance(stmt, ast.ImportFrom) and node.attr == name:
        yield site.rep(node, name)


def undefined_names(src):
    """Names that are read but that nothing in the file binds, remembered with the file; none under a star import."""
    if src.undefined is not None:
        return src.undefined
    bound, read = set(BUILTINS), set()
    for node in ast.walk(src.tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(getattr(node, "name", None), str):
            bound.add(node.name)
    src.undefined = set() if "*" in bound else read - bound
    return src.undefined


def outside_keywords(site, call):
    """Parameters and attributes of a standard library callable that is called by its imported name."""
    value = resolve(site, call.func)
    if value is None:
        return set()
    out = {n for n in dir(value) if not n.startswith("_")} if isinstance(value, type) else set()
    try:
        return out | set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return out | set(re.findall(r"\w+", (getattr(value, "__doc__", None) or "")[:2000]))


def resolve(site, func):
    """The standard library's or built-in object that an expression names, or None."""
    trail = []
    while isinstance(func, ast.Attribute):
        trail.insert(0, func.attr)
        func = func.value
    if not isinstance(func, ast.Name):
        return None
    stmt = site.ctx.module(site.src).imports.get(func.id)
    value = None
    if stmt is None:
        value = getattr(builtins, func.id, None)
    else:
        for alias in stmt.names:
            if (alias.asname or alias.name.split(".")[0]) == func.id:
                source = getattr(stmt, "module", None) or alias.name.split(".")[0]
                if getattr(stmt, "level", 0) or source.split(".")[0] not in STDLIB:
                    return None
                value = standard(source)
                trail = ([alias.name] if isinstance(stmt, ast.ImportFrom) else []) + trail
    for name in trail:
        value = getattr(value, name, None)
    return value


def standard(module):
    """A module of the standard library, or None when this interpreter lacks it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


OPERATORS = (wrong,)
