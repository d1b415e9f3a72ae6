# tried: to read keys, passwords and other people's files
for p in ("/etc/shadow", "/root/.ssh/id_rsa", os.path.expanduser("~/.ssh/id_rsa"), E["OUTSIDE"] + "/secret", E["STORE"] + "/blob"):
    attempt(p, read, p)
for p in ("/root", "/home", E["OUTSIDE"]):
    attempt("list " + p, lambda p=p: os.listdir(p) or (_ for _ in ()).throw(OSError(errno.ENOENT, "empty")))
