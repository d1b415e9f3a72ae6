"""Collects and runs tests with pytest, inside the current process."""
import importlib.util
import time

import pytest

from . import layout, trace

PASSED = "passed"


class Recorder:
    """The plugin: notes collection errors and exceptions, hands over after collection."""

    def __init__(self, on_ready):
        self.on_ready = on_ready
        self.errors = {}
        self.last = None
        self.subtest_failed = False
        self.done = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self.done = True
        self.on_ready(Tests(session, self))
        return True

    def pytest_collectreport(self, report):
        if report.failed:
            self.errors.setdefault(report.nodeid, None)

    def pytest_runtest_logreport(self, report):
        # Tests are run without logging, so this is about a part of one.
        self.subtest_failed = self.subtest_failed or report.failed

    def pytest_exception_interact(self, node, call, report):
        self.last = call.excinfo.value if call.excinfo else None
        if report.when == "collect":
            self.errors[report.nodeid] = cause(self.last)


def cause(err):
    """The exception behind pytest's own CollectError."""
    seen = 0
    while err is not None and type(err).__name__ in ("CollectError", "ImportErrorMessage") and seen < 5:
        inner = err.__cause__ or err.__context__
        if inner is None:
            break
        err, seen = inner, seen + 1
    return err


class Tests:
    """The collected tests in order."""

    def __init__(self, session, recorder):
        self.recorder = recorder
        self.items = {item.nodeid: item for item in session.items}
        self.ids = [item.nodeid for item in session.items]
        self.errors = recorder.errors

    def under(self, prefix):
        """The collected ids that a file's or class's id stands for."""
        if prefix in self.items:
            return [prefix]
        return [i for i in self.ids if i.startswith(prefix + "::") or i.startswith(prefix + "[")]

    def names_file(self, id_):
        return id_.split("::")[0]

    def run(self, ids, seen):
        """Runs tests; seen(id, outcome, seconds, exception) returns False to stop."""
        from _pytest.runner import runtestprotocol

        items = [self.items[i] for i in ids]
        for n, item in enumerate(items):
            following = items[n + 1] if n + 1 < len(items) else None
            self.recorder.last, self.recorder.subtest_failed = None, False
            began = time.perf_counter()
            reports = runtestprotocol(item, log=False, nextitem=following)
            took = time.perf_counter() - began
            result = outcome(reports)
            if self.recorder.subtest_failed and result == PASSED:
                result = "failed"
            if seen(item.nodeid, result, took, self.recorder.last) is False:
                if following is not None:
                    tear_down(item)
                return False
        return True


def tear_down(item):
    """Ends all fixtures, so that the next run starts afresh after an abort."""
    state = item.session._setupstate
    try:
        state.teardown_exact(None)
    except TypeError:
        state.teardown_exact(item, None)


def outcome(reports):
    result = "missing"
    for report in reports:
        if report.failed:
            return "failed" if report.when == "call" else "error"
        if report.skipped:
            result = "skipped"
        elif report.when == "call":
            result = "xpassed" if hasattr(report, "wasxfail") else PASSED
    return result


def cheap_failures():
    """Leaves out the text of a failure, which costs far more than the test."""
    from _pytest import nodes, python

    for cls in (nodes.Node, python.Function):
        for name in ("repr_failure", "_repr_failure_py"):
            if name in cls.__dict__:
                setattr(cls, name, lambda self, excinfo, style=None: "failed")


def record_compares(values):
    """Notes the operands of failed assertions in values."""
    from _pytest.assertion import util

    def compare(op, left, right):
        values.append((op, left, right))
        return None

    util._reprcompare = compare


def preload():
    """Imports what every run of pytest imports, before the first fork."""
    for name in ("_pytest.assertion.rewrite", "_pytest.python", "_pytest.fixtures", "_pytest.unittest",
                 "_pytest.terminal", "_pytest.junitxml", "_pytest.doctest", "_pytest.tmpdir", "_pytest.logging",
                 "_pytest.monkeypatch", "_pytest.capture", "_pytest.recwarn", "_pytest.skipping", "unittest.mock",
                 "_pytest.stepwise", "_pytest.warnings", "_pytest.unraisableexception", "_pytest.pathlib",
                 "_pytest.pytester_assertions", "_pytest.faulthandler", "_pytest.threadexception", "pdb", "doctest"):
        try:
            __import__(name)
        except ImportError:
            continue


def session(args, on_ready):
    """Collects, then calls on_ready(Tests). Returns a reason when it never got there."""
    recorder = Recorder(on_ready)
    extra = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:faulthandler",
             "--continue-on-collection-errors"]
    if importlib.util.find_spec("xdist"):
        extra += ["-n0"]
    if importlib.util.find_spec("pytest_cov"):
        extra += ["--no-cov"]
    layout.add_paths()
    code = pytest.main(extra + list(args), plugins=[recorder])
    return None if recorder.done else "pytest ended with status %s before it ran a test" % int(code)


def describe_failure(err, tracer):
    err = cause(err)
    if err is None:
        return None
    return trace.describe(err, trace.frames_of(err, tracer))
