"""Where a project's own modules are found."""
import os
import sys


def add_paths():
    """Puts the project's folder, and a src that is no package, first, as the test run does."""
    root = os.getcwd()
    front = [root]
    src = os.path.join(root, "src")
    if os.path.isdir(src) and not os.path.exists(os.path.join(src, "__init__.py")):
        front.append(src)
    sys.path[:0] = front
