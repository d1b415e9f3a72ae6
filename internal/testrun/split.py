# --- assertions in a process of their own -------------------------------------
#
# With order["split"] the tests run in a process that never imports the code
# under test. Modules of the project that are not its tests are stand-ins: their
# functions are called in a second process, and nothing but plain data comes
# back, which this process decodes into types of the standard library. What a
# test does that plain data cannot carry takes it out of the record.

import pickle  # noqa: E402
import struct  # noqa: E402
import subprocess  # noqa: E402
from importlib.machinery import ModuleSpec, PathFinder  # noqa: E402

PLAIN = {
    "builtins": "set frozenset complex bytearray range slice int float str bytes bool list dict tuple",
    "datetime": "date time datetime timedelta timezone", "decimal": "Decimal", "fractions": "Fraction",
    "collections": "OrderedDict deque Counter defaultdict", "uuid": "UUID SafeUUID", "pathlib": "PosixPath PurePosixPath",
}

# What a test file does that two processes cannot do as one: it patches, looks
# at global state, at time, at chance, or at the identity of objects.
TOGETHER = re.compile(
    r"\b(mock|monkeypatch|mocker|patch\w*|caplog|capfd|recwarn|warns|warnings|deprecated_call|assertLogs|assertNoLogs|assertWarns\w*|"
    r"environ|chdir|getcwd|cwd|seed|random|setrecursionlimit|signal|threading|asyncio|multiprocessing|subprocess|tracemalloc|gc|weakref|"
    r"inspect|importlib|reload|assertIs|assertIsNot|freez\w*|time|sleep|locale|getcontext|localcontext|setattr|delattr|globals)\b"
    r"|\bsys\.(?!path\b)|\bos\.(?!path\b)|\bis\s+(?:not\s+)?(?!None\b|True\b|False\b|not\b)\w")


class NotPlain(Exception):
    """The test needs more than plain data of the code under test."""


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if name in PLAIN.get(module, "").split():
            return super().find_class(module, name)
        raise NotPlain("%s.%s is not plain data" % (module, name))


def plain(data):
    return PlainUnpickler(io.BytesIO(data)).load()


def read_frame(stream):
    head = stream.read(4)
    if len(head) < 4:
        raise EOFError("the process of the code under test has ended")
    size, = struct.unpack(">I", head)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the process of the code under test has ended")
    return data


def write_frame(stream, data):
    stream.write(struct.pack(">I", len(data)) + data)
    stream.flush()


