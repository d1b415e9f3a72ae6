# tried: to write by absolute path
for p in (E["OUTSIDE"] + "/new", E["OUTSIDE"] + "/secret", "/etc/passwd", "/usr/bin/hostile", "/hostile"):
    attempt(p, write, p)
