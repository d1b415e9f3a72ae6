# tried: to change the kernel's settings and who is killed first
for p in ("/proc/sys/vm/drop_caches", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj",
          "/proc/self/uid_map", "/proc/1/oom_score_adj", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs"):
    attempt(p, lambda: open(p, "w").write("0"))
