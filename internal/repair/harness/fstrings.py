"""Exact positions for the expressions inside f-strings before Python 3.12.

There ast reports places that are off, so that an edit would land elsewhere.
The fields are found in the text of the literal and parsed again.
"""
import ast
import bisect
import io
import tokenize

OPEN, CLOSE = b"([{", b")]}"


def place(src, node):
    """Gives all fields of a JoinedStr their real positions; False leaves it a closed text."""
    start, end = src.span(node)
    values = [v for v in node.values if isinstance(v, ast.FormattedValue)]
    try:
        found = fields(src.utf8[start:end])
    except (tokenize.TokenError, SyntaxError, ValueError, IndexError):
        return False
    if len(found) != len(values):
        return False
    placed = [parsed(src, start + a, start + b, v.value) for (a, b), v in zip(found, values)]
    if not all(placed):
        return False
    for value, tree in zip(values, placed):
        value.value = tree
    return True


def parsed(src, start, end, known):
    """The expression at a place as a tree with that place's positions, or None when it is another one."""
    text = src.utf8[start:end].decode("utf-8")
    tree = ast.parse("(%s)" % text, mode="eval").body
    if ast.dump(tree) != ast.dump(known) or "\n" in text or "\r" in text:
        return None
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            for line, col in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
                at = start + getattr(node, col) - 1
                row = bisect.bisect_right(src.starts, at)
                setattr(node, line, row)
                setattr(node, col, at - src.starts[row - 1])
    return tree


def fields(segment):
    """The spans of the expressions in one or several adjacent literals."""
    whole = b"(" + segment + b")"
    rows = [0]
    for line in whole.splitlines(True):
        rows.append(rows[-1] + len(line))
    out = []
    for token in tokenize.tokenize(io.BytesIO(whole).readline):
        if token.type != tokenize.STRING:
            continue
        prefix = token.string[:min(token.string.find(q) for q in "'\"" if q in token.string)]
        if "f" in prefix.lower():
            line = whole[rows[token.start[0] - 1]:].decode("utf-8")
            at = rows[token.start[0] - 1] + len(line[:token.start[1]].encode("utf-8"))
            body = token.string.encode("utf-8")
            out += [(at + a - 1, at + b - 1) for a, b in scan(body, len(prefix))]
    return out


def scan(body, at):
    """The spans of the expressions of one literal."""
    quote = body[at:at + 3] if body[at:at + 3] in (b"'''", b'"""') else body[at:at + 1]
    at, end = at + len(quote), len(body) - len(quote)
    out = []
    while at < end:
        if body[at:at + 2] in (b"{{", b"}}"):
            at += 2
        elif body[at:at + 1] == b"{":
            stop = expression_end(body, at + 1)
            out.append((at + 1, stop))
            at = field_end(body, stop)
        else:
            at += 1
    return out


def expression_end(body, at):
    """Where an expression stops: at its conversion, its format, or the closing brace."""
    depth, quote = 0, b""
    while True:
        byte = body[at:at + 1]
        if not byte:
            raise ValueError("no end of a field")
        if quote:
            if body.startswith(quote, at):
                at, quote = at + len(quote) - 1, b""
        elif byte in b"'\"":
            quote = body[at:at + 3] if body[at:at + 3] == byte * 3 else byte
            at += len(quote) - 1
        elif byte in OPEN:
            depth += 1
        elif depth and byte in CLOSE:
            depth -= 1
        elif not depth and (byte in b"}:" or byte == b"!" and body[at + 1:at + 2] != b"="):
            return at
        elif not depth and byte == b"=" and body[at + 1:].lstrip()[:1] in (b"}", b"!", b":"):
            if body[at - 1:at] not in (b"=", b"!", b"<", b">"):
                return at
        at += 1


def field_end(body, at):
    """Behind the brace that closes the field; a format may hold fields of its own."""
    depth = 1
    while depth:
        byte = body[at:at + 1]
        if not byte:
            raise ValueError("no end of a field")
        depth += (byte == b"{") - (byte == b"}")
        at += 1
    return at
