"""The support of patterns: bit sets of the images of their vertices, or of the transactions that they lie in."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.pattern_growth import GrowthBatch, num_words


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
        As many images of a vertex are marked at least, where there are so many; transactions are all marked.
    """

    of: Literal["groups", "images"]
    size: int
    enough: int

    @property
    def words(self) -> int:
        """Words of 32 bits of a set."""
        return num_words(self.size)

    def columns(self, sizes: NDArray[np.int64]) -> int:
        """Sets of each of some extensions, which lead to patterns of so many vertices (int64[k])."""
        return int(sizes.max(initial=1)) if self.of == "images" else 1

    def least(self, counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The support of each extension: of `counts` (int64[k, columns]) of its vertices the least, up to `enough`."""
        there = np.arange(counts.shape[1]) < sizes[:, None]
        found: NDArray[np.int64] = np.where(there, counts, self.enough).min(axis=1)
        return np.minimum(found, self.enough)


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
