"""Which lines ran, with which types, and what was raised where.

sys.monitoring where there is one (3.12), sys.settrace otherwise.  Only code of
the target files is recorded; everything else is switched off at its first
event.
"""
import mmap
import os
import struct
import sys

TYPE_SAMPLES = 4
MAX_RAISED = 40
HINTED = (NameError, AttributeError, ImportError, TypeError, KeyError, IndexError, ValueError, RuntimeError)


class Board:
    """The lines of the test that runs now, in memory that outlives the process that is killed in it."""

    SLOTS = 4096

    def __init__(self, paths):
        self.paths = list(paths)
        self.numbers = {p: n for n, p in enumerate(self.paths)}
        self.memory = mmap.mmap(-1, 8 * (self.SLOTS + 1))
        self.count = 0

    def clear(self):
        self.count = 0
        struct.pack_into("<Q", self.memory, 0, 0)

    def note(self, path, line):
        if self.count < self.SLOTS and path in self.numbers:
            self.count += 1
            struct.pack_into("<II", self.memory, 8 * self.count, self.numbers[path], line)
            struct.pack_into("<Q", self.memory, 0, self.count)

    def lines(self):
        out = {}
        for n in range(1, 1 + min(self.SLOTS, struct.unpack_from("<Q", self.memory, 0)[0])):
            number, line = struct.unpack_from("<II", self.memory, 8 * n)
            if number < len(self.paths):
                out.setdefault(self.paths[number], []).append(line)
        return {p: sorted(set(numbers)) for p, numbers in out.items()}


class Tracer:
    """Records one phase (collection, or one test) at a time."""

    def __init__(self, root, paths):
        self.root = root
        self.paths = {os.path.join(root, p): p for p in paths}
        self.known = {}
        self.lines = {}
        self.types = {}
        self.samples = {}
        self.raised = []
        self.seen = set()
        self.active = False
        self.board = Board(paths)

    def file_of(self, code):
        name = code.co_filename
        rel = self.known.get(name)
        if rel is None:
            full = os.path.normpath(os.path.join(self.root, name))
            rel = self.paths.get(full)
            if rel is None:
                rel = self.paths.get(os.path.realpath(full), "")
            self.known[name] = rel
        return rel

    def begin(self):
        self.lines, self.raised, self.seen = {}, [], set()
        self.board.clear()

    def result(self):
        return {p: sorted(s) for p, s in self.lines.items()}

    def hit(self, code, line, frame):
        rel = self.known.get(code.co_filename) or self.file_of(code)
        lines = self.lines.get(rel)
        if lines is None:
            lines = self.lines[rel] = set()
        if line not in lines:
            lines.add(line)
            self.board.note(rel, line)
        key = (code, line)
        count = self.samples.get(key, 0)
        if count < TYPE_SAMPLES and frame is not None:
            self.samples[key] = count + 1
            self.sample(rel, code, frame)

    def sample(self, rel, code, frame):
        known = self.types.setdefault("%s:%d:%s" % (rel, code.co_firstlineno, code.co_name), {})
        for name, value in frame.f_locals.items():
            names = known.setdefault(name, [])
            kind = type(value).__name__
            if kind not in names and len(names) < 6:
                names.append(kind)

    def saw(self, err, code, line):
        rel = self.file_of(code)
        if rel and len(self.raised) < MAX_RAISED and isinstance(err, HINTED) and (id(err), line) not in self.seen:
            self.seen.add((id(err), line))
            self.raised.append(describe(err, [(rel, line, code.co_name)]))


class SettraceTracer(Tracer):
    def start(self):
        self.active = True
        sys.settrace(self.call)
        import threading
        threading.settrace(self.call)

    def stop(self):
        self.active = False
        sys.settrace(None)
        import threading
        threading.settrace(None)

    def call(self, frame, event, arg):
        code = frame.f_code
        rel = self.known.get(code.co_filename)
        if rel is None:
            rel = self.file_of(code)
        if not rel:
            return None
        return self.local

    def local(self, frame, event, arg):
        if event == "line":
            self.hit(frame.f_code, frame.f_lineno, frame)
        elif event == "exception":
            self.saw(arg[1] if isinstance(arg[1], BaseException) else None, frame.f_code, frame.f_lineno)
        return self.local


class MonitoringTracer(Tracer):
    def start(self):
        self.active = True
        mon = sys.monitoring
        self.tool = next((i for i in (4, 3, 1, 0) if mon.get_tool(i) is None), None)
        if self.tool is None:
            self.active = False
            return
        mon.use_tool_id(self.tool, "nexus")
        mon.register_callback(self.tool, mon.events.LINE, self.on_line)
        mon.register_callback(self.tool, mon.events.RAISE, self.on_raise)
        mon.set_events(self.tool, mon.events.LINE | mon.events.RAISE)

    def begin(self):
        super().begin()
        if self.active:
            sys.monitoring.restart_events()

    def on_line(self, code, line):
        if not (self.known.get(code.co_filename) or self.file_of(code)):
            return sys.monitoring.DISABLE
        self.hit(code, line, sys._getframe(1))
        if self.samples.get((code, line), 0) >= TYPE_SAMPLES:
            return sys.monitoring.DISABLE
        return None

    def on_raise(self, code, offset, err):
        if self.known.get(code.co_filename) or self.file_of(code):
            self.saw(err, code, sys._getframe(1).f_lineno)

    def stop(self):
        if self.active:
            self.active = False
            sys.monitoring.set_events(self.tool, 0)
            sys.monitoring.free_tool_id(self.tool)


def make(root, paths):
    if hasattr(sys, "monitoring"):
        return MonitoringTracer(root, paths)
    return SettraceTracer(root, paths)


def describe(err, frames):
    """What the engine wants to know of an exception, as plain data."""
    out = {"type": type(err).__name__, "text": "", "frames": frames, "names": []}
    try:
        out["text"] = str(err)[:500]
    except Exception as broken:
        out["text"] = "<unprintable: %s>" % type(broken).__name__
    try:
        owner = getattr(err, "obj", None)
        if isinstance(err, AttributeError) and owner is not None:
            out["names"] = [n for n in dir(owner)][:400]
        if isinstance(err, ImportError) and getattr(err, "name", None):
            out["module"] = err.name
            mod = sys.modules.get(err.name)
            if mod is not None:
                out["names"] = [n for n in dir(mod)][:800]
        if isinstance(err, KeyError) and err.args and isinstance(err.args[0], str):
            out["key"] = err.args[0][:200]
    except Exception as broken:
        out["text"] += " <%s>" % type(broken).__name__
    return out


def frames_of(err, tracer):
    """The frames of a traceback inside the target files, outermost first."""
    out, tb = [], err.__traceback__
    while tb is not None:
        rel = tracer.file_of(tb.tb_frame.f_code)
        if rel:
            out.append((rel, tb.tb_lineno, tb.tb_frame.f_code.co_name))
        tb = tb.tb_next
    return out
