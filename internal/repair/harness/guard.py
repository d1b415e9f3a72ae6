"""Keeps the tree as it was: candidates may write and delete files."""
import os
import stat

SKIPPED = {".git", "__pycache__", ".venv", "venv", "node_modules", ".pytest_cache", ".tox", ".mypy_cache", ".hypothesis"}
FILE_LIMIT = 1 << 20
TREE_LIMIT = 64 << 20


class TreeGuard:
    """A picture of the tree's regular files, and the way back to it."""

    def __init__(self, root):
        self.root = root
        self.noise = set()
        self.kept = {}
        total = 0
        for path, mark in self._scan().items():
            data = None
            if mark[0] <= FILE_LIMIT and total + mark[0] <= TREE_LIMIT:
                total += mark[0]
                try:
                    with open(os.path.join(root, path), "rb") as f:
                        data = f.read()
                except OSError:
                    data = None
            self.kept[path] = (mark, data)

    def _scan(self):
        out = {}
        stack = [""]
        while stack:
            folder = stack.pop()
            try:
                entries = list(os.scandir(os.path.join(self.root, folder)))
            except OSError:
                continue
            for entry in entries:
                rel = os.path.join(folder, entry.name)
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(info.st_mode):
                    if entry.name not in SKIPPED:
                        stack.append(rel)
                elif stat.S_ISREG(info.st_mode):
                    out[rel] = (info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode))
        return out

    def damage(self):
        """The paths that differ from the picture, without the known noise."""
        now = self._scan()
        out = [p for p, (mark, _) in self.kept.items() if now.get(p) != mark]
        out += [p for p in now if p not in self.kept]
        return [p for p in out if p not in self.noise]

    def restore(self):
        """Puts every kept file back and removes the new ones; returns the paths it touched."""
        touched = self.damage()
        for path in touched:
            full = os.path.join(self.root, path)
            if path not in self.kept:
                remove(full)
                continue
            mark, data = self.kept[path]
            if data is None:
                continue
            os.makedirs(os.path.dirname(full), exist_ok=True)
            remove(full)
            with open(full, "wb") as f:
                f.write(data)
            os.chmod(full, mark[2])
            os.utime(full, ns=(mark[1], mark[1]))
        return touched


def remove(full):
    try:
        os.unlink(full)
    except OSError:
        return False
    return True
