"""Sums of two words against whole numbers of Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longwall.kernels.exact_numbers import two_words
from longwall.kernels.jit.bits import add_carry

SMALLEST, LARGEST = -(2**63), 2**63 - 1
numbers = st.one_of(
    st.integers(SMALLEST, LARGEST),
    st.sampled_from([SMALLEST, SMALLEST + 1, -(2**32), -1, 0, 1, 2**32 - 1, 2**32, LARGEST - 1, LARGEST]),
)


def total(addends: list[int]) -> int:
    low, high = np.int64(0), np.int64(0)
    for number in addends:
        low, high = add_carry(low, high, np.int64(number))
    return two_words(low, high)


@given(st.lists(numbers, max_size=30))
@example([LARGEST, LARGEST, 1, 1])
@example([-1, 1, -1])
@example([SMALLEST, SMALLEST, SMALLEST])
def test_sums_are_exact(addends: list[int]) -> None:
    assert total(addends) == sum(addends)


@pytest.mark.parametrize("bits", [63, 64, 65, 67])
def test_sums_pass_the_ends_of_words(bits: int) -> None:
    addends = [LARGEST] * 2 ** (bits - 63) + [2 ** (bits - 63)]
    assert total(addends) == 2**bits
    assert total([*addends, -1]) == 2**bits - 1
