# tried: to stop itself, so that it cannot be asked to end
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(60)
