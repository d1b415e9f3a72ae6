# tried: to end the parent, the init and everybody
for name, pid in (("parent", int(E["PARENT"])), ("victim", int(E["VICTIM"])), ("group", -int(E["PARENT"]))):
    for s in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        attempt("%s %d" % (name, s), os.kill, pid, s)
# Whom this reaches is seen from outside: the command itself may be all.
if os.fork() == 0:
    os.kill(-1, signal.SIGKILL)
time.sleep(0.3)
