# tried: UDP to this machine, and to look a name up
def send():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"x", ("127.0.0.1", int(E["PORT"])))
attempt("udp", send)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW, 3))