class Apart:
    """The side that runs the tests."""

    def __init__(self, order, recorder):
        self.order, self.recorder = order, recorder
        self.process = None
        self.exceptions = {}
        self.root = os.path.realpath(order["root"])
        self.protected = {os.path.join(self.root, p) for p in order["protected"]}
        # Nobody of the same user may look into this process.
        import ctypes
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        sys.meta_path.insert(0, self)

    def unplain(self, why):
        if not self.recorder.decided:
            self.recorder.plain = False
        return NotPlain(why)

    def decide(self, why):
        """Notes that a value took part in what the test states without being
        plain data: what follows is no longer evidence."""
        if self.recorder.plain:
            self.recorder.decided = True
        return NotPlain(why)

    # the import system

    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path)
        if spec is None or not spec.origin or not within(os.path.realpath(spec.origin), self.root):
            return None
        origin = os.path.realpath(spec.origin)
        if origin in self.protected or os.path.basename(origin) == "conftest.py":
            return None
        found = ModuleSpec(name, self, origin=origin, is_package=spec.submodule_search_locations is not None)
        if found.submodule_search_locations is not None:
            found.submodule_search_locations = spec.submodule_search_locations
        return found

    def create_module(self, spec):
        return StandIn(self, spec.name)

    def exec_module(self, module):
        for name, kind, info in self.ask("import", module.__name__):
            module.__dict__[name] = self.named(module.__name__, name, kind, info)

    # calls

    def ask(self, *message):
        if self.process is None or self.process.poll() is not None:
            self.start()
        try:
            write_frame(self.requests, pickle.dumps(message, 4))
            kind, value, after, printed = plain(read_frame(self.answers))
        except BaseException:
            self.process.kill()
            self.process.wait()
            self.process = None
            raise
        for stream, text in zip((sys.stdout, sys.stderr), printed):
            stream.write(text)
        if after is not None:
            self.after = after
        if kind == "raise":
            raise self.exception(*plain(value))
        try:
            return plain(value) if kind == "value" else Opaque(self, "a value that is not plain data")
        except Exception:
            return Opaque(self, "a value that is not plain data")

    def start(self):
        order = dict(self.order, mode="serve", split=False)
        there, self.requests = os.pipe()
        self.answers, back = os.pipe()
        order["fds"] = [there, back]
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-c", order["source"]], stdin=subprocess.PIPE, stdout=2, pass_fds=(there, back))
        os.close(there)
        os.close(back)
        self.requests, self.answers = os.fdopen(self.requests, "wb"), os.fdopen(self.answers, "rb")
        self.process.stdin.write(json.dumps(order).encode("utf-8"))
        self.process.stdin.close()

    def call(self, module, name, args, kwargs):
        try:
            data = pickle.dumps((args, kwargs), 4)
            plain(data)
        except Exception as err:
            raise self.unplain("an argument is not plain data: %s" % err)
        self.after = None
        try:
            return self.ask("call", module, name, data)
        finally:
            self.update(args, kwargs)

    def update(self, args, kwargs):
        """Gives lists and the like the contents that the call left in them."""
        if self.after is None:
            return
        try:
            new_args, new_kwargs = plain(self.after)
        except Exception:
            return
        for old, new in list(zip(args, new_args)) + [(kwargs[k], new_kwargs.get(k)) for k in kwargs]:
            if type(old) is not type(new) or old == new:
                continue
            if isinstance(old, (list, bytearray)):
                old[:] = new
            elif isinstance(old, (dict, set)):
                old.clear()
                old.update(new)

    def named(self, module, name, kind, info):
        if kind == "function":
            return Proxy(self, module, name)
        if kind == "exception":
            return self.exception_type(info)
        if kind == "module":
            return importlib.import_module(info)
        return Opaque(self, "%s.%s" % (module, name))

    def exception_type(self, mro):
        """A class like the one that the list of (module, name) describes."""
        module, name = mro[0]
        if module == "builtins" and isinstance(getattr(__import__("builtins"), name, None), type):
            return getattr(__import__("builtins"), name)
        if module in sys.modules and not isinstance(sys.modules[module], StandIn) and not within(
                os.path.realpath(getattr(sys.modules[module], "__file__", None) or "/"), self.root):
            known = getattr(sys.modules[module], name, None)
            if isinstance(known, type) and issubclass(known, BaseException):
                return known
        key = (module, name)
        if key not in self.exceptions:
            base = self.exception_type(mro[1:])

            def missing(this, attribute):
                raise self.unplain("an attribute of an exception: " + attribute)

            self.exceptions[key] = type(str(name), (base,), {"__module__": module, "__getattr__": missing})
        return self.exceptions[key]

    def exception(self, mro, args, text):
        cls = self.exception_type(mro)
        err = cls.__new__(cls)
        try:
            err.args = plain(args)
        except Exception:
            err.args = (text,)
        return err


class StandIn(types.ModuleType):
    """A module of the project, in the process that runs the tests."""

    def __init__(self, apart, name):
        super().__init__(name)
        self.__dict__["_apart"] = apart

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)
        apart = self.__dict__["_apart"]
        answer = apart.ask("get", self.__name__, name)
        if isinstance(answer, Opaque):
            return answer
        kind, info = answer
        return plain(info) if kind == "value" else apart.named(self.__name__, name, kind, info)

    def __setattr__(self, name, value):
        if not name.startswith("__") and not isinstance(value, types.ModuleType):
            raise self.__dict__["_apart"].unplain("the test patches " + name)
        self.__dict__[name] = value


