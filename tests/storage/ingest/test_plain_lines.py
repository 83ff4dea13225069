"""Lines of two plain numbers, read many digits at a time, against Python's `int`; all others are left alone."""

import numpy as np
import pytest
from cases import each_case
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longwall.storage.ingest.text.plain_lines import parse_plain_block, parse_plain_lines
from longwall.storage.ingest.text.text_kernel import BLANKS, OWN_SEPARATOR, byte_kinds

PADDING = b"1 2\n" * 12
numbers = st.integers(0, 10**18 - 1) | st.integers(0, 18).map(lambda power: 10**power - 1)


def parse(text: bytes, separator: int = OWN_SEPARATOR, tab_separates: bool = False) -> tuple[list[list[int]], int]:
    """Pairs of the plain lines that the text begins with, and where they end."""
    block = np.frombuffer(text + PADDING, np.uint8)
    most = text.count(b"\n") + 13
    columns, lines = np.full((2, most), -1, np.int64), np.full(most, -1, np.int32)
    at, row, line = parse_plain_lines(block, 0, byte_kinds(tab_separates), separator, columns, lines, 0, 5)
    assert line == row + 5
    assert lines[:row].tolist() == list(range(5, 5 + row))
    ours = min(row, text[:at].count(b"\n"))
    return columns[:, :ours].T.tolist(), min(at, len(text))


@settings(deadline=None)
@given(st.lists(st.tuples(numbers, numbers), max_size=20), st.sampled_from([b" ", b"\t", b",", b";"]), st.booleans())
@example([(0, 99_999_999), (12_345_678, 123_456_789), (10**18 - 1, 7)], b" ", True)
def test_numbers_of_up_to_eighteen_digits(pairs: list[tuple[int, int]], between: bytes, returns: bool) -> None:
    end = b"\r\n" if returns else b"\n"
    text = b"".join(b"%d%s%d%s" % (u, between, v, end) for u, v in pairs)
    assert parse(text) == ([list(pair) for pair in pairs], len(text))


@each_case(
    "line",
    [
        b"",
        b"# 1 2",
        b" 1 2",
        b"1  2",
        b"1 2 ",
        b"1 2 3",
        b"1",
        b"1 ",
        b'"1" 2',
        b"-1 2",
        b"1 -2",
        b"1:2",
        b"1 2x",
        b"1x 2",
        b"1 2\r\r",
        b"1 2\r3",
        b"1000000000000000000 2",
        b"1 1000000000000000000",
        b"1 \xff2",
        b"1\xff2",
        b"1\x002",
        b"1/2",
        b"1 12345678:",
        b"1 /2345678",
        b"\xba1 2",
    ],
)
def test_what_is_not_plain_is_left(line: bytes) -> None:
    assert parse(b"1 2\n" + line + b"\n3 4\n") == ([[1, 2]], 4)


@pytest.mark.parametrize(
    ("separator", "tab_separates", "plain"),
    [
        (BLANKS, False, b" \t\v\f"),
        (BLANKS, True, b" \v\f"),
        (OWN_SEPARATOR, False, b" \t\v\f,;|"),
        (OWN_SEPARATOR, True, b" \t\v\f,;|"),
        (ord(","), False, b","),
        (ord("\t"), True, b"\t"),
    ],
)
def test_separators(separator: int, tab_separates: bool, plain: bytes) -> None:
    for byte in set(range(256)) - set(b"0123456789"):
        found, _ = parse(b"3%c4\n" % byte, separator, tab_separates)
        assert found == ([[3, 4]] if byte in plain else []), byte


def test_the_end_of_a_block_is_left() -> None:
    columns, lines = np.empty((2, 20), np.int64), np.empty(20, np.int32)
    for size in range(0, 80):
        block = np.frombuffer((b"12 3456\n" * 10)[:size], np.uint8)
        at, row, _ = parse_plain_lines(block, 0, byte_kinds(False), OWN_SEPARATOR, columns, lines, 0, 0)
        assert at == 8 * row
        assert at <= max(0, size - 48 + 8)


LINES = [b"1 2", b"12345678 0", b"3,4", b"", b"# one 1 2", b"#", b"%\xc3\xa9", b"\r", b"7\t8\r", b"#\r"]
OTHERS = [b" 1 2", b"1 2 3", b"#\r\r", b"# a\rb", b"#\x00", b"x", b"1  2", b"\r\r", b" "]


def plain_block(text: bytes) -> tuple[list[list[int]], list[int], int, int, int]:
    """Pairs and their lines, where the plain lines end, how many they are, and how many of them are comments."""
    block, comments = np.frombuffer(bytearray(text), np.uint8), np.frombuffer(b"#%", np.uint8)
    most = text.count(b"\n") + 1
    columns, lines = np.full((2, most), -1, np.int64), np.full(most, -1, np.int32)
    at, rows, line, found = parse_plain_block(block, 0, byte_kinds(False), OWN_SEPARATOR, comments, columns, lines)
    return columns[:, :rows].T.tolist(), lines[:rows].tolist(), at, line, found


@settings(deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=30), st.sampled_from([None, *OTHERS]), st.booleans())
@example([b"1 2"], None, False)
@example([b"#"], None, False)
@example([], b"x", False)
def test_a_block_is_read_up_to_the_first_line_that_is_not_plain(
    plain: list[bytes], other: bytes | None, ended: bool
) -> None:
    """Comments and empty lines count as lines; the last line may lack its newline."""
    rest = [] if other is None else [other, b"5 6"]
    text = b"\n".join([*plain, *rest])
    text += b"\n" if ended and text else b""
    pairs = [
        ([int(part) for part in line.replace(b",", b" ").split()], number)
        for number, line in enumerate(plain)
        if line[:1].isdigit()
    ]
    ahead = len(text) if other is None else sum(len(line) + 1 for line in plain)
    begun = ahead > 0 and text[ahead - 1] != 10  # a last line without its newline
    lines = text[:ahead].count(b"\n") + begun
    comments = sum(line[:1] in (b"#", b"%") for line in plain)
    assert plain_block(text) == ([pair for pair, _ in pairs], [number for _, number in pairs], ahead, lines, comments)
