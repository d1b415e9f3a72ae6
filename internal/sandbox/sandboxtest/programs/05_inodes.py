# tried: 2000 files where 500 are allowed
def fill():
    for i in range(2000):
        os.close(os.open("f%d" % i, os.O_CREAT | os.O_WRONLY))
attempt("2000 files", fill)
