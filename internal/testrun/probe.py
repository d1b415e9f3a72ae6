"""Tells what an interpreter is, what it can import, and what the given test
files need. Standard library only; reads its question from standard input."""
import sys

sys.path[:] = [p for p in sys.path if p]

import ast  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402

PYTEST_SETUP = {"setup_module", "teardown_module", "setup_function", "teardown_function"}
METHOD_SETUP = {"setup_method", "teardown_method", "setup_class", "teardown_class"}


def last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_case(node, cases):
    return any(last_name(b).endswith("TestCase") or last_name(b) in cases for b in node.bases)


def needed(args, bound):
    count = len(args.args) - len(args.defaults) - (1 if bound else 0)
    return count > 0 or len([d for d in args.kw_defaults if d is None]) > 0


def examine(path):
    """Answers why a file needs pytest (empty: it does not), and what it holds."""
    try:
        with open(path, "rb") as f:
            tree = ast.parse(f.read(), path)
    except (SyntaxError, ValueError, OSError):
        # It shows up as an error of collection under every runner.
        return {"why": "", "cases": 0, "plain": 0}
    why, cases, plain, names = "", 0, 0, set()
    for node in ast.walk(tree):
        imported = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
        if any(n.split(".")[0] in ("pytest", "_pytest") for n in imported):
            why = why or "imports pytest"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and is_case(node, names):
            names.add(node.name)
            cases += 1
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            methods = [m for m in node.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))]
            for m in methods:
                if m.name in METHOD_SETUP:
                    why = why or "has %s" % m.name
                if m.name.startswith("test"):
                    plain += 1
                    why = why or function(m, True)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in PYTEST_SETUP:
                why = why or "has %s" % node.name
            if node.name.startswith("test"):
                plain += 1
                why = why or function(node, False)
    return {"why": why, "cases": cases, "plain": plain}


def function(node, method):
    static = any(last_name(d) == "staticmethod" for d in node.decorator_list)
    if isinstance(node, ast.AsyncFunctionDef):
        return "%s is asynchronous" % node.name
    if needed(node.args, method and not static):
        return "%s takes a fixture" % node.name
    return ""


def pytest_version(home):
    """Answers the version of pytest and the user's site folder if it is there."""
    site = ""
    try:
        import pytest
    except Exception as err:
        site = os.path.join(home, ".local", "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        if not home or not os.path.isdir(os.path.join(site, "pytest")):
            return "", "", str(err)
        sys.path.append(site)
        try:
            import pytest
        except Exception as again:
            return "", "", str(again)
    return pytest.__version__, site, ""


def editable():
    out = []
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""), None)
        mapping = getattr(module, "MAPPING", None)
        if isinstance(mapping, dict):
            out += [v for v in mapping.values() if isinstance(v, str)]
    return out


def main():
    question = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    paths = [p for p in sys.path if os.path.exists(p)]
    files = {f: examine(os.path.join(question["root"], f)) for f in question["files"] or []}
    version, site, problem = pytest_version(question["home"])
    print("\n" + json.dumps({
        "executable": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3],
        "prefixes": sorted({sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}),
        "path": paths, "editable": editable(), "pytest": version, "usersite": site, "problem": problem, "files": files,
    }))


main()
