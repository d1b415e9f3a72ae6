# tried: to find a secret in any environment
import glob
for p in glob.glob("/proc/*/environ"):
    try:
        if b"very-secret" in open(p, "rb").read():
            print("ALLOWED", p)
    except OSError:
        pass
print("ALLOWED own" if any("very-secret" in v for v in E.values()) else "refused own")
