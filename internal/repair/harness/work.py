"""What the forked children do: trace the base, or judge one candidate."""
import gc
import importlib.machinery
import itertools
import os
import signal
import sys
import time
import types

from . import behave, procs, trace

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


class Watch:
    """The timers of one traced test. A busy machine is no slow test: what has hardly run yet gets twice the
    time. What no exception can end, a loop inside an extension, is killed by the second timer."""

    def __init__(self, limit):
        self.limit, self.slow = limit, 0
        signal.signal(signal.SIGALRM, self.ring)

    def start(self, seconds):
        self.seconds, self.wall, self.cpu = seconds, time.monotonic(), time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds + 1.0)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def next_test(self, overran):
        self.slow += overran
        self.start(self.limit if self.slow < 2 else min(self.limit, .3))

    def stop(self):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def ring(self, signum, frame):
        if time.process_time() - self.cpu < .5 * self.seconds and time.monotonic() - self.wall < 1.5 * self.seconds:
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
            return
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        raise TookTooLong()


def trace_base(setup, fd, tracer):
    """Runs all tests but the skipped ones once on the base, traced. Sends the order of the tests, one message
    for each that ended, and at last what was seen over all: who reads knows what runs when nothing comes."""
    run = runner(setup["runner"])
    out = {"types": {}, "modules": []}
    end = time.monotonic() + setup["trace_seconds"]
    watch = Watch(setup["test_seconds"])

    def collected(tests):
        return {"collect": tracer.result(), "raised": tracer.raised,
                "errors": {i: run.describe_failure(e, tracer) for i, e in tests.errors.items()} if tests else {}}

    def ready(tests):
        watch.stop()
        values = []
        run.record_compares(values)
        wanted = [i for f in setup["failing"] for i in tests.under(f)]
        order = wanted + [i for i in tests.ids if i not in set(wanted)]
        order = [i for i in order if i not in setup["skip"]]
        procs.send(fd, dict(collected(tests), order=order))
        tracer.begin()

        def seen(id_, outcome, took, err):
            watch.stop()
            overran = isinstance(err, TookTooLong)
            entry = {"id": id_, "outcome": outcome, "seconds": took, "lines": tracer.result()}
            if outcome != PASSED:
                entry.update(failure=run.describe_failure(err, tracer), timeout=overran, raised=tracer.raised)
                if values:
                    op, left, right = values[-1]
                    entry["compare"] = [str(op), plain(left), plain(right), short_repr(left), short_repr(right)]
            procs.send(fd, {"test": entry})
            del values[:]
            tracer.begin()
            watch.next_test(overran)
            return time.monotonic() < end

        watch.next_test(False)
        tests.run(order, seen)
        watch.stop()
        out["whole"] = True

    fresh_bytecode(setup)
    before = set(sys.modules)
    watch.start(max(setup["test_seconds"], 10.0))
    tracer.begin()
    tracer.start()
    reason = None
    try:
        reason = run.session(setup["args"], ready)
    except TookTooLong:
        reason = "collecting the tests did not end"
    finally:
        tracer.stop()
        watch.stop()
    out.update(reason=reason, types=tracer.types, modules=outside_modules(before, setup["root"]), last=True)
    if reason:
        procs.send(fd, dict(collected(None), order=[]))
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


def allow(cpu, wall):
    """Sets the time of the next test: a loop ends at the first, a wait at the second; both kill."""
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, wall)


def judge(tests, job, say):
    """Runs the tests that must turn green, then those that must stay green; says one answer."""
    failing = []
    for wanted in job["failing"]:
        ids = tests.under(wanted)
        if not ids or wanted in tests.errors:
            say({"verdict": "fail", "stage": "collect", "green": 0})
            return
        failing += [i for i in ids if i not in failing]
    green, tolerant, limit = [], [job.get("all", False)], [(job["cpu"], job["wait"])]

    def strict(id_, outcome, took, err):
        if outcome == PASSED:
            green.append(id_)
        allow(*limit[0])
        return outcome == PASSED or tolerant[0]

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    allow(*limit[0])
    tests.run(failing, strict)
    allow(job["cpu"], 0)
    count = len(green)
    if count < len(failing) and not (tolerant[0] and green):
        say({"verdict": "fail", "stage": "failing", "green": count, "of": len(failing)})
        return
    limit[0] = (job["cpu_passing"], job["wait_passing"])
    allow(*limit[0])
    known = set(tests.ids)
    passing = [i for i in job["passing"] if i not in failing]
    tolerant[0] = False
    if all(i in known for i in passing):
        tests.run(passing, strict)
    allow(job["cpu"], 0)
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

    def ready(tests):
        if job["watch"]:
            say(look(setup, tests, job, [f for f in gc.get_objects() if type(f) is types.FunctionType]))
        else:
            judge(tests, job, say)

    reason = run.session(setup["args"], ready)
    if reason:
        say({"verdict": "fail", "stage": "session", "reason": reason, "green": 0})


def look(setup, tests, job, live):
    """Notes what the candidate that is in place does, see behave."""
    allow(0, 0)
    signal.setitimer(signal.ITIMER_PROF, job["wall"])
    ids = [i for f in job["failing"] for i in tests.under(f)] + [i for i in job["passing"] if i in set(tests.ids)]
    return {"verdict": "seen", "behaviour": behave.observe(tests, ids, setup["root"], setup["paths"], live)}


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
                nursery.spawn(lambda fd, job=job: judge_hot(setup, swapper, tests, job, fd),
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


def judge_hot(setup, swapper, tests, job, fd):
    """Probes the candidates of a batch one after another; a single one is judged to the end."""
    alone = len(job["batch"]) == 1
    for item in job["batch"]:
        answers = []
        (rel, text), = item["files"].items()
        signal.setitimer(signal.ITIMER_PROF, job["cpu"])
        if swapper.apply(rel, text) == 0:
            answers.append({"verdict": "cold"})
        elif job["watch"]:
            answers.append(look(setup, tests, job, itertools.chain(*swapper.live.values())))
        elif alone:
            judge(tests, job, answers.append)
        else:
            judge(tests, dict(job, passing=[]), answers.append)
            if answers[-1]["verdict"] == "pass":
                answers[-1]["verdict"] = "survivor"
        swapper.restore()
        procs.send(fd, dict(answers[-1], job=item["job"], last=False))
    procs.send(fd, {"verdict": "done", "last": True})
