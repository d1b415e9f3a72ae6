# tried: sockets of this machine's services, by path and abstract
def connect(address):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(2)
    s.connect(address)
attempt("path", connect, E["SOCK"])
attempt("abstract", connect, "\0" + E["ABSTRACT"])
