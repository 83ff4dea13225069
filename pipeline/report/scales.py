"""Scales of plots: how long a value is, and the round values beside an axis."""

from __future__ import annotations

import math
from collections.abc import Iterator


class Logarithmic:
    """A scale on which every factor of ten is equally long, from 0.5 up to `top`.

    Parameters
    ----------
    top
        The largest value.
    length
        Of the scale in the picture.
    """

    def __init__(self, top: float, length: float):
        self._decades = max(math.log10(max(top, 1) * 2), 0.5)
        self._length = length
        self._top = top

    def __call__(self, value: float) -> float:
        """Return how long a value is."""
        return 0.0 if value <= 0 else max(math.log10(value * 2) / self._decades, 0) * self._length

    def ticks(self, most: int = 4) -> Iterator[int]:
        """Yield powers of ten, at most about the number given."""
        powers = int(math.log10(max(self._top, 1))) + 1
        return (10**power for power in range(0, powers, -(-powers // most)))


def even_ticks(top: float, most: int = 4) -> list[float]:
    """Return round values from 0 to at most `top`."""
    if top <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(top / most))
    step = next(factor * power for factor in (1, 2, 5, 10) if top / (factor * power) <= most)
    return [step * number for number in range(int(top / step + 1e-9) + 1)]
