# tried: 200 MiB in a file that has no name and no mapping
fd = os.memfd_create("x")
for _ in range(200):
    os.write(fd, b"x" * (1 << 20))
time.sleep(20)
