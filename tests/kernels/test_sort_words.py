"""Words sorted by digits against NumPy's sort."""

import numpy as np
from cases import each_case

from longwall.kernels.cpu.sorting.words import sort_words

MANY = 5000
RANDOM = np.random.default_rng(1).integers(0, 2**64, MANY, dtype=np.uint64)
MASKS = [
    0,
    1,
    2**63,
    0xFFFF_FFFF,
    0xFFFF_FFFF << 32,
    2**64 - 1,
    (1 << 21) - 1 << 32 | (1 << 21) - 1,
    0x8000_0001_8000_0001,
]


@each_case("constant", [0, 2**64 - 1, 0x1234_5678_9ABC_DEF0])
@each_case("mask", [*MASKS, *(1 << bit for bit in range(0, 64, 7)), *((1 << bit) - 1 for bit in range(8, 64, 9))])
def test_words_of_any_varying_bits(mask: int, constant: int) -> None:
    words = (RANDOM & np.uint64(mask)) | np.uint64(constant & ~mask)
    other = np.empty_like(words)
    expected = np.sort(words)
    found = other if sort_words(words, other) else words
    np.testing.assert_array_equal(found, expected)


@each_case("size", [0, 1, 2, 1000, 4095, 4096, 4097])
def test_any_number_of_words(size: int) -> None:
    words, other = RANDOM[:size].copy(), np.empty(size, np.uint64)
    found = other if sort_words(words, other) else words
    np.testing.assert_array_equal(found, np.sort(RANDOM[:size]))
