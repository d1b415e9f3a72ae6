# tried: devices
call("mknod", 259, 33, -100, b"dev", 0o20600, 0x103)
for p in ("/dev/mem", "/dev/kmem", "/dev/kvm", "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/loop-control", "/dev/kmsg"):
    attempt(p, lambda: open(p, "rb"))
