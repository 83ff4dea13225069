"""The support of patterns: bit sets of the images of their vertices, or of the transactions that they lie in.

Rows and supports are aggregated by the same records on a chunk, across the workers of a process, and across processes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.pattern_growth import GrowKernel, GrowthBatch, Images, num_words
from longwall.stages.base import Aggregation

Array = Any  # a NumPy or a CuPy array

_COUNT_BYTES = 20  # of a set, beside its words as counts of their bits: two numbers, and whether it counts


@dataclass(frozen=True)
class Support:
    """What supports a pattern, and how far it is counted.

    Attributes
    ----------
    of
        The transactions with a row of the pattern, or the images of its vertices.
    size
        Transactions, or vertices, of the graph: a bit each.
    enough
        As many images of a vertex are marked at least, if it has as many; transactions are all marked.
    """

    of: Literal["groups", "images"]
    size: int
    enough: int

    @property
    def words(self) -> int:
        """Words of 32 bits of a set."""
        return num_words(self.size)

    def columns(self, sizes: NDArray[np.int64]) -> int:
        """Sets of each of some extensions, which lead to patterns of a given number of vertices (int64[k])."""
        return int(sizes.max(initial=1)) if self.of == "images" else 1

    def counting_bytes(self, columns: int) -> int:
        """Bytes of the host that counting a number of sets takes, for each extension."""
        return columns * (self.words + _COUNT_BYTES)

    def least(self, counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The support of each extension: of `counts` (int64[k, columns]) of its vertices the least, up to `enough`."""
        there = np.arange(counts.shape[1]) < sizes[:, None]
        found: NDArray[np.int64] = np.where(there, counts, self.enough).min(axis=1)
        return np.minimum(found, self.enough)

    def aggregation(self, sizes: NDArray[np.int64], count_bits: "CountBits") -> Aggregation[Array, NDArray[np.int64]]:
        """Return the aggregation of sets, uint32[k, columns, words], to supports, int64[k].

        Parameters
        ----------
        sizes : int64[k]
            Vertices of the grown patterns.
        count_bits
            Counts the bits of sets.
        """
        chunk = _mark_images if self.of == "images" else _mark_groups
        return Aggregation(chunk, united, lambda sets: self.least(on_host(count_bits(sets)), sizes))


CountBits = Callable[[Array], Array]
"""Counts the bits of sets: uint32[..., words] to int64[...]."""


def bits_on_host(sets: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Count the bits of sets: see `CountBits`."""
    found: NDArray[np.int64] = np.bitwise_count(sets).sum(axis=-1, dtype=np.int64)
    return found


def on_host(array: Array) -> NDArray[Any]:
    """An engine's array as one of NumPy."""
    host: NDArray[Any] = array if isinstance(array, np.ndarray) else array.get()
    return host


def _count(grower: GrowKernel, rows: Array, growth: GrowthBatch, counts: Array) -> Array:
    """Count the rows that each extension would have, beside those that were counted."""
    grower.count(rows, growth, counts)
    return counts


def _mark_groups(grower: GrowKernel, rows: Array, growth: GrowthBatch, alive: Array, sets: Array) -> Array:
    """Mark the transactions of extensions, beside those that are marked."""
    grower.mark_groups(rows, growth, alive, sets)
    return sets


def _mark_images(grower: GrowKernel, rows: Array, growth: GrowthBatch, images: Images) -> Array:
    """Mark the images of extensions, beside those that are marked."""
    grower.mark_images(rows, growth, images)
    return images.sets


def summed(counts: Sequence[Array]) -> Array:
    """The sum of counts, in the place of the first."""
    first, *others = counts
    for other in others:
        first += other
    return first


def united(sets: Sequence[Array]) -> Array:
    """The union of bit sets, in the place of the first."""
    first, *others = sets
    for other in others:
        first |= other
    return first


ROWS: Aggregation[Array, NDArray[np.int64]] = Aggregation(_count, summed, on_host)
"""How many rows each rightmost extension would have: int64[extensions]."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rightmost extensions of the patterns of a batch, whose support is to be counted.

    Attributes
    ----------
    growth, num_extensions
        The batch, and the number of all extensions of its patterns.
    extensions : int64[k]
        Those that are looked at, ascending.
    patterns : int64[k]
        The patterns (of the batch) that grow, ascending.
    sizes : int64[k]
        Vertices of the grown patterns.
    """

    growth: GrowthBatch
    num_extensions: int
    extensions: NDArray[np.int64]
    patterns: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.extensions)

    def sliced(self, begin: int, end: int) -> "Candidates":
        """Candidates `begin` to `end` - 1."""
        arrays = (array[begin:end] for array in (self.extensions, self.patterns, self.sizes))
        return Candidates(self.growth, self.num_extensions, *arrays)
