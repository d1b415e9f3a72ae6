"""Forked children with limits, a result pipe and a certain end."""
import ctypes
import errno
import json
import os
import resource
import select
import signal
import struct
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GIB = 1 << 30


def libc():
    try:
        return ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None


LIBC = libc()


def prctl(option, value):
    """Best effort: False where the system has no prctl."""
    if LIBC is None or not hasattr(LIBC, "prctl"):
        return False
    return LIBC.prctl(option, value, 0, 0, 0) == 0


def address_space():
    """The address space in use in bytes, or 0 where it can't be read."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def lower(kind, value):
    """Sets a soft and hard limit, never above the hard limit that is set."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (ValueError, OSError) as err:
        return str(err)
    return None


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def send(fd, message):
    body = json.dumps(message).encode("ascii")
    write_all(fd, struct.pack(">I", len(body)) + body)


class Inbox:
    """Length-prefixed JSON messages out of a stream of bytes."""

    def __init__(self):
        self.data = b""

    def feed(self, block):
        self.data += block
        out = []
        while len(self.data) >= 4:
            size = struct.unpack(">I", self.data[:4])[0]
            if len(self.data) < 4 + size:
                break
            body, self.data = self.data[4:4 + size], self.data[4 + size:]
            try:
                out.append(json.loads(body.decode("utf-8")))
            except ValueError:
                out.append({"verdict": "garbled"})
        return out


class Child:
    def __init__(self, pid, fd, deadline, tag):
        self.pid, self.fd, self.deadline, self.tag = pid, fd, deadline, tag
        self.inbox = Inbox()
        self.messages = []


class Nursery:
    """The children of one process. kill_all leaves none of them."""

    def __init__(self):
        self.children = {}
        self.owner = os.getpid()
        self.quiet = os.open(os.devnull, os.O_RDWR)
        self.private = []

    def spawn(self, work, wall, tag, cpu=0.0, memory=GIB):
        """Forks; the child runs work(fd) and its messages come out of poll."""
        read, write = os.pipe()
        pid = os.fork()
        if pid:
            os.close(write)
            child = Child(pid, read, time.monotonic() + wall, tag)
            self.children[read] = child
            return child
        code = 70
        try:
            self._become_child(read, cpu, memory)
            work(write)
            code = 0
        except BaseException as err:
            try:
                send(write, {"verdict": "crash", "reason": ("%s: %s" % (type(err).__name__, err))[:300], "last": True})
            except BaseException:
                code = 71
        finally:
            os._exit(code)

    def _become_child(self, read, cpu, memory):
        os.setpgid(0, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self.owner:
            os._exit(72)
        os.close(read)
        for child in self.children.values():
            os.close(child.fd)
        for fd in self.private:
            os.close(fd)
        self.children, self.private = {}, []
        for fd in (0, 1, 2):
            os.dup2(self.quiet, fd)
        if memory:
            used = address_space()
            if used:
                lower(resource.RLIMIT_AS, used + memory)
        lower(resource.RLIMIT_CORE, 0)
        lower(resource.RLIMIT_FSIZE, 64 << 20)
        if cpu:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, cpu)

    def poll(self, extra=(), wait=0.05):
        """Waits for something; returns (finished children, readable extra descriptors)."""
        now = time.monotonic()
        for child in self.children.values():
            wait = max(0.0, min(wait, child.deadline - now))
        try:
            ready = select.select(list(self.children) + list(extra), [], [], wait)[0]
        except InterruptedError:
            ready = []
        finished = []
        for fd in ready:
            child = self.children.get(fd)
            if child is None:
                continue
            block = b""
            try:
                block = os.read(fd, 1 << 16)
            except OSError as err:
                if err.errno != errno.EINTR:
                    block = b""
            if block:
                child.messages += child.inbox.feed(block)
                if not any(m.get("last") for m in child.messages):
                    continue
            self._reap(child)
            finished.append(child)
        now = time.monotonic()
        for child in [c for c in self.children.values() if c.deadline <= now]:
            child.messages.append({"verdict": "timeout", "reason": "wall clock", "last": True})
            self._reap(child)
            finished.append(child)
        return finished, [fd for fd in ready if fd in extra]

    def _reap(self, child):
        self.children.pop(child.fd, None)
        os.close(child.fd)
        for kill in (lambda: os.killpg(child.pid, signal.SIGKILL), lambda: os.kill(child.pid, signal.SIGKILL)):
            try:
                kill()
            except OSError:
                continue
        try:
            _, status = os.waitpid(child.pid, 0)
        except ChildProcessError:
            status = 0
        if not any(m.get("last") for m in child.messages):
            sig = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            verdict = "timeout" if sig in (signal.SIGPROF, signal.SIGALRM) else "crash"
            child.messages.append({"verdict": verdict, "reason": "ended without a result (status %d)" % status,
                                   "last": True})

    def kill_all(self):
        for child in list(self.children.values()):
            self._reap(child)

    def adopt(self):
        """Makes orphans of the children come back here, so that kill_orphans finds them."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def kill_orphans(self):
        for _ in range(50):
            pids = descendants(os.getpid())
            if not pids:
                return
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.01)


def descendants(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            pids = [int(p) for p in f.read().split()]
    except (OSError, ValueError):
        return []
    return pids + [d for p in pids for d in descendants(p)]


def exit_now(code):
    sys.stdout = sys.stderr = None
    os._exit(code)
