"""Saturating arithmetic against whole numbers of Python."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from longwall.kernels.host.queries.saturating import HUGE, plus, times

LARGEST = int(HUGE)
EDGES = sorted(
    {min(max(2**bits + near, 0), LARGEST) for bits in (0, 20, 30, 31, 32, 33, 61, 62) for near in (-1, 0, 1)}
)
numbers = st.one_of(st.sampled_from(EDGES), st.integers(0, LARGEST), st.integers(0, 62).map(lambda bits: 2**bits))


def check(a: int, b: int) -> None:
    assert plus(np.int64(a), np.int64(b)) == min(a + b, LARGEST)
    assert times(np.int64(a), np.int64(b)) == min(a * b, LARGEST)


@each_case("a", EDGES)
def test_ends_of_the_range(a: int) -> None:
    for b in EDGES:
        check(a, b)


@pytest.mark.hypothesis
@given(a=numbers, b=numbers)
def test_sums_and_products(a: int, b: int) -> None:
    check(a, b)


@pytest.mark.hypothesis
@given(a=st.integers(1, LARGEST), near=st.integers(-2, 2))
def test_products_around_the_largest_number(a: int, near: int) -> None:
    check(a, min(max(LARGEST // a + near, 0), LARGEST))
