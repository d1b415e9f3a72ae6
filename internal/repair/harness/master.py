"""The harness's main process: traces, localises, generates, judges, reports.

It never imports the project.  It forks the children that do: one traced run,
a hot server that has collected the tests, and cold children for edits that a
swap of code objects can't reach.  Its own standard output carries one JSON
object a line; the end of its standard input ends it and all children.
"""
import fnmatch
import importlib
import json
import os
import select
import shutil
import sys
import tempfile
import time

from . import guard, procs, trace, work
from .source import Source, Unreadable

SKIPPED = guard.SKIPPED | {"build", "dist", "site-packages"}
MAX_SOURCES = 400
MAX_BYTES = 1 << 20
MAX_LOST = 3
SILENCE = 1.5


class Ended(Exception):
    """The parent closed standard input."""


class Talk:
    """The private channel to the parent; descriptors 0, 1 and 2 are made harmless."""

    def __init__(self):
        self.out = os.dup(1)
        self.input = os.dup(0)
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 0)
        os.dup2(quiet, 1)
        os.close(quiet)

    def say(self, kind, **fields):
        fields["type"] = kind
        procs.write_all(self.out, json.dumps(fields).encode("ascii") + b"\n")

    def alive(self):
        """Raises Ended when the parent has gone."""
        while select.select([self.input], [], [], 0)[0]:
            if not os.read(self.input, 4096):
                raise Ended()


def is_test(path, protected):
    name = os.path.basename(path)
    if name == "conftest.py" or fnmatch.fnmatch(name, "test_*.py") or fnmatch.fnmatch(name, "*_test.py"):
        return True
    parts = path.split("/")[:-1]
    if any(p in ("tests", "test", "testing") for p in parts):
        return True
    return any(path == p or path.startswith(p.rstrip("/") + "/") or fnmatch.fnmatch(path, p) for p in protected)


def python_files(root, wanted):
    """The project's Python files; those under wanted when it is not empty."""
    out = []
    for folder, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d not in SKIPPED and not d.endswith(".egg-info"))
        for name in sorted(files):
            rel = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(".py") and (not wanted or any(rel == w or rel.startswith(w.rstrip("/") + "/") for w in wanted)):
                out.append(rel)
    return out[:4 * MAX_SOURCES]


def load(root, request, report):
    """Reads the sources that may be edited; skips, with a reason, what can't be."""
    protected = request["protected"]
    sources, tests = {}, []
    wanted = [os.path.normpath(t) for t in request["targets"] if os.path.normpath(t) != "."]
    for rel in python_files(root, []):
        full = os.path.join(root, rel)
        if os.path.islink(full) or os.path.getsize(full) > MAX_BYTES or not printable(rel):
            report["skipped"].append("%s: link, size or name" % rel.encode("ascii", "replace").decode())
            continue
        with open(full, "rb") as f:
            data = f.read()
        if is_test(rel, protected):
            tests.append(data.decode("utf-8", "replace"))
            continue
        if wanted and not any(rel == w or rel.startswith(w + "/") for w in wanted):
            continue
        if len(sources) < MAX_SOURCES:
            try:
                sources[rel] = Source(rel, data)
            except Unreadable as err:
                report["skipped"].append("%s: %s" % (rel, err))
    return sources, tests


def printable(path):
    try:
        path.encode("utf-8")
    except UnicodeError:
        return False
    return True


def traced_run(talk, nursery, setup, seconds):
    """The traced base run in a child; meanwhile the rest of the harness is compiled here.

    A test that ends the child, or that nothing but the child's death ends, is noted as failed, with the lines
    that it ran, and the rest runs again without it, MAX_LOST times.
    """
    end = time.monotonic() + seconds
    tracer = trace.make(setup["root"], setup["paths"])
    lost = []
    while True:
        setup["skip"] = [t["id"] for t in lost]
        child = nursery.spawn(lambda fd: work.trace_base(setup, fd, tracer), end - time.monotonic(), "trace", memory=setup["memory"])
        importlib.import_module("_nexus_repair.judging")
        wait_for(talk, nursery, child, 2 * setup["test_seconds"] + SILENCE)
        traced, order = child.messages[-1], []
        for message in child.messages:
            if "order" in message:
                traced, order = dict(traced, tests=[], **message), message["order"]
            elif "test" in message:
                traced["tests"].append(message["test"])
        left = [i for i in order if i not in {t["id"] for t in traced["tests"]}]
        if left and not traced.get("whole"):
            lost.append({"id": left[0], "outcome": "failed", "seconds": setup["test_seconds"], "lines": tracer.board.lines(),
                         "timeout": True})
            if len(lost) <= MAX_LOST and time.monotonic() < end:
                continue
        if "tests" in traced:
            traced["tests"] += lost
        return traced


def wait_for(talk, nursery, child, silence):
    """Waits for a child's end; once it has collected it is killed when it has said nothing for a time."""
    heard, count = time.monotonic(), 0
    while True:
        talk.alive()
        if child in nursery.poll(wait=.2)[0]:
            return
        if count != len(child.messages):
            heard, count = time.monotonic(), len(child.messages)
        if count and time.monotonic() - heard > silence:
            child.deadline = 0.0


def preload(names):
    """Imports in advance what the project imports from outside itself."""
    for name in names[:600]:
        if name.split(".")[0] in ("antigravity", "this", "turtle", "idlelib") or name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except BaseException:
            continue


