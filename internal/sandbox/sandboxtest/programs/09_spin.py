# tried: to use the processor for ever
while True:
    pass
