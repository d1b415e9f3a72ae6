# tried: to type into the caller's terminal
import fcntl
attempt("tty", lambda: open("/dev/tty", "rb"))
for fd in (0, 1, 2):
    attempt("TIOCSTI %d" % fd, fcntl.ioctl, fd, 0x5412, b"x")
    attempt("TIOCLINUX %d" % fd, fcntl.ioctl, fd, 0x541C, b"\x02")
