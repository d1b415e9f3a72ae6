# tried: 64 MiB of files where 8 are allowed
def fill():
    for i in range(16):
        with open("fill%d" % i, "wb", buffering=0) as f:
            n = f.write(b"x" * (4 << 20))
            if n < 4 << 20:
                raise OSError(errno.ENOSPC, "short write")
attempt("64 MiB", fill)
