"""How long ranges of an engine take: a time that each of them needs, whatever is in it, and a speed."""

from __future__ import annotations

import math
from collections import deque

_RANGES = 4  # that are remembered
_LEAST = 1e-9  # seconds
_UNLIKE = 2.0  # times the work of the least one, that the largest one has if both tell the fixed time from the speed


class Pace:
    """What the last ranges took: seconds = fixed + work / speed.

    Two ranges tell the two unknowns: the least and the largest one of the last four, if they are unlike. The work of
    roots is misjudged, so neither may be what no range shows: the fixed time is at most the shortest one's, and the
    speed at most as many times that of the largest range as this is larger.

    Attributes
    ----------
    fixed
        Seconds that every range takes, besides its work.
    speed
        Work a second beyond that; 0 where it is not known.
    last
        The largest work of the ranges that are remembered, older ones count less.
    """

    def __init__(self) -> None:
        self.fixed = self.speed = self.last = 0.0
        self._shortest = math.inf
        self._ranges: deque[tuple[float, float]] = deque(maxlen=_RANGES)

    @property
    def single(self) -> bool:
        """Whether one range alone is known: the fixed time may be all of it, or nothing."""
        return len(self._ranges) == 1

    @property
    def mostly_fixed(self) -> bool:
        """Whether even the largest range has taken its fixed time for the most part."""
        return bool(self._ranges) and 2 * self.fixed > max(self._ranges)[1]

    def learn(self, work: float, seconds: float) -> None:
        """Take note of a range."""
        seconds = max(seconds, _LEAST)
        self._ranges.append((work, seconds))
        self._shortest = min(self._shortest, seconds)
        self.last = max(work, self.last / 2)
        (least, short), (most, long) = min(self._ranges), max(self._ranges)
        if most >= _UNLIKE * least:
            slope = max((long - short) / (most - least), 0.0)
            self.fixed = min(max(short - slope * least, 0.0), (1 - least / most) * self._shortest)
        else:
            self.fixed = min(self.fixed, self._shortest / 2)
        weights = [0.5**age for age in reversed(range(len(self._ranges)))]
        done = sum(weight * work for weight, (work, _) in zip(weights, self._ranges, strict=True))
        took = sum(weight * (one - self.fixed) for weight, (_, one) in zip(weights, self._ranges, strict=True))
        self.speed = done / max(took, _LEAST)

    def seconds(self, work: float) -> float:
        """Return what a range of so much work takes; there is a speed."""
        return self.fixed + work / self.speed
