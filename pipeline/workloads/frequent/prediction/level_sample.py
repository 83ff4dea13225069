"""A sample of the embeddings of a level, whose rows stand for 1, 2, 4, ... embeddings.

The rows of a pattern that begin at the same vertex are thinned out where they are many: hubs have most embeddings, but
what is frequent is decided by the others. Rows that stand for several carry the number of a random group: the spread of
what groups say of the whole is how far off it may be, and how many images two halves of the groups share says how many
there are in all.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.planning.stratified_sample import thinned
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.storage.tables.embedding_table import EmbeddingTable, from_columns

GROUPS = 8
_STUDENT = 2.365  # for intervals of 95 %, from 8 groups
Longs = NDArray[np.int64]
Reals = NDArray[np.float64]


class Figure(NamedTuple):
    """A predicted number, and the interval that it is likely in; all are equal where it is known."""

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the number is known."""
        return self.low == self.high


@dataclass(frozen=True, eq=False)
class LevelSample:
    """Embeddings of the patterns of a level.

    Attributes
    ----------
    patterns
        The patterns, or some of them.
    rows : uint32[columns, n]
        Embeddings as tables have them: the number of the pattern, ascending, vertex 0, the far ends of its edges.
    shifts : uint8[n]
        A row stands for 2**shift embeddings.
    groups : uint8[n]
        Random groups, 2 * `GROUPS`, of rows that stand for several.
    factor
        Patterns, or transactions, that one stands for.
    """

    patterns: DfsPatterns
    rows: NDArray[np.uint32]
    shifts: NDArray[np.uint8]
    groups: NDArray[np.uint8]
    factor: int = 1

    @property
    def whole(self) -> bool:
        """Whether these are all."""
        return self.factor == 1 and not self.shifts.any()

    @property
    def weights(self) -> Longs:
        """How many embeddings each row stands for: int64[n]."""
        return np.int64(1) << self.shifts.astype(np.int64)

    @property
    def num_levels(self) -> int:
        """Columns of the rows."""
        return int(self.rows.shape[0])

    def __len__(self) -> int:
        return int(self.rows.shape[1])

    def stream(self) -> Generator[EmbeddingTable, None, None]:
        """All rows, as the chunk of a table."""
        yield from_columns(self.rows, np)

    def of(self, first: int, last: int) -> "LevelSample":
        """The rows of patterns `first` to `last` - 1, which keep their numbers."""
        begin, end = np.searchsorted(self.rows[0], np.array([first, last], np.uint32)).tolist()
        return self.kept(slice(begin, end))

    def kept(self, places: NDArray[Any] | slice) -> "LevelSample":
        """Some of the rows, in their order, none of which stands for the others."""
        return replace(self, rows=self.rows[:, places], shifts=self.shifts[places], groups=self.groups[places])

    def thinned(self, key: int, limit: int, parts: Longs | None = None) -> "LevelSample":
        """Thin rows out where many of a pattern begin at one vertex.

        Parameters
        ----------
        key
            Names the sample.
        limit
            About how many are left.
        parts : int64[n]
            What of the limit a row takes; 1 by default.
        """
        parts = np.ones(len(self), np.int64) if parts is None else parts
        if int(parts.sum()) <= limit:
            return self
        new = np.ones(len(self), np.bool_)
        new[1:] = (self.rows[:2, 1:] != self.rows[:2, :-1]).any(axis=0)
        starts = np.flatnonzero(new)
        shifts = fitting(np.add.reduceat(parts, starts), limit)
        places, blocks = thinned(key, np.diff(np.append(starts, len(self))), shifts)
        more = shifts[np.cumsum(new)[places] - 1]
        fresh = (self.shifts[places] == 0) & (more > 0)
        number = blocks + places // 2
        groups = self.groups[places]
        groups = np.where(fresh, number % (2 * GROUPS) if self.factor == 1 else groups >> 1 << 1 | number & 1, groups)
        return replace(
            self,
            rows=self.rows[:, places],
            shifts=(self.shifts[places] + more).astype(np.uint8),
            groups=groups.astype(np.uint8),
        )

    def regrouped(self, groups: Longs) -> "LevelSample":
        """The same with other groups, int64[n]; the halves stay."""
        return replace(self, groups=(groups % GROUPS << 1).astype(np.uint8) | self.groups & np.uint8(1))


def fitting(sizes: Longs, limit: int) -> Longs:
    """Return the shifts that thin sequences out to about `limit` items in all; the long ones first."""
    ordered = np.sort(sizes)
    before = np.cumsum(ordered) - ordered
    longer = len(sizes) - np.arange(len(sizes))
    above = before + ordered * longer > limit
    if not above.any():
        return np.zeros(len(sizes), np.int64)
    at = int(np.argmax(above))
    most = max((limit - int(before[at])) / int(longer[at]), 2.0**-20)
    shifts: Longs = np.ceil(np.log2(np.maximum(sizes, 1) / most)).clip(0).astype(np.int64)
    return shifts


def spread(known: float, groups: Reals) -> Figure:
    """Predict a number: the part that is known, and the rest in parts that the groups suggest, float64[GROUPS]."""
    rest = float(groups.sum())
    if not rest:
        return Figure(known, known, known)
    error = float(groups.std(ddof=1)) * len(groups) ** 0.5
    factor = float(np.exp(min(_STUDENT * error / rest, 20.0)))
    return Figure(known + rest, known + rest / factor, known + rest * factor)


def images(certain: Longs, one: Longs, other: Longs, all_of_them: Longs) -> tuple[Reals, Reals]:
    """Estimate how many images there are from those that samples have, by how many two samples share (Chapman, 1951).

    Parameters
    ----------
    certain
        Images of rows that stand for themselves alone.
    one, other
        Of these and one half of the others.
    all_of_them
        Of all rows.

    Returns
    -------
    float64
        The numbers, in the shape of the arguments.
    float64
        Their standard errors.
    """
    a, b = (one - certain).astype(np.float64), (other - certain).astype(np.float64)
    both = a + b - (all_of_them - certain)
    found = np.maximum((a + 1) * (b + 1) / (both + 1) - 1 + certain, all_of_them)
    variance = (a + 1) * (b + 1) * (a - both) * (b - both) / ((both + 1) ** 2 * (both + 2))
    return found, np.sqrt(np.maximum(variance, 0.0))