class Repair:
    def __init__(self, talk, request, bytecode):
        self.talk, self.request, self.bytecode = talk, request, bytecode
        self.root = os.path.realpath(os.getcwd())
        self.began = time.monotonic()
        self.end = self.began + request["seconds"]
        self.nursery = procs.Nursery()
        self.nursery.adopt()
        self.guard = None
        self.nursery.private = [talk.out, talk.input]
        self.report = {"skipped": [], "localised": [], "tried": 0, "hot": 0, "cold": 0, "plausible": 0, "timeouts": 0,
                       "damaged": 0, "partial": 0, "faults": {}, "behaviours": {}, "reason": "", "failing": 0, "passing": 0}

    def run(self):
        reason = self._search()
        self.tidy()
        self.report["reason"] = reason or ""
        self.report["seconds"] = time.monotonic() - self.began
        self.talk.say("done", report=self.report)

    def tidy(self):
        """Ends every child, then puts the tree back; the parent reads it after the report."""
        self.nursery.kill_all()
        self.nursery.kill_orphans()
        if self.guard is not None:
            self.guard.noise = set()
            self.guard.restore()

    def _search(self):
        """Returns the reason when nothing was found."""
        req = self.request
        sources, test_texts = load(self.root, req, self.report)
        if not sources:
            return "no Python source that may be edited could be read"
        try:
            work.runner(req["runner"]).preload()
        except ImportError as err:
            return "the runner can't be imported: %s" % err
        self.guard = guard.TreeGuard(self.root)
        setup = {"runner": req["runner"], "root": self.root, "paths": sorted(sources), "args": req["args"],
                 "failing": req["failing"], "test_seconds": req["test_seconds"], "memory": req["memory"],
                 "trace_seconds": max(2.0, .3 * req["seconds"]),
                 "bytecode": self.bytecode, "texts": {p: s.utf8.decode("utf-8") for p, s in sources.items()}}
        traced = traced_run(self.talk, self.nursery, setup, max(5.0, .5 * req["seconds"]))
        if "tests" not in traced:
            return "the traced run of the tests gave no result: %s" % traced.get("reason")
        noise = self.guard.restore()
        self.guard.noise = set(noise)
        failing, passing = self._split(traced)
        if not failing:
            return traced.get("reason") or "none of the failing tests fails here"
        preload(traced.get("modules", ()))
        from . import locate
        from .judging import Bench
        from .propose import Stream
        ctx, located = self._context(sources, traced, test_texts, failing)
        ranked = locate.rank(ctx, located)
        self.report["localised"] = [{"path": s.path, "line": n.lineno, "suspicion": round(susp, 3)}
                                    for price, susp, s, n in ranked[:10]]
        if not ranked:
            return "no line of the sources ran in a failing test"
        bench = Bench(self, setup, traced, failing, passing, located, ctx, ranked)
        try:
            return bench.search(Stream(ctx, ranked))
        finally:
            bench.close()

    def _split(self, traced):
        """The failing ids to turn green and the passing ones to keep."""
        outcome = {t["id"]: t["outcome"] for t in traced["tests"]}
        red = [t["id"] for t in traced["tests"] if t["outcome"] in ("failed", "error")]
        broken = list(traced["errors"])
        asked = self.request["failing"]
        if asked:
            keep = set(asked)
            unknown = [a for a in asked if a not in outcome]
            wanted = [i for i in red if i in keep or any(i.startswith(u + "::") or i.startswith(u + ".") for u in unknown)]
            wanted += [b for b in broken if not keep.isdisjoint([b]) or any(matches(b, a) for a in asked)]
            if not wanted and broken:
                wanted = broken
        else:
            wanted = red + broken
        asked = set(self.request["passing"])
        passing = [i for i, o in outcome.items() if o == work.PASSED and (not asked or i in asked)]
        self.report["failing"], self.report["passing"] = len(wanted), len(passing)
        return wanted, passing

    def _context(self, sources, traced, test_texts, failing):
        from . import locate
        from .site import Context
        ctx = Context(sources, traced.get("types", {}), test_texts)
        known = set(failing)
        for test in traced["tests"]:
            if test["id"] in known:
                ctx.hints += [h for h in [test.get("failure")] + test.get("raised", []) if h]
                if test.get("compare"):
                    ctx.compares.append((test["compare"][1], test["compare"][2]) if "None" not in test["compare"][3:] else (None, 0))
        ctx.hints += [h for h in list(traced["errors"].values()) + traced["raised"] if h]
        ctx.compares = [c for n, c in enumerate(ctx.compares) if c not in ctx.compares[:n]][:12]
        return ctx, locate.Located(traced, known)


def matches(broken, asked):
    short = broken.replace("unittest.loader._FailedTest.", "")
    return asked == broken or asked.startswith(broken + "::") or asked.startswith(short + ".") or asked == short


def main(request):
    talk = Talk()
    scratch = tempfile.mkdtemp(prefix="nexus-repair-")
    sys.dont_write_bytecode = True
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    repair = None
    code = 0
    try:
        repair = Repair(talk, request, os.path.join(scratch, "bytecode"))
        repair.run()
    except Ended:
        code = 0
    except Exception as err:
        import traceback
        code = 1
        talk.say("error", reason="%s: %s" % (type(err).__name__, err), trace=traceback.format_exc()[-2000:])
    finally:
        if repair is not None:
            repair.tidy()
        shutil.rmtree(scratch, ignore_errors=True)
    procs.exit_now(code)
