"""Read lists of edges the slow way: the oracle for the compiled parser."""

import re
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.ingest.tables.columns import EDGE_COLUMNS, ColumnRequest, choose_columns, header_names

Rows = list[tuple[int, int, int]]
"""Two ids and the number of their line."""


class BadLine(Exception):
    """The first line that cannot be read; its number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def read_rows(content: bytes, name: str = "g.txt", request: ColumnRequest = EDGE_COLUMNS, wide: int = 0) -> Rows:
    """Read a list of edges (`wide` = 2), of labels (1), or of entries (0): so many columns hold any 64-bit integers.

    Raises
    ------
    BadLine
    """
    tabs = Path(name).suffix == ".tsv"
    blanks = b" \v\f" if tabs else b" \t\v\f"
    rows: Rows = []
    fields = separator = 0
    wanted = (0, 1)
    first, signs = True, set()
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        text = re.sub(rb"\r+$", b"", line)
        if re.search(rb"[\x00-\x08\x0e-\x1f\r]", text):
            raise BadLine(number)
        text = text.strip(blanks)
        if not text or text[:1] in (b"#", b"%"):
            continue
        if first:
            first = False
            if text[:1] in (b"<", b"{", b"["):
                raise BadLine(number)
            header = header_names(text.decode("utf-8", "replace"), tabs, request, InputError)
            if header is not None:
                try:
                    wanted = choose_columns(header[0], request, InputError)
                except InputError:
                    raise BadLine(number) from None
                fields = len(header[0])
                separator = header[1] if fields > 2 else 0
                continue
        found = split_row(text, bytes([separator]) if separator else None, wanted, blanks, tabs)
        if found is None or len(found) < 2 or (fields and len(found) != fields):
            raise BadLine(number)
        fields = fields or len(found)
        if not all(_fits(found[place], at < wide) for at, place in enumerate(wanted)):
            raise BadLine(number)
        ids = [_unquoted(found[at]) for at in wanted]
        signs |= {"below" if int(one) < 0 else "above" for one in ids if not 0 <= int(one) < 2**63}
        if len(signs) > 1:
            raise BadLine(number)
        rows.append((int(ids[0]), int(ids[1]), number))
    return rows


def _unquoted(text: bytes) -> bytes:
    return text[1:-1] if re.fullmatch(rb'"[^"]*"', text) else text


def _fits(text: bytes, wide: bool) -> bool:
    text = _unquoted(text)
    if not re.fullmatch(rb"-?[0-9]+" if wide else rb"[0-9]+", text):
        return False
    sign, digits = text.startswith(b"-"), text.lstrip(b"-").lstrip(b"0")[:30] or b"0"
    return -int(digits) >= -(2**63) if sign else int(digits) < (2**64 if wide else 2**63)


def split_row(
    text: bytes, separator: bytes | None, wanted: tuple[int, int], blanks: bytes, tabs: bool
) -> list[bytes] | None:
    """Return the fields of a row; None where it is wrong."""
    hard = b",;|\t" if tabs else b",;|"
    if separator is None:
        behind = re.sub(rb"^[^" + re.escape(blanks + hard) + rb"]*", b"", text).lstrip(blanks)[:1]
        separator = behind if behind and behind in hard else b" "
    fields = (
        re.split(rb"[" + re.escape(blanks) + rb"]+", text)
        if separator == b" "
        else split_quoted(text, separator, blanks)
    )
    if fields is None:
        return None
    ended = False
    if separator != b" ":
        fields = [field.strip(blanks) for field in fields]
        ended = not fields[-1]
        if ended:
            fields.pop()
    if not ended and len(fields) - 1 in wanted and fields[-1][-1:] and fields[-1][-1:] in hard:
        fields[-1] = fields[-1][:-1].rstrip(blanks)  # one separator may end a row
    return fields if all(fields) else None


def split_quoted(text: bytes, separator: bytes, blanks: bytes) -> list[bytes] | None:
    """Split at separators outside of quoted fields; blanks may stand before a quote."""
    fields = [b""]
    quotes = quoted = False
    for at in range(len(text)):
        byte = text[at : at + 1]
        if not fields[-1].strip(blanks) and byte == b'"':
            quotes = True
        if quotes and byte == b'"':
            quoted = not quoted
        if byte == separator and not quoted:
            fields.append(b"")
            quotes = False
            continue
        fields[-1] += byte
    return None if quoted else fields
