# tried: descriptors that somebody forgot to close
for fd in range(3, 1024):
    try:
        os.fstat(fd)
        print("ALLOWED descriptor", fd)
    except OSError:
        pass
print("refused descriptors")
