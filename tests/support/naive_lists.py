"""Read lists of edges the slow way: the oracle for the compiled parser."""

import csv
import re
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.ingest.tables.columns import (
    EDGES,
    ColumnRequest,
    choose_columns,
    header_names,
    separator_of,
)

Rows = list[tuple[int, int, int]]
"""Two ids and the number of their line."""


_EDGES = ColumnRequest(EDGES)
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\r]")


class BadLine(Exception):
    """The first line that cannot be read: its number, and whether only its label is no integer, but a text."""

    def __init__(self, number: int, *, text: bool = False) -> None:
        super().__init__(number)
        self.number, self.text = number, text


def read_rows(content: bytes, name: str = "g.txt", request: ColumnRequest = _EDGES, wide: int = 0) -> Rows:
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
    comments = (b"#", b"%")
    lines = [re.sub(rb"\r+$", b"", line) for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    inside = 0  # lines ahead that belong to a row which has been read
    for number, text in enumerate(lines, 1):
        if inside:
            inside -= 1
            continue
        if _NO_TEXT.search(text):
            raise BadLine(number)
        text = text.strip(blanks)
        if not text or text[:1] in comments:
            continue
        if first:
            first = False
            if text[:1] in (b"<", b"{", b"["):
                raise BadLine(number)
            header = header_names(text.decode("utf-8", "replace"), tabs, request, InputError)
            if header is not None:
                comments = ()  # below names of columns, every line is a row
                try:
                    wanted = choose_columns(header[0], request, InputError)
                except InputError:
                    raise BadLine(number) from None
                fields = len(header[0])
                separator = header[1] if fields > 2 else 0
                if separator == ord(" ") and _tabs_separate(lines[number - 1 :], fields, wanted):
                    separator, tabs, blanks = ord("\t"), True, b" \v\f"
                fields += _ends_empty(lines[number - 1 :], tabs, comments, fields)
                continue
        between = bytes([separator]) if separator else None
        if split_row(text, between, wanted, fields, blanks, tabs) is None:
            text, inside = _with_lines_in_quotes(lines[number - 1 :], between, blanks, tabs)
        found = split_row(text, between, wanted, fields, blanks, tabs)
        if found is None or len(found) < 2 or (fields and len(found) != fields):
            raise BadLine(number)
        fields = fields or len(found) + _ends_empty(lines[number - 1 :], tabs, comments, len(found))
        if not all(_fits(found[place], at < wide) for at, place in enumerate(wanted)):
            label = _unquoted(found[wanted[1]])
            text_label = wide == 1 and _fits(found[wanted[0]], True) and label != b""
            raise BadLine(number, text=text_label)
        ids = [_unquoted(found[at]) for at in wanted]
        signs |= {"below" if int(one) < 0 else "above" for one in ids if not 0 <= int(one) < 2**63}
        if len(signs) > 1:
            raise BadLine(number)
        rows.append((int(ids[0]), int(ids[1]), number))
    return rows


def _with_lines_in_quotes(lines: list[bytes], separator: bytes | None, blanks: bytes, tabs: bool) -> tuple[bytes, int]:
    """Return a row with the lines that a field in quotes goes on in, and how many these are."""
    for more in range(len(lines)):
        text = b"\n".join(lines[: more + 1]).strip(blanks)
        if _NO_TEXT.search(text):
            break
        used = separator_in(text, separator, blanks, tabs)
        if used == b" ":
            break
        if split_quoted(text, used, blanks) is not None:
            return text, more
    return lines[0].strip(blanks), 0


def _tabs_separate(lines: list[bytes], width: int, wanted: tuple[int, int]) -> bool:
    """Whether one tab each separates the names of columns, and the fields of the row below them."""
    rows = [line.strip() for line in lines if line.strip() and not _NO_TEXT.search(line)][:2]
    fields = rows[-1].split(b"\t")
    numbers = all(
        re.fullmatch(rb"[-+.]*[0-9][0-9.eE+-]*", fields[at].strip(b" '\"")) for at in wanted if at < len(fields)
    )
    return rows[0].count(b"\t") == width - 1 > 1 and max(wanted) < len(fields) <= width and numbers


def _ends_empty(lines: list[bytes], tabs: bool, comments: tuple[bytes, ...], count: int) -> bool:
    """Whether the first two rows end with an empty field beyond `count`, not with a separator that ends a row."""
    blanks = " \v\f" if tabs else None
    rows = [line.decode("utf-8", "replace").strip(blanks) for line in lines if not _NO_TEXT.search(line)]
    rows = [row for row in rows if row and row[0].encode() not in comments][:2]
    separator = chr(separator_of(rows[0], tabs))
    widths = {len(next(csv.reader([row], delimiter=separator, skipinitialspace=True))) for row in rows}
    return count > 1 and separator != " " and widths == {count + 1}


def _unquoted(text: bytes) -> bytes:
    return text[1:-1] if re.fullmatch(rb'"[^"]*"', text) else text


def _fits(text: bytes, wide: bool) -> bool:
    text = _unquoted(text)
    if not re.fullmatch(rb"-?[0-9]+" if wide else rb"[0-9]+", text):
        return False
    sign, digits = text.startswith(b"-"), text.lstrip(b"-").lstrip(b"0")[:30] or b"0"
    return -int(digits) >= -(2**63) if sign else int(digits) < (2**64 if wide else 2**63)


def split_row(
    text: bytes, separator: bytes | None, wanted: tuple[int, int], width: int, blanks: bytes, tabs: bool
) -> list[bytes] | None:
    """Return the fields of a row, which may be empty if they are not wanted; None where it is wrong.

    `width` is the number of fields of the rows above, 0 for the first row.
    """
    hard = b",;|\t" if tabs else b",;|"
    separator = separator_in(text, separator, blanks, tabs)
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
        if ended and len(fields) != width:  # one separator may end a row
            fields.pop()
    if not ended and len(fields) - 1 in wanted and fields[-1][-1:] and fields[-1][-1:] in hard:
        fields[-1] = fields[-1][:-1].rstrip(blanks)
    return None if any(place < len(fields) and not fields[place] for place in wanted) else fields


def separator_in(text: bytes, separator: bytes | None, blanks: bytes, tabs: bool) -> bytes:
    """Return the separator of a row: the given one, or the one behind its first field."""
    if separator is not None:
        return separator
    hard = b",;|\t" if tabs else b",;|"
    behind = re.sub(rb"^[^" + re.escape(blanks + hard) + rb"]*", b"", text).lstrip(blanks)[:1]
    return behind if behind and behind in hard else b" "


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
