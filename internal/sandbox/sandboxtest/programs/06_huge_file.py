# tried: a sparse file of 1 TiB, and one that grows past the limit
def grow():
    with open("big", "wb", buffering=0) as f:
        for _ in range(64):
            if f.write(b"x" * (1 << 20)) < 1 << 20:
                raise OSError(errno.EFBIG, "short write")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
attempt("sparse", os.truncate, os.open("sparse", os.O_CREAT | os.O_RDWR), 1 << 40)
attempt("growing", grow)
