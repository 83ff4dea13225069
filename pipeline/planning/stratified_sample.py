"""Random samples of ordered sequences: one item out of every 1, 2, 4, 8, ... neighbouring ones.

The items are cut into blocks of equal length, a power of two, and each block keeps one of its items, drawn alone: a
stratified sample with one item per stratum, and nothing periodic in the sequence can meet a period of the
sample. The draws are hashes of the blocks' numbers, bit by bit: a block of twice the length keeps the choice of one of
its halves. So a sample may be thinned while the sequence is still growing, and no pseudo-random state has to be kept.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any  # a NumPy or a CuPy array

_WORD = 2**64 - 1


def splitmix64(*words: int) -> int:
    """Hash integers to one of 64 bits (the finalizer of splitmix64, word by word)."""
    x = 0
    for word in words:
        x = (x + word + 0x9E3779B97F4A7C15) & _WORD
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _WORD
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _WORD
        x ^= x >> 31
    return x


def positions(key: int, shift: int, first: int, last: int, xp: Any) -> Array:
    """Positions that the blocks `first` to `last` - 1 of length 2**shift keep.

    Parameters
    ----------
    key
        Names the sample.
    shift
        Binary logarithm of the length of a block.
    first, last
        Range of blocks.
    xp
        numpy or cupy.

    Returns
    -------
    int64[last - first]
        Ascending; each position of a block is as likely as the others.
    """
    position = xp.arange(first, last, dtype=xp.uint64)
    for height in range(shift, 0, -1):
        position = position * np.uint64(2) + _halves(key, height, position)
    return position.astype(xp.int64)


def _halves(key: int, height: int, blocks: Array) -> Array:
    """Which half (0 or 1) each block (uint64) of length 2**height keeps."""
    x = blocks * np.uint64(0x9E3779B97F4A7C15) + np.uint64(splitmix64(key, height))
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x >> np.uint64(63)


class StratifiedSample:
    """A sample of at most `limit` + 1 of the rows that arrive, however many do.

    Parameters
    ----------
    limit
        Blocks double in length whenever there would be more.
    key
        Names the sample.
    columns
        Entries per row.
    xp
        numpy or cupy.
    """

    def __init__(self, limit: int, key: int, columns: int, xp: Any):
        self._limit, self._key, self._xp = limit, key, xp
        self._shift = 0
        self._parts: list[Array] = [xp.empty((columns, 0), xp.uint32)]
        self.seen = 0
        """Rows that have arrived."""

    @property
    def weight(self) -> int:
        """Rows for which a kept row stands: the inverse of its chance to be kept."""
        return 1 << self._shift

    def offer(self, number: int) -> Array:
        """Announce the next rows; return the positions (int64, of 0 to `number` - 1) of those to `keep`."""
        before, self.seen = self.seen, self.seen + number
        while self.seen > self._limit << self._shift:
            self._halve()
        first, last = before >> self._shift, -(-self.seen >> self._shift)
        at = positions(self._key, self._shift, first, last, self._xp)
        return at[(at >= before) & (at < self.seen)] - before

    def keep(self, rows: Array) -> None:
        """Take the rows at the positions that `offer` returned, uint32[columns, n]."""
        self._parts.append(rows)

    def rows(self) -> Array:
        """The sample in the order of arrival, uint32[columns, n], C-contiguous where the kept rows were."""
        self._parts = [self._xp.concatenate(self._parts, axis=1)]
        return self._parts[0]

    def _halve(self) -> None:
        # The rows kept so far belong to the first blocks, one each.
        rows = self.rows()
        self._shift += 1
        block = self._xp.arange(rows.shape[1], dtype=self._xp.uint64)
        half = _halves(self._key, self._shift, block >> np.uint64(1))
        chosen = self._xp.flatnonzero((block & np.uint64(1)) == half)
        self._parts = [self._xp.take(rows, chosen, axis=1)]


def thinned(
    key: int, sizes: NDArray[np.int64], shifts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keep one item out of every 2**shift neighbouring ones, in several sequences at once.

    Parameters
    ----------
    key
        Names the sample.
    sizes, shifts : int64[n]
        Items of each sequence; they stand one behind the other.

    Returns
    -------
    places : int64[k]
        Those that are kept, ascending; each item of a sequence is as likely as the others.
    blocks : int64[k]
        The number of the block of each, counted in its sequence.
    """
    blocks = -(-sizes >> shifts)
    of = np.repeat(np.arange(len(sizes)), blocks)
    block = np.arange(len(of)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    x = (of.astype(np.uint64) << np.uint64(32) ^ block.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    for height in (1, 2):
        x = (x + np.uint64(splitmix64(key, height))) * np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(31)
    shift = shifts[of].astype(np.uint64)
    within = (x & (np.uint64(1) << shift) - np.uint64(1)).astype(np.int64)
    place = (block << shifts[of]) + within
    kept = place < sizes[of]
    starts = np.cumsum(sizes) - sizes
    return (starts[of] + place)[kept], block[kept]
