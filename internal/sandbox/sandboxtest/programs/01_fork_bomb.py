# tried: 300 processes that stay
for _ in range(300):
    try:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    except OSError:
        time.sleep(0.02)
time.sleep(20)
