"""What the forked children do: trace the base, or judge one candidate."""
import gc
import importlib.machinery
import os
import signal
import sys
import time
import types

from . import procs, trace

PASSED = "passed"


def fresh_bytecode(setup):
    """Makes the project's stale bytecode invisible; what was imported before keeps its own."""
    sys.dont_write_bytecode = True
    sys.pycache_prefix = setup["bytecode"]


class TookTooLong(BaseException):
    """Raised by the timer inside a traced test."""


def runner(name):
    if name == "pytest":
        from . import tests_pytest as module
    else:
        from . import tests_unittest as module
    return module


def plain(value):
    """An operand of an assertion as JSON data, or None."""
    if isinstance(value, (bool, int, float, str)) and len(str(value)) < 400:
        return value
    return None


def short_repr(value):
    try:
        return repr(value)[:200]
    except Exception as err:
        return "<%s>" % type(err).__name__


def trace_base(setup, fd):
    """Runs all tests once on the base, traced, and sends what was seen."""
    run = runner(setup["runner"])
    tracer = trace.make(setup["root"], setup["paths"])
    out = {"collect": {}, "tests": [], "errors": {}, "types": {}, "modules": [], "raised": []}
    limit, slow = setup["test_seconds"], [0]
    end = time.monotonic() + setup["trace_seconds"]

    def too_long(signum, frame):
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        raise TookTooLong()

    def ready(tests):
        signal.setitimer(signal.ITIMER_REAL, 0)
        out["collect"], out["raised"] = tracer.result(), tracer.raised
        out["errors"] = {i: run.describe_failure(e, tracer) for i, e in tests.errors.items()}
        out["ids"] = tests.ids
        values = []
        run.record_compares(values)
        wanted = [i for f in setup["failing"] for i in tests.under(f)]
        order = wanted + [i for i in tests.ids if i not in set(wanted)]
        tracer.begin()

        def seen(id_, outcome, took, err):
            signal.setitimer(signal.ITIMER_REAL, 0)
            entry = {"id": id_, "outcome": outcome, "seconds": took, "lines": tracer.result()}
            if outcome != PASSED:
                entry["failure"] = run.describe_failure(err, tracer)
                entry["timeout"] = isinstance(err, TookTooLong)
                entry["raised"] = tracer.raised
                if values:
                    op, left, right = values[-1]
                    entry["compare"] = [str(op), plain(left), plain(right), short_repr(left), short_repr(right)]
            out["tests"].append(entry)
            del values[:]
            tracer.begin()
            slow[0] += isinstance(err, TookTooLong)
            signal.setitimer(signal.ITIMER_REAL, limit if slow[0] < 2 else min(limit, .3))
            return time.monotonic() < end

        signal.setitimer(signal.ITIMER_REAL, limit)
        tests.run(order, seen)
        signal.setitimer(signal.ITIMER_REAL, 0)

    fresh_bytecode(setup)
    signal.signal(signal.SIGALRM, too_long)
    before = set(sys.modules)
    signal.setitimer(signal.ITIMER_REAL, max(limit, 10.0))
    tracer.begin()
    tracer.start()
    try:
        reason = run.session(setup["args"], ready)
    except TookTooLong:
        reason = "collecting the tests did not end"
    finally:
        tracer.stop()
        signal.setitimer(signal.ITIMER_REAL, 0)
    if "ids" not in out:
        out["collect"], out["raised"] = tracer.result(), tracer.raised
    out["reason"] = reason
    out["types"] = tracer.types
    out["modules"] = outside_modules(before, setup["root"])
    out["last"] = True
    procs.send(fd, out)


def outside_modules(before, root):
    """The imported modules that are no part of the project, in import order."""
    names = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name in before or not isinstance(file, str) or file.startswith("<"):
            continue
        if os.path.realpath(file).startswith(os.path.realpath(root) + os.sep):
            continue
        if "site-packages" in file or os.path.dirname(os.__file__) in file:
            names.append(name)
    return names


def judge(tests, job, say):
    """Runs the tests that must turn green, then those that must stay green; says one answer."""
    failing = []
    for wanted in job["failing"]:
        ids = tests.under(wanted)
        if not ids or wanted in tests.errors:
            say({"verdict": "fail", "stage": "collect", "green": 0})
            return
        failing += [i for i in ids if i not in failing]
    green, tolerant, limit = [], [job.get("all", False)], [job["cpu"]]

    def strict(id_, outcome, took, err):
        if outcome == PASSED:
            green.append(id_)
        signal.setitimer(signal.ITIMER_PROF, limit[0])
        return outcome == PASSED or tolerant[0]

    signal.setitimer(signal.ITIMER_PROF, limit[0])
    tests.run(failing, strict)
    count = len(green)
    if count < len(failing) and not (tolerant[0] and green):
        say({"verdict": "fail", "stage": "failing", "green": count, "of": len(failing)})
        return
    limit[0] = job["cpu_passing"]
    signal.setitimer(signal.ITIMER_PROF, limit[0])
    known = set(tests.ids)
    passing = [i for i in job["passing"] if i not in failing]
    tolerant[0] = False
    if all(i in known for i in passing):
        tests.run(passing, strict)
    if len(green) - count < len(passing):
        say({"verdict": "broke", "stage": "passing", "green": count})
    else:
        say({"verdict": "pass" if count == len(failing) else "partial", "green": count, "of": len(failing)})


