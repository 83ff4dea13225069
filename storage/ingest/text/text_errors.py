"""Say in words what is wrong with a line."""

import codecs
import mmap
import re
from collections.abc import Sequence

from longwall.storage.ingest.text import text_kernel
from longwall.storage.ingest.text.missing_rows import DROP, MISSING, and_more

_SHOWN = 40
_TOKEN = re.compile(rb'"[^"\n]*"|[^\s,;|]+')
_NOT_TEXT = re.compile(rb"[^\t-\r -~]")
NOT_A_LINE = re.compile(rb"[\x00-\x08\x0e-\x1f]|\r[^\r\n]")
"""What no line may hold: control characters, and a carriage return ahead of anything but its end."""


def explain(
    text: bytes | mmap.mmap,
    code: int,
    line_at: int,
    token_at: int,
    end: int,
    needed: int,
    fields: tuple[int, int] = (0, 0),
    wide: bool = False,
    roles: Sequence[str] = (),
    more: tuple[int, int] = (0, 0),
    advice: str = DROP,
) -> str:
    """Return the message for a line that the kernel refused.

    Parameters
    ----------
    text
        The block of the line.
    code, line_at, token_at
        The results of the kernel.
    end
        The end of the block.
    needed
        Integers that the line must have.
    fields
        The number of fields of the line, and the number that it should have.
    wide
        Whether vertices may be integers from 2^63 on.
    roles
        The name of each of the first fields, such as "label"; "" for an end of an edge.
    more
        How many of the rows behind this one lack a value, too, and the last line that was looked at.
    advice
        Advice on how to leave out rows that lack an end of an edge.
    """
    line = line_of(text, line_at, end)
    token = _TOKEN.match(text, token_at, end)
    word = token[0] if token else b""
    in_token = code != text_kernel.BINARY
    strange = _NOT_TEXT.search(word) if in_token else _NOT_TEXT.search(text, token_at, end)
    if strange and _is_utf16(text, line):
        return "this text is UTF-16, as some spreadsheets write it; save it as UTF-8"
    if strange and not (in_token and _is_printable(word)):
        return (
            f"binary data (byte 0x{strange[0].hex()}), this is not a text file; "
            "give a text file, or name it by its format (.gz, .zst, .bz2, .xz, .zip, .parquet)"
        )
    shown = _shorten(word)
    if line[:1] in (b"#", b"%") and code in (
        text_kernel.FEW_COLUMNS,
        text_kernel.OTHER_FIELDS,
        text_kernel.NOT_INTEGER,
    ):
        return (
            f"{_shorten(line)!r} is a row: below names of columns there are no comments; "
            "remove the line if it is a comment"
        )
    role = roles[fields[0]] if fields[0] < len(roles) else ""
    if role and code in (text_kernel.FEW_COLUMNS, text_kernel.EMPTY_FIELD, text_kernel.NOT_INTEGER):
        return _explain_role(code, role, line, shown, more)
    if code == text_kernel.FEW_COLUMNS:
        return f"too few columns in {_shorten(line)!r}, {needed} integers are needed; complete the line"
    if code == text_kernel.NEGATIVE:
        return f"negative number {shown}; use vertex ids and labels >= 0"
    if code == text_kernel.TOO_LARGE:
        if word.startswith(b"-"):
            return f"{shown} is below -2^63; renumber the vertices"
        digits = word.lstrip(b"0")
        bits = 64 if wide and (len(digits) > 20 or int(digits) >= 2**64) else 63
        return f"{shown} is 2^{bits} or more; renumber the vertices with smaller ids"
    if code == text_kernel.EMPTY_FIELD:
        return f"an empty field in {_shorten(line)!r}{_and_more(*more, advice)}"
    if code == text_kernel.OTHER_FIELDS:
        return (
            f"the number of fields changes from {fields[1]} to {fields[0]} in {_shorten(line)!r}; give one edge (or "
            "vertex) a line, and all lines the same fields"
        )
    if code == text_kernel.MIXED_SEPARATORS:
        return f"different separators in {_shorten(line)!r}; separate all fields of a line by the same one"
    if code == text_kernel.OPEN_QUOTE:
        return f"a quote that is not closed, in {_shorten(line)!r}; close it, or write a quote inside quotes twice"
    return _explain_word(code, line, shown, more, advice, wide=wide)


def _and_more(more: int, last: int, advice: str = DROP, joined: str = "and in") -> str:
    """Return the end of the message for a missing value."""
    if not more:
        return "; fill it, or " + ("remove the line" if advice is DROP else advice)
    return f"{and_more(more, f'line {last}', joined)}; fill them, or {advice}"


def _is_utf16(text: bytes | mmap.mmap, line: bytes) -> bool:
    """Whether a text begins with the mark of UTF-16, or half of a line is bytes of 0, as in Latin letters of UTF-16."""
    return text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or line.count(0) >= max(len(line) // 2, 2)


def _explain_role(code: int, role: str, line: bytes, shown: str, more: tuple[int, int]) -> str:
    """Return the message for a label or a transaction."""
    if code != text_kernel.NOT_INTEGER:
        return f"the {role} is missing in {_shorten(line)!r}{_and_more(*more)}"
    if role == "transaction":
        return f"the {role} {shown} is no integer; number the transactions from 0 up"
    return (
        f"the {role} {shown} is no integer, as that of the first row is; write integers alone, or begin with a row "
        f"whose {role} is a text, and all are texts"
    )


def _explain_word(code: int, line: bytes, shown: str, more: tuple[int, int], advice: str, *, wide: bool) -> str:
    """Return the message for a line with a wrong beginning, or with a word in place of an integer."""
    if code == text_kernel.LONE_RETURN:
        return "a carriage return without a newline; convert the file to Unix line ends"
    if code == text_kernel.BAD_HEADER:
        return f"{_shorten(line)!r} does not begin a transaction; write 't # NUMBER'"
    if code == text_kernel.UNKNOWN_TAG and line.startswith(b"t"):
        return f"{_shorten(line)!r} starts another graph; split the file, or read it in the format transactions"
    if code == text_kernel.UNKNOWN_TAG:
        return f"{_shorten(line)!r} is neither a vertex (v ...) nor an edge (e ...); remove the line"
    if shown == "t" and line.startswith(b"t #"):
        return f"{_shorten(line)!r} is not an edge; a database of graphs is read in the format transactions"
    if shown in MISSING:
        return f"{shown} in {_shorten(line)!r} stands for a missing value{_and_more(*more, advice, 'as in')}"
    if not wide:  # vertices of other formats have no names
        return f"{shown!r} is not an integer; write whole numbers from 0 up"
    return f'{shown!r} is not an integer; write whole numbers, or set graph.ids = "names" if vertices have names'


def line_of(text: bytes | mmap.mmap, start: int, end: int) -> bytes:
    """Return the line that starts at `start`, without the white space around it."""
    stop = text.find(b"\n", start, end)
    return text[start : end if stop < 0 else stop].strip()


def _is_printable(word: bytes) -> bool:
    """Whether a word is a text of some language."""
    try:
        return word.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _shorten(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
