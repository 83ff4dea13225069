"""Lines of two plain numbers, read many digits at a time, against Python's `int`; all others are left alone."""

import numpy as np
import pytest
from cases import each_case
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longwall.storage.ingest.text.plain_lines import parse_plain_lines
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
