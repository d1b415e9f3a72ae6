# tried: 200 MiB over four children
for _ in range(4):
    if os.fork() == 0:
        keep = bytearray(50 << 20)
        for i in range(0, len(keep), 4096):
            keep[i] = 1
        time.sleep(20)
        os._exit(0)
time.sleep(20)
