# tried: hooks and filters that the next git command would run
os.makedirs(".git/hooks", exist_ok=True)
with open(".git/hooks/post-checkout", "w") as f:
    f.write("#!/bin/sh\ntouch %s/owned\n" % E["OUTSIDE"])
os.chmod(".git/hooks/post-checkout", 0o755)
with open(".git/config", "w") as f:
    f.write("[core]\n\tfsmonitor = touch %s/owned\n" % E["OUTSIDE"])
print("left")
