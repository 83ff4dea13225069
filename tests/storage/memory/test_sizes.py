"""Sizes of memory: what people write is parsed, what is shown is short."""

from __future__ import annotations

import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from longwall.storage.memory.sizes import format_size, parse_size, round_size, size_from


@given(st.integers(1, 2**62))
def test_sizes_round_trip(size):
    assert parse_size(format_size(size)) == size
    assert parse_size(size) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 * 2**30),
        ("512 MiB", 2**29),
        ("1.5GB", 1_500_000_000),
        ("7", 7),
        ("2kib", 2048),
        ("1TB", 10**12),
    ],
)
def test_sizes_as_people_write_them(text, size):
    assert parse_size(text) == size


@given(st.integers(1, 2**61))
def test_a_size_that_is_enough_is_short_and_little_more(size):
    text = size_from(size)
    assert size <= parse_size(text) <= size + size // 16 + 1
    assert len(text) <= 10


@each_case("text", ["", "GiB", "8XB", "-1GiB", "0", "1e3", "nan", "8 G i B", "9999999TiB"])
def test_what_is_not_a_size(text):
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


def test_sizes_for_the_eye():
    assert [round_size(n) for n in (12, 2048, 1.5 * 2**30, 1010 * 2**20)] == [
        "12 B",
        "2 KiB",
        "1.5 GiB",
        "1,010 MiB",
    ]
