"""One Python file as bytes, text and syntax tree, edited by spans.

All offsets are byte offsets into the UTF-8 form of the text, because that is
what ast reports.  The file's own encoding, byte order mark and line ends are
kept: a candidate differs from the file in its spans alone.
"""
import ast
import codecs
import io
import re
import sys
import tokenize
import types
import warnings

from . import fstrings

STMT_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
INNER_FSTRINGS = sys.version_info >= (3, 12)


class Unreadable(Exception):
    """The file can't be edited; the text says why."""


class Source:
    """A parsed file. Raises Unreadable, never a parser's own exception."""

    def __init__(self, path, data):
        self.path = path
        self.data = data
        try:
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            self.bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
            if self.bom:
                self.encoding = "utf-8"
            text = data[len(self.bom):].decode(self.encoding)
            self.utf8 = text.encode("utf-8")
            self.tree = ast.parse(text)
        except (SyntaxError, UnicodeError, ValueError, LookupError, RecursionError, MemoryError) as err:
            raise Unreadable("%s: %s" % (type(err).__name__, err))
        self.newline = "\r\n" if b"\r\n" in data else "\n"
        self.starts = [0] + [m.end() for m in re.finditer(rb"\r\n|\r|\n", self.utf8)]
        for node in () if INNER_FSTRINGS else list(ast.walk(self.tree)):
            if isinstance(node, ast.JoinedStr):
                node._placed = fstrings.place(self, node)
        self.stmts, self.undefined = [], None
        self._link(self.tree, None, None, None, False)

    def _link(self, node, parent, func, cls, fstring):
        node._parent, node._func, node._cls, node._fstr = parent, func, cls, fstring
        if isinstance(node, (ast.stmt, ast.ExceptHandler)) or type(node).__name__ == "match_case":
            self.stmts.append(node)
        inner_func, inner_cls = func, cls
        if isinstance(node, FUNCTIONS):
            inner_func = node
        elif isinstance(node, ast.ClassDef):
            inner_cls, inner_func = node, None
        fstring = fstring or isinstance(node, ast.JoinedStr)
        for field, value in ast.iter_fields(node):
            inside = field in STMT_FIELDS
            if isinstance(node, ast.FormattedValue) and field == "value" and open_fields(parent):
                fstring = False
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    self._link(child, node, inner_func if inside else func,
                               inner_cls if inside else cls, fstring)

    def offset(self, line, col):
        return self.starts[line - 1] + col

    def span(self, node):
        return (self.offset(node.lineno, node.col_offset),
                self.offset(node.end_lineno, node.end_col_offset))

    def text(self, node):
        start, end = self.span(node)
        return self.utf8[start:end].decode("utf-8", "replace")

    def line_start(self, line):
        return self.starts[line - 1]

    def line_end(self, line):
        """The offset behind the line's own line end."""
        return self.starts[line] if line < len(self.starts) else len(self.utf8)

    def indent(self, node):
        start = self.starts[node.lineno - 1]
        return re.match(rb"[ \t\f]*", self.utf8[start:]).group().decode()

    def alone(self, stmt):
        """Whether the statement has its lines for itself (no ; and no one-line block)."""
        start, end = self.span(stmt)
        before = self.utf8[self.line_start(stmt.lineno):start]
        after = self.utf8[end:self.line_end(stmt.end_lineno)].strip()
        return not before.strip() and (not after or after.startswith(b"#"))

    def between(self, start, end):
        """The text of a gap with comments blanked, so that offsets stay."""
        gap = self.utf8[start:end]
        return re.sub(rb"#[^\r\n]*", lambda m: b" " * len(m.group()), gap)

    def find(self, start, end, word):
        """The span of an operator or keyword inside a gap, or None."""
        pattern = rb"\s+".join(re.escape(w.encode()) for w in word.split())
        if word[0].isalpha():
            pattern = rb"\b" + pattern + rb"\b"
        m = re.search(pattern, self.between(start, end))
        return (start + m.start(), start + m.end()) if m else None

    def edited(self, spans):
        """The UTF-8 text with the spans replaced, or None when they overlap."""
        out, at = [], 0
        for start, end, text in sorted(spans, key=lambda s: (s[0], s[1])):
            if start < at:
                return None
            out.append(self.utf8[at:start])
            out.append(text.encode("utf-8"))
            at = end
        out.append(self.utf8[at:])
        return b"".join(out)

    def encoded(self, utf8):
        """The text in the file's own encoding; UnicodeError when it can't be."""
        if self.encoding in ("utf-8", "ascii") and self.encoding != "ascii":
            return self.bom + utf8
        return self.bom + utf8.decode("utf-8").encode(self.encoding)

    def unit(self, node):
        """The span of the outermost function, or the statement, that is compiled again to compare."""
        top = node
        while top._parent is not None and not isinstance(top, FUNCTIONS + (ast.ClassDef, ast.stmt)):
            top = top._parent
        found, at = None, top
        while at._parent is not None:
            if isinstance(at, FUNCTIONS):
                found = at
            top, at = at, at._parent
        top = found or top
        first = min([top.lineno] + [d.lineno for d in getattr(top, "decorator_list", [])])
        return self.line_start(first), self.line_end(top.end_lineno)

    def fingerprint(self, spans, unit):
        """A key equal for candidates with equal meaning; None when it is no Python."""
        start, end = unit
        outer = [s for s in spans if s[0] < start or s[1] > end]
        out, at = [], start
        for a, b, text in sorted((s for s in spans if s not in outer), key=lambda s: (s[0], s[1])):
            if a < at:
                return None
            out.append(self.utf8[at:a])
            out.append(text.encode("utf-8"))
            at = b
        out.append(self.utf8[at:end])
        text = b"".join(out).decode("utf-8", "replace")
        if text[:1] in (" ", "\t"):
            text = "if 1:\n" + text
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = compile(text, "", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return hash((start, repr(outer), shape(code)))


def shape(code):
    """A code object without its positions."""
    consts = tuple(shape(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts)
    return (code.co_name, code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
            code.co_flags, code.co_argcount, code.co_kwonlyargcount)


def open_fields(node):
    """Whether the expressions inside an f-string have exact positions."""
    return INNER_FSTRINGS or getattr(node, "_placed", False)


def own_nodes(stmt):
    """The expression nodes of a statement without the statements inside it."""
    out = []

    def walk(node, top):
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "type_comment", "type_params"):
                continue
            if top and field in STMT_FIELDS and isinstance(value, list):
                continue
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    if hasattr(child, "lineno") or isinstance(child, (ast.comprehension, ast.keyword)):
                        out.append(child)
                    if isinstance(child, ast.JoinedStr) and not INNER_FSTRINGS:
                        walk_fields(child)
                    else:
                        walk(child, False)

    def walk_fields(joined):
        for value in joined.values if open_fields(joined) else ():
            if isinstance(value, ast.FormattedValue):
                out.append(value.value)
                walk(value.value, False)

    walk(stmt, True)
    return out


def annotations(stmt):
    """The expression nodes of the annotations in a statement's own header."""
    notes = [getattr(stmt, "annotation", None), getattr(stmt, "returns", None)]
    if isinstance(stmt, FUNCTIONS):
        notes += [a.annotation for a in ast.walk(stmt.args) if isinstance(a, ast.arg)]
    return [n for note in notes if note is not None for n in ast.walk(note)]


def header_end(stmt):
    """The last line of a statement's own text (a compound one's header)."""
    body = getattr(stmt, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.AST):
        return max(stmt.lineno, body[0].lineno - 1)
    return stmt.end_lineno


def is_docstring(stmt):
    return (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
            and isinstance(stmt.value.value, str))


ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict,
         ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.JoinedStr)


def paren(node, text):
    """The text of an expression, safe as an operand."""
    if isinstance(node, ATOMS) and not (isinstance(node, ast.Constant) and text.startswith("-")):
        return text
    return text if text.startswith("(") and text.endswith(")") and isinstance(
        node, (ast.Tuple, ast.GeneratorExp)) else "(" + text + ")"
