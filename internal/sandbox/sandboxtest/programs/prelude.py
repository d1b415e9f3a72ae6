# Put before every program. A program prints ALLOWED for what it should not
# have been able to do, and refused for what it was kept from.
import ctypes, errno, os, platform, resource, signal, socket, sys, time

E = os.environ
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"


def attempt(name, f, *args):
    try:
        got = f(*args)
    except OSError as err:
        print("refused", name, errno.errorcode.get(err.errno, err), flush=True)
        return None
    print("ALLOWED", name, repr(got)[:60], flush=True)
    return got


def call(name, x86, arm, *args):
    """A raw system call by its number on either architecture."""
    ctypes.set_errno(0)
    r, e = LIBC.syscall(x86 if X86 else arm, *args), ctypes.get_errno()
    word = "refused" if r < 0 and e in (errno.EPERM, errno.EACCES, errno.ESRCH, errno.ENOSYS, errno.ENOENT, errno.EINVAL) else "ALLOWED"
    print(word, name, errno.errorcode.get(e, e), flush=True)


def read(path):
    with open(path, "rb") as f:
        return f.read(64)


def write(path):
    with open(path, "wb") as f:
        f.write(b"hostile")


