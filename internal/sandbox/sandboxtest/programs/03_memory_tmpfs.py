# tried: 200 MiB in /dev/shm
try:
    with open("/dev/shm/x", "wb") as f:
        for _ in range(200):
            f.write(b"x" * (1 << 20))
except OSError as err:
    print("refused /dev/shm", err)
    sys.exit()
time.sleep(20)
