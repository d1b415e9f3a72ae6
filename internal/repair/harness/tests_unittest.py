"""Collects and runs tests with unittest, inside the current process."""
import ast
import os
import re
import time
import unittest

from . import layout, trace

PASSED = "passed"


class Program(unittest.TestProgram):
    """The command line of unittest without the run, so its arguments mean the same."""

    def runTests(self):
        self.result = None


class Result(unittest.TestResult):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen
        self.state = None
        self.err = None

    def startTest(self, test):
        super().startTest(test)
        self.state, self.err, self.began = PASSED, None, time.perf_counter()

    def note(self, state, err=None):
        if self.state in (None, PASSED):
            self.state = state
        if err is not None:
            self.err = err[1]

    def addFailure(self, test, err):
        self.note("failed", err)

    def addError(self, test, err):
        if not hasattr(test, "_testMethodName"):
            self.began = time.perf_counter()
            self.state, self.err = "error", err[1]
            self.fixture = test.id()
            return
        self.note("error", err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note("failed", err)

    def addSkip(self, test, reason):
        self.note("skipped")

    def addExpectedFailure(self, test, err):
        self.note("xfailed")

    def addUnexpectedSuccess(self, test):
        self.note("xpassed")

    def stopTest(self, test):
        super().stopTest(test)
        if self.seen(test.id(), self.state, time.perf_counter() - self.began, self.err) is False:
            self.stop()


class Tests:
    def __init__(self, suite):
        self.suite = suite
        self.items, self.errors = {}, {}
        for test in flatten(suite):
            if type(test).__name__ in ("_FailedTest", "ModuleImportFailure"):
                self.errors[test.id()] = getattr(test, "_exception", None)
            else:
                self.items[test.id()] = test
        self.ids = list(self.items)

    def under(self, prefix):
        if prefix in self.items:
            return [prefix]
        short = prefix.replace("unittest.loader._FailedTest.", "")
        return [i for i in self.ids if i.startswith(short + ".")]

    def names_file(self, id_):
        short = id_.replace("unittest.loader._FailedTest.", "")
        return short if short != id_ else ".".join(id_.split(".")[:-2])

    def run(self, ids, seen):
        result = Result(seen)
        unittest.TestSuite([self.items[i] for i in ids]).run(result)
        return not result.shouldStop


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            for inner in flatten(test):
                yield inner
        else:
            yield test


def cheap_failures():
    """Leaves out the text of a difference, which costs far more than the test: that of two long lists grows with the square."""
    import types
    from unittest import case

    case.difflib = types.SimpleNamespace(ndiff=lambda *_: [], unified_diff=lambda *_, **__: [])
    case.pprint = types.SimpleNamespace(pformat=lambda *_, **__: "")


def record_compares(values):
    """Notes the operands of failed assertEqual calls in values."""
    plain = unittest.TestCase.fail

    def fail(self, msg=None):
        text = str(msg)
        left, _, right = text.partition(" != ")
        try:
            values.append(("==", ast.literal_eval(left), ast.literal_eval(right.split("\n")[0].split(" : ")[0])))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            values.append(("==", None, None))
        return plain(self, msg)

    unittest.TestCase.fail = fail
    unittest.TestCase._baseAssertEqual = base_equal(values)


def base_equal(values):
    def equal(self, first, second, msg=None):
        if not first == second:
            values.append(("==", first, second))
            raise self.failureException(self._formatMessage(msg, "%r != %r" % (first, second)))

    return equal


def preload():
    """Imports what unittest imports lazily."""
    import unittest.mock

    return unittest.mock


def session(args, on_ready):
    layout.add_paths()
    args = list(args)
    if args[:1] and args[0].endswith("unittest"):
        args = args[1:]
    try:
        program = Program(module=None, argv=["python -m unittest"] + args, exit=False)
    except SystemExit as end:
        return "unittest refused its arguments (status %s)" % end.code
    on_ready(Tests(program.test))
    return None


def describe_failure(err, tracer):
    """As data; an import failure arrives as the text of a traceback."""
    if err is None:
        return None
    text = str(err)
    if isinstance(err, ImportError) and "Traceback (most recent" in text:
        kind, _, rest = text.strip().splitlines()[-1].partition(": ")
        frames = []
        for name, line, func in re.findall(r'File "([^"\n]+)", line (\d+), in (\S+)', text):
            rel = tracer.paths.get(os.path.normpath(os.path.join(tracer.root, name)))
            if rel:
                frames.append((rel, int(line), func))
        return {"type": kind, "text": rest[:500], "frames": frames, "names": []}
    return trace.describe(err, trace.frames_of(err, tracer))
