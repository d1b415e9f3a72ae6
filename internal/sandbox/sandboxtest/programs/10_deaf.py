# tried: to sleep for ever, deaf to every signal that can be ignored
for s in range(1, 65):
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    time.sleep(60)
