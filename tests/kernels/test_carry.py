"""Sums of two words against whole numbers of Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longwall.kernels.cuda.runtime.compile import source_text
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


SUMS = """
extern "C" __global__ void add(const i64* numbers, i64 number, u64* sum) {
  WideSum own;
  for (i64 i = threadIdx.x + static_cast<i64>(blockIdx.x) * blockDim.x; i < number; i += gridDim.x * blockDim.x) {
    if (numbers[i] < 0) {
      own.add_signed(numbers[i]);
    } else {
      own.add(static_cast<u64>(numbers[i]));
    }
  }
  own.add_lanes_to(sum);
}
"""


@pytest.mark.gpu
def test_lanes_of_a_gpu_add_up_exactly() -> None:
    from longwall.kernels.cuda.device import fetch_sum
    from longwall.kernels.cuda.engine import CudaEngine

    xp = CudaEngine().xp
    text, options = source_text("include/common.cuh")
    add = xp.RawModule(code=text + SUMS, options=options).get_function("add")
    random = np.random.default_rng(7)
    extremes = np.array([SMALLEST, -(2**32), -1, 0, 1, 2**32, LARGEST])
    for blocks, numbers in (
        (1, np.full(32, LARGEST)),
        (3, np.full(1000, LARGEST)),
        (2, random.integers(SMALLEST, LARGEST, 777)),
        (2, np.concatenate([np.full(100, LARGEST), random.choice(extremes, 60)])),
        (1, np.array([-1, 1])),
    ):
        whole = sum(numbers.tolist())
        addends = numbers if whole >= 0 else -1 - numbers  # counts are not negative
        result = xp.zeros(2, xp.uint64)
        add((blocks,), (64,), (xp.asarray(addends), np.int64(addends.size), result))
        assert fetch_sum(result) == sum(addends.tolist())
