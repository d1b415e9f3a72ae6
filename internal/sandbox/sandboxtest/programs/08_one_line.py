# tried: one line of 50 MB with NUL and invalid UTF-8
for _ in range(50):
    sys.stdout.buffer.write(b"\x00\xff\xfe" + b"z" * 1_000_000)
sys.stdout.buffer.flush()