def overlay(root, files):
    """Makes imports see the candidate's text instead of the file's."""
    texts = {os.path.realpath(os.path.join(root, p)): t for p, t in files.items()}
    loader = importlib.machinery.SourceFileLoader
    real = loader.get_code

    def get_code(self, fullname):
        text = texts.get(os.path.realpath(self.path))
        if text is None:
            return real(self, fullname)
        return compile(text, self.path, "exec", dont_inherit=True)

    loader.get_code = get_code


def judge_cold(setup, job, fd):
    """Judges in a process that has not imported the project yet."""
    run = runner(setup["runner"])
    run.cheap_failures()
    fresh_bytecode(setup)
    overlay(setup["root"], job["files"])

    def say(answer):
        procs.send(fd, dict(answer, last=True))

    reason = run.session(setup["args"], lambda tests: judge(tests, job, say))
    if reason:
        say({"verdict": "fail", "stage": "session", "reason": reason, "green": 0})


def codes_by_path(code, prefix=()):
    """Yields (path of names, code object) for a code object and all inside it."""
    yield prefix, code
    counts = {}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            n = counts.get(const.co_name, 0)
            counts[const.co_name] = n + 1
            for pair in codes_by_path(const, prefix + ((const.co_name, n),)):
                yield pair


class Swapper:
    """Replaces the code of live functions, found through the garbage collector.

    Works for methods, decorated functions and functions imported by name,
    which a reload of the module would not reach.
    """

    def __init__(self, root, texts):
        self.old = {}
        self.live = {}
        self.swapped = []
        for rel, text in texts.items():
            full = os.path.realpath(os.path.join(root, rel))
            self.old[rel] = dict(codes_by_path(compile(text, full, "exec", dont_inherit=True)))
            self.live[full] = []
        for obj in gc.get_objects():
            if type(obj) is types.FunctionType:
                found = self.live.get(os.path.realpath(obj.__code__.co_filename))
                if found is not None:
                    found.append(obj)
        self.root = root

    def apply(self, rel, text):
        """Returns the number of functions that now run the candidate; 0 asks for a fresh import."""
        full = os.path.realpath(os.path.join(self.root, rel))
        new = dict(codes_by_path(compile(text, full, "exec", dont_inherit=True)))
        old = self.old[rel]
        if any(len(k) < 2 for k in set(new) ^ set(old)):
            return 0
        swap = {code: new[path] for path, code in old.items() if path in new and new[path] != code}
        self.swapped = []
        for func in self.live[full]:
            before = func.__code__
            fresh = swap.get(before)
            if fresh is not None:
                if len(fresh.co_freevars) != len(before.co_freevars):
                    return 0
                func.__code__ = fresh
                self.swapped.append((func, before))
        return len(self.swapped)

    def restore(self):
        for func, code in self.swapped:
            func.__code__ = code
        self.swapped = []


def serve_hot(setup, control, report):
    """Collects once, then forks one child for each candidate that it is sent."""
    run = runner(setup["runner"])
    run.cheap_failures()

    def ready(tests):
        swapper = Swapper(setup["root"], setup["texts"])
        gc.collect()
        gc.freeze()
        procs.send(report, {"ready": True})
        nursery = procs.Nursery()
        nursery.private = [control, report]
        inbox = procs.Inbox()
        while True:
            finished, readable = nursery.poll([control], 1.0)
            for child in finished:
                for answer in settle(child):
                    procs.send(report, answer)
            if not readable:
                continue
            block = os.read(control, 1 << 16)
            if not block:
                nursery.kill_all()
                os._exit(0)
            for job in inbox.feed(block):
                nursery.spawn(lambda fd, job=job: judge_hot(swapper, tests, job, fd),
                              job["wall"], job, job["cpu"], setup["memory"])

    fresh_bytecode(setup)
    reason = run.session(setup["args"], ready)
    procs.send(report, {"ready": False, "reason": reason})


def settle(child):
    """One answer for each candidate of a batch; those behind a deadly one are to be sent again."""
    answers = [m for m in child.messages if "job" in m]
    known = {m["job"] for m in answers}
    death = next((m for m in child.messages if "job" not in m and m.get("verdict") != "done"), None)
    for item in child.tag["batch"]:
        if item["job"] not in known:
            verdict = dict(death, job=item["job"]) if death else {"job": item["job"], "verdict": "again"}
            death = None
            answers.append(verdict)
    return answers


def judge_hot(swapper, tests, job, fd):
    """Probes the candidates of a batch one after another; a single one is judged to the end."""
    alone = len(job["batch"]) == 1
    for item in job["batch"]:
        answers = []
        (rel, text), = item["files"].items()
        signal.setitimer(signal.ITIMER_PROF, job["cpu"])
        if swapper.apply(rel, text) == 0:
            answers.append({"verdict": "cold"})
        elif alone:
            judge(tests, job, answers.append)
        else:
            judge(tests, dict(job, passing=[]), answers.append)
            if answers[-1]["verdict"] == "pass":
                answers[-1]["verdict"] = "survivor"
        swapper.restore()
        procs.send(fd, dict(answers[-1], job=item["job"], last=False))
    procs.send(fd, {"verdict": "done", "last": True})
