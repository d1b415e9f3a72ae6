# tried: memory, root and descriptors of process 1 and of the parent
for pid in (1, os.getppid(), int(E["PARENT"])):
    attempt("%d mem" % pid, lambda: open("/proc/%d/mem" % pid, "r+b"))
    attempt("%d root" % pid, os.listdir, "/proc/%d/root/" % pid)
    attempt("%d fd" % pid, lambda: open("/proc/%d/fd/1" % pid, "wb"))
    attempt("%d exe" % pid, os.readlink, "/proc/%d/exe" % pid)
attempt("own exe", lambda: open("/proc/self/exe", "r+b"))
