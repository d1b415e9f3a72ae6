# tried: TCP to a port of this machine
def connect(kind, host, proto=0):
    s = socket.socket(kind, socket.SOCK_STREAM, proto)
    s.settimeout(2)
    s.connect((host, int(E["PORT"])))
attempt("tcp", connect, socket.AF_INET, "127.0.0.1")
attempt("mptcp", connect, socket.AF_INET, "127.0.0.1", 262)
attempt("tcp6", connect, socket.AF_INET6, "::1")
