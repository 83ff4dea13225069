"""The binary searches of kernels find what NumPy's finds."""

import numpy as np

from longwall.kernels.jit.bisect import first_above, first_at_least


def test_places_are_those_of_numpy() -> None:
    drawn = np.random.default_rng(7)
    for length in (0, 1, 2, 3, 20):
        for dtype in (np.int64, np.uint32):
            values = np.sort(drawn.integers(0, 12, length).astype(dtype))
            for number in range(-1, 14):
                assert first_at_least(values, number) == np.searchsorted(values.astype(np.int64), number)
                assert first_above(values, number) == np.searchsorted(values.astype(np.int64), number, side="right")
