# tried: to leave FIFOs and sockets in the place of sources
os.mkfifo("module.py")
os.mkfifo("conftest.py")
socket.socket(socket.AF_UNIX).bind("service.sock")
print("left")
