# tried: to look into and to steer other processes
pid = int(E["VICTIM"])
call("ptrace attach", 101, 117, 16, pid, 0, 0)
call("ptrace parent", 101, 117, 16, os.getppid(), 0, 0)
call("process_vm_readv", 310, 270, pid, 0, 0, 0, 0, 0)
call("process_vm_writev", 311, 271, os.getppid(), 0, 0, 0, 0, 0)
call("pidfd_getfd", 438, 438, 3, 0, 0)
