# tried: to be found in the place of the interpreter
for name in ("python3", "sh", "pytest"):
    with open(name, "w") as f:
        f.write("#!/bin/sh\necho ALLOWED replaced\n")
    os.chmod(name, 0o755)
import subprocess
subprocess.run(["python3", "-c", "print('refused replaced')"], check=True)