class Proxy:
    """A function of the project."""

    def __init__(self, apart, module, name):
        self.__dict__.update(_apart=apart, _module=module, __name__=name, __qualname__=name, __doc__=None)

    def __call__(self, *args, **kwargs):
        return self._apart.call(self._module, self.__name__, args, kwargs)

    def __getattr__(self, name):
        raise self._apart.unplain("an attribute of a function: " + name)


class Opaque:
    """What is no plain data. It equals no plain data, can be called and has
    attributes like any object; every other use is one of data."""

    def __init__(self, apart, what):
        self.__dict__.update(_apart=apart, _what=what)

    def __eq__(self, other):
        if isinstance(other, Opaque):
            raise self._apart.unplain(self._what)
        self._apart.decide(self._what)
        return False

    def __repr__(self):
        return "<%s>" % self._what

    def __call__(self, *args, **kwargs):
        raise self._apart.unplain(self._what)

    def __ne__(self, other):
        return not self == other

    def __getattr__(self, name):
        raise self._apart.unplain(self._what)


def refuse(name):
    def method(self, *args):
        raise self._apart.decide(self._what)

    method.__name__ = name
    return method


for _name in ("iter next len contains getitem setitem delitem bool int float str format bytes hash lt le gt ge add radd sub rsub "
              "mul rmul truediv rtruediv floordiv mod pow neg abs and or xor enter exit await aiter index round reduce_ex instancecheck "
              "subclasscheck mro_entries setattr").split():
    setattr(Opaque, "__%s__" % _name, refuse(_name))


def apart_files(order):
    """The test files whose assertions can run apart."""
    root = order["root"]
    if any(TOGETHER.search(read(path)) for path in test_files(root, ("conftest.py",))):
        return set()
    return {p for p in order["protected"] if p.endswith(".py") and not TOGETHER.search(read(os.path.join(root, p)))}


# --- the process of the code under test ----------------------------------------


def mro_of(cls):
    return [(c.__module__, c.__name__) for c in cls.__mro__ if issubclass(c, BaseException)]


def describe(value, root):
    if isinstance(value, types.ModuleType):
        return "module", value.__name__
    if isinstance(value, type):
        return ("exception", mro_of(value)) if issubclass(value, BaseException) else ("opaque", None)
    if callable(value):
        return "function", None
    if isinstance(value, (list, dict, set, bytearray)):
        return "opaque", None
    try:
        return "value", pickle.dumps(value, 4)
    except Exception:
        return "opaque", None


def answer(message, root):
    what, module = message[0], importlib.import_module(message[1])
    if what == "import":
        found = []
        for name, value in list(vars(module).items()):
            kind, info = describe(value, root)
            if kind != "value" and not name.startswith("__"):
                found.append((name, kind, info))
        return found, None
    value = getattr(module, message[2])
    if what == "get":
        return describe(value, root), None
    args, kwargs = pickle.loads(message[3])
    return value(*args, **kwargs), (args, kwargs)


def serve(order):
    requests, answers = (os.fdopen(fd, mode) for fd, mode in zip(order["fds"], ("rb", "wb")))
    set_path(order)
    while True:
        try:
            message = pickle.loads(read_frame(requests))
        except EOFError:
            os._exit(0)
        out, err = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        after = None
        try:
            value, after = answer(message, order["root"])
            try:
                kind, value = "value", pickle.dumps(value, 4)
            except Exception:
                kind, value = "opaque", b""
        except BaseException as error:
            kind = "raise"
            try:
                args = pickle.dumps(error.args, 4)
            except Exception:
                args = b""
            value = pickle.dumps((mro_of(type(error)), args, str(error)), 4)
        printed = []
        for stream in (sys.stdout, sys.stderr):
            printed.append(stream.getvalue() if isinstance(stream, io.StringIO) else "")
        sys.stdout, sys.stderr = out, err
        if after is not None:
            try:
                after = pickle.dumps(after, 4)
            except Exception:
                after = None
        write_frame(answers, pickle.dumps((kind, value, after, tuple(printed)), 4))
