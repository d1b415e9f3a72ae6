# tried: a daemon in a session of its own that holds the output
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
    os._exit(0)
os.wait()
print("parent done")
