"""What the project's functions do with the tests' inputs and with inputs near them.

Two candidates that pass the same tests may still be different programs.  A
child runs the tests under a candidate, notes the calls that come from outside
the project with copies of their arguments, and makes these calls again, as
they were and with one argument a little changed.  The same calls under two
candidates tell whether they differ there; that they never do can't be told.
"""
import copy
import hashlib
import itertools
import os
import signal
import sys
import types

MAX_CALLS = 40
MAX_NEAR = 160
MAX_TEXT = 2000
CALL_SECONDS = .1
PLAIN = (bool, int, float, str, bytes, type(None))


class TooLong(BaseException):
    """Raised by the timer inside a repeated call."""


class Recorder:
    """A profile function that keeps the calls into the project from outside of it."""

    def __init__(self, root, paths):
        self.files = {os.path.realpath(os.path.join(root, p)): p for p in paths}
        self.known, self.calls, self.seen, self.busy = {}, [], set(), False

    def path(self, code):
        if code not in self.known:
            self.known[code] = self.files.get(os.path.realpath(code.co_filename))
        return self.known[code]

    def __call__(self, frame, event, arg):
        if event != "call" or self.busy or len(self.calls) >= MAX_CALLS:
            return
        code = frame.f_code
        if not self.path(code) or code.co_name.startswith("<") or code.co_freevars or frame.f_back is None or self.path(frame.f_back.f_code):
            return
        self.busy = True
        try:
            self.keep(code, frame.f_locals)
        except Exception:
            # What can't be copied or shown can't be compared either.
            return
        finally:
            self.busy = False

    def keep(self, code, values):
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[:count + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
        args = copy.deepcopy({n: values[n] for n in names})
        key = (self.path(code), code.co_name, canon(list(args.values())))
        if key not in self.seen and len(key[2]) < MAX_TEXT:
            self.seen.add(key)
            self.calls.append((key, code, args))


def near(value):
    """Values like the given one, a step away."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, 2 * value]
    if isinstance(value, float):
        return [value + 1, value - 1, 0.0]
    if isinstance(value, (str, bytes, list, tuple)):
        return [value[1:], value[:-1], value + value[-1:], value[:0], value[::-1]]
    if isinstance(value, dict):
        return [dict(list(value.items())[1:]), {}]
    return []


def variations(calls):
    """The calls themselves, then each with one argument changed, one kind of change of every call at a time."""
    for key, code, args in calls:
        yield key, code, args
    rows = []
    for key, code, args in calls:
        rows.append([(key, code, dict(args, **{name: other})) for name, value in args.items() for other in near(value)])
    for column in itertools.zip_longest(*rows):
        for entry in column:
            if entry is not None:
                yield entry


def canon(value, depth=4):
    """A text equal for equal data; floats are rounded, objects shown by what they hold."""
    if isinstance(value, float):
        return "%.9g" % value
    if isinstance(value, PLAIN):
        return repr(value)[:MAX_TEXT]
    if depth == 0:
        return type(value).__name__
    if isinstance(value, dict):
        return "{%s}" % ",".join("%s:%s" % (canon(k, depth - 1), canon(v, depth - 1)) for k, v in list(value.items())[:200])
    if isinstance(value, (set, frozenset)):
        return "set(%s)" % ",".join(sorted(canon(v, depth - 1) for v in value))[:MAX_TEXT]
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        return "%s(%s)" % (type(value).__name__, ",".join(canon(v, depth - 1) for v in itertools.islice(value, 200)))
    if isinstance(value, types.GeneratorType):
        return "generator(%s)" % ",".join(canon(v, depth - 1) for v in itertools.islice(value, 50))
    held = getattr(value, "__dict__", None)
    return "%s%s" % (type(value).__name__, canon(held, depth - 1) if isinstance(held, dict) else "")


def repeat(func, code, args):
    """The result of one call, or the exception's name, with what became of the arguments."""
    args = copy.deepcopy(args)
    values = list(args.values())
    plain, rest = values[:code.co_argcount], values[code.co_argcount:]
    words = dict(zip(list(args)[code.co_argcount:], rest[:code.co_kwonlyargcount]))
    more = rest[code.co_kwonlyargcount:]
    if code.co_flags & 4:
        plain += list(more.pop(0))
    if code.co_flags & 8:
        words.update(more.pop(0))
    signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS)
    try:
        text = canon(func(*plain, **words))
    except TooLong:
        text = "no end"
    except Exception as err:
        text = "raises " + type(err).__name__
    signal.setitimer(signal.ITIMER_REAL, 0)
    return text + canon(values)


def observe(tests, ids, root, paths, live):
    """Runs tests and returns {digest of a call: digest of what it did}, without calls that differ by themselves."""
    recorder = Recorder(root, paths)
    sys.setprofile(recorder)
    try:
        tests.run(ids, lambda *_: len(recorder.calls) < MAX_CALLS)
    finally:
        sys.setprofile(None)
    functions = {}
    for func in live:
        functions.setdefault(func.__code__, func)

    def ring(signum, frame):
        raise TooLong()

    signal.signal(signal.SIGALRM, ring)
    out = {}
    for key, code, args in itertools.islice(variations(recorder.calls), MAX_NEAR):
        func = functions.get(code)
        if func is None:
            continue
        try:
            name = "%s %s %s" % (key[0], key[1], canon(list(args.values())))
            first, again = repeat(func, code, args), repeat(func, code, args)
        except (Exception, TooLong):
            continue
        if first == again:
            out[digest(name)] = digest(first)
    return out


def digest(text):
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def classes(behaviours):
    """Numbers the ways in which candidates behave: those that agree wherever both were seen share one."""
    out, leaders = [], []
    for seen in behaviours:
        if not seen:
            out.append(None)
            continue
        for number, leader in enumerate(leaders):
            if all(leader.get(k, v) == v for k, v in seen.items()):
                break
        else:
            number = len(leaders)
            leaders.append(seen)
        out.append(number)
    return out
