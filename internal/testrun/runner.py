"""The process that runs a project's tests and reports what it saw.

It is started with `python -s -c`, before any path of the project can be
imported. Its order comes on standard input; what it reports goes, one JSON
object a line with the order's nonce, to a descriptor that the order names.
The last line is the completion record. It needs nothing but the standard
library and, in pytest mode, pytest.
"""
import sys

sys.path[:] = [p for p in sys.path if p]

import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402
import unittest  # noqa: E402
import unittest.util  # noqa: E402

# Imported before the project can shadow them: what reporting a failure needs.
import ast, difflib, fnmatch, importlib, importlib.util, inspect, io, linecache, pprint, re, shlex, textwrap, tokenize  # noqa: E402,E401,F401

RED = ("failed", "error")


class TookTooLong(BaseException):
    """Ends a test at its time limit; `except Exception` does not catch it."""


class Alarm:
    """Bounds one test. It reaches code in the main thread of this process; what
    blocks elsewhere is ended with the whole run."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._set = signal.setitimer
        if seconds > 0:
            signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, *_):
        raise TookTooLong("the test took longer than %g s" % self._seconds)

    def arm(self):
        if self._seconds > 0:
            # Again each second, in case the test swallows the first one.
            self._set(signal.ITIMER_REAL, self._seconds, 1.0)

    def disarm(self):
        if self._seconds > 0:
            self._set(signal.ITIMER_REAL, 0)


SEVERITY = ["passed", "xpassed", "skipped", "xfailed", "failed", "error"]


class Recorder:
    """Writes the record. Only the process that made it may."""

    def __init__(self, order):
        self._nonce = order["nonce"]
        self._fd = order["fd"]
        self._pid = os.getpid()
        self._write = os.write
        self.canary = order["canary"]
        self.planted = {}
        self.outcomes = {}
        self.collected = []
        self.broken_conftests = []
        self.split = order["split"]
        # Whether the test that runs exchanges plain data only, and whether
        # something else took part in what it states.
        self.plain, self.decided = True, False
        self._alarm = Alarm(order["test_seconds"])
        os.set_inheritable(self._fd, False)

    def send(self, kind, **fields):
        if os.getpid() != self._pid:
            return
        fields["n"] = self._nonce
        fields["k"] = kind
        data = (json.dumps(fields) + "\n").encode("ascii")
        while data:
            data = data[self._write(self._fd, data):]

    def collect(self, ids, declared):
        self.collected = list(ids)
        for i in range(0, len(self.collected), 500):
            self.send("collected", ids=self.collected[i:i + 500])
        for i in range(0, len(declared), 500):
            self.send("declared", ids=declared[i:i + 500])

    def start(self, test):
        self.plain, self.decided = True, False
        self.send("start", id=test)
        self._alarm.arm()

    def outcome(self, test, outcome):
        self._alarm.disarm()
        if test in self.planted:
            self.planted[test] = outcome
            return
        if self.split:
            if "::" not in test or not self.plain:
                return
            outcome = "error" if self.decided and outcome != "passed" else outcome
        old = self.outcomes.get(test)
        if old is None or SEVERITY.index(outcome) > SEVERITY.index(old):
            self.outcomes[test] = outcome
            self.send("outcome", id=test, o=outcome)

    def status(self):
        if any(o in RED for o in self.outcomes.values()):
            return 1
        return 0 if self.outcomes else 5

    def finish(self):
        """Ends the process: exit handlers of the project do not run."""
        status = self.status()
        if self.planted and all(o in RED for o in self.planted.values()):
            self.send("canary", o="failed")
        self.send("done", exit=status, outcomes=len(self.outcomes), collected=len(self.collected))
        flush()
        os._exit(status)

    def fatal(self, why):
        self.send("fatal", why=why)
        flush()
        os._exit(70)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


# --- what is importable ------------------------------------------------------


def within(path, folder):
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def restage(path, order):
    """Answers the staged place of a path of the original project."""
    origin, root = order["origin"], order["root"]
    real = os.path.realpath(path)
    if not origin or not within(real, origin) or any(within(real, k) for k in order["keep"]):
        return path
    return os.path.join(root, os.path.relpath(real, origin))


def set_path(order):
    root = order["root"]
    paths = [restage(p, order) for p in sys.path]
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""), None)
        mapping = getattr(module, "MAPPING", None)
        if isinstance(mapping, dict):
            for name, target in mapping.items():
                if isinstance(target, str):
                    mapping[name] = restage(target, order)
    front = [os.path.join(root, p) for p in order["paths"]]
    front.append(root)
    src = os.path.join(root, "src")
    if os.path.isdir(src) and not os.path.exists(os.path.join(src, "__init__.py")):
        front.append(src)
    if order["usersite"]:
        paths.append(order["usersite"])
    seen = set()
    sys.path[:] = [p for p in front + paths if not (p in seen or seen.add(p))]


# --- pytest ------------------------------------------------------------------

CONFIG_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
DEPENDENCY_FILES = CONFIG_FILES + ("setup.py", "Pipfile", "environment.yml", "noxfile.py", "conftest.py")

# What a project writes when it uses a plugin that it may not name by its own
# name: options and keys of the configuration, marks and fixtures of tests.
SIGNS = {
    "pytest-asyncio": r"asyncio_mode|asyncio_default|mark\.asyncio|pytest_asyncio",
    "anyio": r"mark\.anyio|anyio_backend",
    "pytest-trio": r"trio_mode|mark\.trio",
    "pytest-cov": r"--cov\b|--no-cov|\bno_cover\b",
    "pytest-xdist": r"(^|[\s\"'=])(-n[\s=]?\d|-n\s*auto|--numprocesses|--dist\b)|mark\.xdist_group",
    "pytest-timeout": r"--timeout\b|^\s*timeout\s*=|mark\.timeout",
    "pytest-django": r"DJANGO_SETTINGS_MODULE|--ds\b|--reuse-db|mark\.django_db",
    "pytest-mock": r"\bmocker\b",
    "pytest-randomly": r"--randomly|-p\s*randomly",
    "pytest-rerunfailures": r"--reruns\b|mark\.flaky",
    "pytest-benchmark": r"--benchmark|\bbenchmark\b",
    "pytest-env": r"^\s*env\s*=",
    "pytest-subtests": r"\bsubtests\b",
    "pytest-freezer": r"\bfreezer\b",
    "requests-mock": r"\brequests_mock\b",
    "responses": r"\bresponses\b",
    "pytest-httpx": r"\bhttpx_mock\b",
    "respx": r"\brespx_mock\b",
    "pytest-aiohttp": r"\baiohttp_client\b",
    "pytest-flask": r"\blive_server\b|client_class",
    "pytest-httpserver": r"\bhttpserver\b",
    "pytest-datadir": r"\bdatadir\b",
    "pytest-regressions": r"\bdata_regression\b|\bfile_regression\b",
    "pytest-snapshot": r"\bsnapshot\b",
    "syrupy": r"\bsnapshot\b",
    "pytest-bdd": r"pytest_bdd",
    "hypothesis": r"\bhypothesis\b",
    "Faker": r"\bfaker\b",
}


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read(1 << 20)
    except OSError:
        return ""


def project_text(root):
    """The project's own configuration, requirements and tests, as one text."""
    config = [read(os.path.join(root, name)) for name in DEPENDENCY_FILES]
    for name in sorted(os.listdir(root)):
        if re.match(r"(?i).*requirements.*\.(txt|in)$", name):
            config.append(read(os.path.join(root, name)))
    folder = os.path.join(root, "requirements")
    if os.path.isdir(folder):
        config.extend(read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)))
    tests = [read(path) for path in test_files(root, ("conftest.py", "test_*.py", "*_test.py"))]
    return "\n".join(config), "\n".join(tests)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def named_plugins(root):
    """The installed plugins that the project's own files name."""
    try:
        from importlib import metadata
    except ImportError:
        return []
    config, tests = project_text(root)
    words = {normal(w) for w in re.findall(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]", config)}
    names = []
    for dist in metadata.distributions():
        points = [e for e in dist.entry_points if e.group == "pytest11"]
        if not points:
            continue
        name = dist.metadata["Name"] or ""
        signs = {normal(k): v for k, v in SIGNS.items()}.get(normal(name))
        if normal(name) in words or signs and (re.search(signs, config, re.M) or re.search(signs, tests, re.M)):
            names.extend(e.name for e in points)
    return sorted(set(names))


class Reporter:
    """The pytest plugin that reports ids and outcomes; of the files apart, when
    that is not None."""

    def __init__(self, recorder, apart=None):
        self.recorder = recorder
        self.pytest = sys.modules["pytest"]
        self.phases = {}
        self.collect_ids = set()

        @self.pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(session, items):
            yield
            if apart is not None:
                items[:] = [i for i in items if i.nodeid.split("::")[0] in apart]
            items.extend(self.plant(session, items))

        self.pytest_collection_modifyitems = pytest_collection_modifyitems
        self.pytest_report_teststatus = self.pytest.hookimpl(tryfirst=True)(self.pytest_report_teststatus.__func__).__get__(self)

    def plant(self, session, items):
        """Makes one test that must fail beside the tests of each folder, where
        the same conftest files, hooks and fixtures apply to it."""
        places = {}
        for item in items:
            where = str(getattr(item, "path", None) or item.fspath)
            places.setdefault(os.path.dirname(where), where)
        for number, folder in enumerate(sorted(places)[:100] or [str(session.config.rootdir)]):
            item = self.make_canary(session, places.get(folder, folder), number)
            self.recorder.planted[item.nodeid] = ""
            yield item

    def make_canary(self, session, where, number):
        name = "%s_%d" % (self.recorder.canary, number)

        def body():
            planted = [1, 2, 3]
            assert len(planted) == 0

        module = types.ModuleType("nexus_" + name)
        setattr(module, name, body)
        pytest = self.pytest

        class CanaryModule(pytest.Module):
            def _getobj(self):
                return module

            def _importtestmodule(self):
                return module

        from pathlib import Path
        try:
            parent = CanaryModule.from_parent(session, path=Path(where))
        except TypeError:
            parent = CanaryModule.from_parent(session, fspath=session.config.rootdir.join(os.path.relpath(where, str(session.config.rootdir))))
        return pytest.Function.from_parent(parent, name=name, callobj=body)

    def pytest_report_teststatus(self, report):
        """Keeps the planted tests out of what people read."""
        return ("", "", "") if report.nodeid in self.recorder.planted else None

    def pytest_collectreport(self, report):
        if report.failed:
            self.recorder.outcome(self.file_id(report.nodeid), "error")
        elif report.skipped:
            self.recorder.outcome(self.file_id(report.nodeid), "skipped")

    @staticmethod
    def file_id(nodeid):
        return nodeid or "."

    def pytest_collection_finish(self, session):
        ids, declared = [], []
        for item in session.items:
            if item.nodeid in self.recorder.planted:
                continue
            ids.append(item.nodeid)
            if any(next(item.iter_markers(name=m), None) for m in ("skip", "skipif", "xfail")):
                declared.append(item.nodeid)
        self.recorder.collect(ids, declared)

    def pytest_runtest_logstart(self, nodeid, location):
        self.recorder.start(nodeid)

    def pytest_runtest_logreport(self, report):
        found = self.phases.setdefault(report.nodeid, [])
        expected = hasattr(report, "wasxfail")
        if report.outcome == "failed":
            found.append("failed" if report.when == "call" else "error")
        elif report.outcome == "skipped":
            found.append("xfailed" if expected else "skipped")
        elif report.outcome == "passed" and report.when == "call":
            found.append("xpassed" if expected else "passed")
        elif report.outcome == "rerun":
            del found[:]

    def pytest_runtest_logfinish(self, nodeid, location):
        found = self.phases.pop(nodeid, [])
        if found:
            self.recorder.outcome(nodeid, max(found, key=SEVERITY.index))


def watch_conftests(recorder, root):
    """Notes conftest files that cannot be imported; pytest only prints them."""
    from _pytest import config
    failure = getattr(config, "ConftestImportFailure", None)
    if failure is None:
        return
    init = failure.__init__

    def noting(self, path, *args, **kwargs):
        recorder.broken_conftests.append(os.path.relpath(str(path), root).replace(os.sep, "/"))
        init(self, path, *args, **kwargs)

    failure.__init__ = noting


def pytest_args(order):
    root, args = order["root"], list(order["args"])
    plugins = named_plugins(root)
    config, _ = project_text(root)
    before = ["--rootdir", root, "--confcutdir", root]
    for name in plugins:
        before += ["-p", name]
    if not any(os.path.exists(os.path.join(root, name)) for name in CONFIG_FILES) and not any(
            a == "-c" or a.startswith("--config-file") for a in args):
        before += ["-c", os.devnull]
    wanted = " ".join(args) + config
    if re.search(r"--(lf|last-failed|ff|failed-first|nf|new-first|sw|stepwise|cache)\b|no:cacheprovider", wanted):
        before += ["-o", "cache_dir=" + os.path.join(os.environ["TMPDIR"], "pytest-cache")]
    else:
        before += ["-p", "no:cacheprovider"]
    after = ["--continue-on-collection-errors", "--maxfail=0", "--color=no"]
    if "xdist" in plugins:
        after += ["-n0", "--dist=no"]
    return before + args + after


def run_pytest(order, recorder):
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if order["usersite"]:
        sys.path.append(order["usersite"])
    try:
        import pytest
    except ImportError:
        # The project may be a part of pytest itself, installed in place.
        set_path(order)
    try:
        import pytest
        import _pytest.assertion.util  # noqa: F401  before the project can shadow what it imports
    except Exception as err:
        recorder.fatal("pytest cannot be imported by %s: %s" % (sys.executable, err))
    set_path(order)
    watch_conftests(recorder, order["root"])
    sys.argv[:] = ["pytest"] + order["args"]
    code = int(pytest.main(pytest_args(order), plugins=[Reporter(recorder, apart_files(order) if order["split"] else None)]))
    if recorder.broken_conftests:
        for path in recorder.broken_conftests:
            recorder.outcome(path, "error")
        # No session took place, so the planted test gets one of its own.
        empty = os.path.join(os.environ["TMPDIR"], "planted-%d" % os.getpid())
        os.mkdir(empty)
        pytest.main(["--rootdir", order["root"], "--confcutdir", order["root"], "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider",
                     "--color=no", empty], plugins=[Reporter(recorder)])
        recorder.finish()
    if code == 4:
        recorder.fatal("pytest refused its arguments or configuration")
    if code in (0, 1, 5):
        recorder.finish()
    if code == 2 and any(recorder.planted.values()):
        recorder.finish()
    flush()
    os._exit(code)


# --- unittest ----------------------------------------------------------------

SKIPPED_FOLDERS = ("node_modules", "site-packages", "__pycache__", "build", "dist", "venv", "env")


def test_files(root, patterns):
    found = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not n.startswith(".") and n not in SKIPPED_FOLDERS)
        found += [os.path.join(folder, f) for f in sorted(files) if any(fnmatch.fnmatch(f, p) for p in patterns)]
    return found


def import_file(path):
    """Imports like pytest's prepend mode: the first folder above the packages."""
    folder, base = os.path.split(path)
    parts = [base[:-3]]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if parts[-1] == "__init__":
        parts.pop()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = ".".join(parts)
    module = importlib.import_module(name)
    where = os.path.realpath(getattr(module, "__file__", "") or "")
    if where != os.path.realpath(path):
        raise ImportError("import of %s gave %s: two test files of the same name need packages" % (path, where))
    return module


class PlainTest(unittest.TestCase):
    """A test function, or a method of a plain class, with bare asserts."""

    def __init__(self, test_id, call):
        super().__init__("runTest")
        self.test_id, self.call = test_id, call

    def runTest(self):
        self.call()

    def id(self):
        return self.test_id


class Canary(unittest.TestCase):
    def runTest(self):
        self.assertEqual(len([1, 2, 3]), 0, "planted")


class Result(unittest.TestResult):
    """Reports every test by an id like pytest's."""

    def __init__(self, recorder, ids):
        super().__init__()
        self.recorder, self.ids, self.found = recorder, ids, {}
        self.fixtures = []
        self.buffer = False

    def ident(self, test):
        return self.ids.get(id(test)) or self.ids.get(id(getattr(test, "test_case", None)))

    def note(self, test, outcome, err=None):
        if err is not None:
            sys.stderr.write("\n%s: %s\n%s\n" % (outcome.upper(), test, "".join(traceback.format_exception(*err))))
        name = self.ident(test)
        if name is None:
            self.fixtures.append((str(test), outcome))
            return
        self.found.setdefault(name, []).append(outcome)

    def startTest(self, test):
        super().startTest(test)
        self.recorder.start(self.ident(test))

    def stopTest(self, test):
        super().stopTest(test)
        name = self.ident(test)
        found = self.found.pop(name, ["error"])
        self.recorder.outcome(name, max(found, key=SEVERITY.index))

    def addSuccess(self, test):
        self.note(test, "passed")

    def addError(self, test, err):
        self.note(test, "error", err)

    def addFailure(self, test, err):
        self.note(test, "failed", err)

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.note(test, "xfailed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "failed", err)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            for inner in flatten(test):
                yield inner
        else:
            yield test


def plain_tests(module, rel):
    """Test functions and classes as pytest would collect them, without fixtures."""
    for name, value in list(vars(module).items()):
        if name.startswith("test") and isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            yield PlainTest("%s::%s" % (rel, name), value)
        elif name.startswith("Test") and isinstance(value, type) and not issubclass(value, unittest.TestCase):
            for method in dir(value):
                if method.startswith("test") and callable(getattr(value, method)):
                    yield PlainTest("%s::%s::%s" % (rel, name, method), bound(value, method))


def bound(cls, method):
    return lambda: getattr(cls(), method)()


def test_id(test, root):
    if isinstance(test, PlainTest):
        return test.id()
    module = sys.modules.get(type(test).__module__)
    where = getattr(module, "__file__", None)
    rel = os.path.relpath(os.path.realpath(where), os.path.realpath(root)).replace(os.sep, "/") if where else type(test).__module__
    return "%s::%s::%s" % (rel, type(test).__qualname__, getattr(test, "_testMethodName", "runTest"))


def declared(test):
    method = getattr(test, getattr(test, "_testMethodName", ""), None)
    return any(getattr(x, a, False) for x in (test, method) for a in ("__unittest_skip__", "__unittest_expecting_failure__"))


def load_all(order, recorder, loader):
    tests = []
    start = os.path.join(order["root"], *order["args"][:1])
    for path in test_files(start, order["patterns"]):
        rel = os.path.relpath(path, order["root"]).replace(os.sep, "/")
        try:
            module = import_file(path)
            tests += flatten(loader.loadTestsFromModule(module))
            if order["plain"]:
                tests += plain_tests(module, rel)
        except unittest.SkipTest:
            recorder.outcome(rel, "skipped")
        except Exception:
            sys.stderr.write("\nERROR: %s\n%s\n" % (rel, traceback.format_exc()))
            recorder.outcome(rel, "error")
    return tests


def load_named(order, recorder, loader):
    tests = []
    for test in flatten(loader.loadTestsFromNames(order["names"])):
        if type(test).__name__ == "_FailedTest":
            sys.stderr.write("\nERROR: %s\n%s\n" % (test._testMethodName, test._exception))
            recorder.outcome(test._testMethodName, "error")
            continue
        tests.append(test)
    return tests


def run_unittest(order, recorder):
    set_path(order)
    loader = unittest.TestLoader()
    load = load_named if order["names"] else load_all
    tests = load(order, recorder, loader)
    apart = apart_files(order) if order["split"] else None
    ids, names, suite = {}, [], unittest.TestSuite()
    for test in tests:
        name = test_id(test, order["root"])
        if apart is not None and name.split("::")[0] not in apart:
            continue
        if type(test).__name__ == "_FailedTest":
            recorder.outcome(name, "error")
            continue
        ids[id(test)] = name
        names.append(name)
        suite.addTest(test)
    recorder.collect(names, [ids[id(t)] for t in tests if id(t) in ids and declared(t)])
    canary = Canary()
    ids[id(canary)] = recorder.canary
    recorder.planted[recorder.canary] = ""
    keep = list(tests) + [canary]
    suite.addTest(canary)
    suite._removeTestAtIndex = lambda index: None
    result = Result(recorder, ids)
    suite.run(result)
    fixtures(result, recorder, names)
    del keep
    recorder.finish()


def fixtures(result, recorder, names):
    """Gives the tests of a failed class or module fixture their outcome."""
    for text, outcome in result.fixtures:
        match = re.match(r"(setUp|tearDown)(Class|Module) \((.*)\)", text)
        if not match:
            continue
        last = match.group(3).rsplit(".", 1)[-1]
        part = "::%s::" % last if match.group(2) == "Class" else "%s.py::" % last
        mine = [n for n in names if part in "/" + n]
        if match.group(1) == "setUp":
            for name in mine:
                if name not in recorder.outcomes:
                    recorder.outcome(name, outcome)
        elif mine:
            recorder.outcome(mine[-1], outcome)


class Watch:
    """Notes when code under test looks into the memory or the frames that it
    shares with this runner. An audit hook cannot be removed."""

    EVENTS = {
        "gc.get_objects": "gc.get_objects", "gc.get_referrers": "gc.get_referrers", "gc.get_referents": "gc.get_referents",
        "sys._getframe": "frames", "sys._current_frames": "frames", "sys.settrace": "sys.settrace", "sys.setprofile": "sys.setprofile",
        "ctypes.dlopen": "ctypes", "ctypes.dlsym": "ctypes", "ctypes.addressof": "ctypes", "sys.addaudithook": "sys.addaudithook",
        "os.fork": "os.fork", "os.forkpty": "os.fork",
    }

    def __init__(self, order, recorder):
        root = os.path.realpath(order["root"]) + os.sep
        tests = {os.path.join(root, p) for p in order["protected"]}
        kept = tuple(k.rstrip(os.sep) + os.sep for k in order["keep"])
        seen, send, frame, events, generated = set(), recorder.send, sys._getframe, self.EVENTS, ("<string>", "<stdin>")
        busy = []

        def hook(event, args):
            what = events.get(event)
            if what is None and not (event == "object.__setattr__" and args[1:2] == ("__code__",)):
                return
            if busy:
                return
            busy.append(1)
            try:
                where = frame(1).f_code.co_filename
            finally:
                busy.pop()
            mine = where.startswith(root) and where not in tests and not where.startswith(kept or ("\0",))
            if mine or where in generated and what in ("gc.get_objects", "gc.get_referrers", "ctypes"):
                sign = "%s in %s" % (what or "function.__code__", where[len(root):] if mine else "generated code")
                if sign not in seen:
                    seen.add(sign)
                    send("sign", why=sign)

        if hasattr(sys, "addaudithook"):
            sys.addaudithook(hook)


def main():
    order = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    for name in ("args", "names", "patterns", "paths", "keep", "protected"):
        order[name] = order[name] or []
    staged, order["root"] = order["root"], os.getcwd()
    order["args"] = [order["root"] + a[len(staged):] if within(a, staged) else a for a in order["args"]]
    if not order["protected"]:
        found = test_files(order["root"], ("conftest.py", "test*.py", "*_test.py"))
        order["protected"] = [os.path.relpath(p, order["root"]) for p in found]
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    sys.argv[:] = ["nexus-test"]
    # What this process was started with is not for those that tests start.
    for name in ("PYTHONSAFEPATH", "PYTHONPYCACHEPREFIX"):
        os.environ.pop(name, None)
    if order["mode"] == "serve":
        serve(order)
    recorder = Recorder(order)
    if order["split"]:
        Apart(order, recorder)
    else:
        Watch(order, recorder)
    {"pytest": run_pytest, "unittest": run_unittest}[order["mode"]](order, recorder)
