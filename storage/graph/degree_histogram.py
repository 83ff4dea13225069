"""Degrees of a graph that is being built: counted by position, summed up as a histogram, turned into ranks.

A position is where a vertex stands among the ids of the graph; a rank is its internal id.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.degree_buckets import count_in_buckets
from longwall.storage.system.concurrency import core_count

if TYPE_CHECKING:
    from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
    from longwall.storage.sorting.sorted_keys import SortedKeys

NO_RANK = 2**32 - 1
"""Stands in a table of ranks for a position without an edge."""
_COMMON = 2**16  # degrees below are counted and looked up in tables
_ITEM = 4  # bytes of a degree or a rank
_WORTH_A_THREAD = 2**16  # edges or positions
_CACHED = 2**23  # bytes of a table: larger ones, of each thread, leave the caches that cores share
_KEYS_TOGETHER = 2**17  # that a thread reads at a time: they stay in its cache

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class DegreeHistogram:
    """How often each degree occurs. Vertices are ranked by degree, so this is also where each row begins.

    Its arrays are made once, and shared: copy one before you change it.
    """

    degrees: Int64s
    """int64[k]: distinct degrees above 0, descending; only 0 if the graph has no edge."""
    counts: Int64s
    """int64[k]: vertices of each."""

    @classmethod
    def of(cls, degrees: Int64s, counts: Int64s) -> DegreeHistogram:
        """Make a histogram of arrays; if the graph has no edge they are empty, and rows begin at 0 then, too."""
        nothing = np.zeros(1, np.int64)
        return cls(degrees, counts) if len(degrees) else cls(nothing, nothing)

    @property
    def num_vertices(self) -> int:
        """Vertices with an edge."""
        return int(self.counts.sum())

    @property
    def num_arcs(self) -> int:
        """Number of arcs: the sum of all degrees, twice the number of edges."""
        return int((self.degrees * self.counts).sum())

    @cached_property
    def first_ranks(self) -> Int64s:
        """int64[k]: rank of the first vertex of each degree."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def first_arcs(self) -> Int64s:
        """int64[k]: where the row of the first vertex of each degree begins."""
        arcs: Int64s = self.degrees * self.counts
        starts: Int64s = np.cumsum(arcs) - arcs
        return starts

    def groups(self, ranks: Int64s) -> Int64s:
        """Return int64[r]: which of the degrees the vertices of int64[r] ranks have."""
        return np.searchsorted(self.first_ranks, ranks, side="right") - 1

    def row_starts(self, ranks: Int64s) -> Int64s:
        """Return int64[r]: where the rows of int64[r] ranks begin; rank n stands for the end of the last row."""
        group = self.groups(ranks)
        starts: Int64s = self.first_arcs[group]
        starts += (ranks - self.first_ranks[group]) * self.degrees[group]
        return starts

    def consecutive_starts(self, first: int, stop: int) -> Int64s:
        """Return int64[stop - first]: where the rows of consecutive ranks begin; see `row_starts`, which takes longer.

        There is one rank at least.
        """
        low, high = self.groups(np.array([first, stop - 1])).tolist()
        ends = np.cumsum(self.counts)[low : high + 1]
        rows = np.diff(np.minimum(ends, stop - 1), prepend=first)  # of each degree, without the last one
        starts = np.empty(stop - first, np.int64)
        starts[0] = self.row_starts(np.array([first]))[0]
        starts[1:] = np.repeat(self.degrees[low : high + 1], rows)
        return np.cumsum(starts, out=starts)

    def rows_of(self, arcs: Int64s) -> Int64s:
        """Return int64[r]: the ranks whose rows have the int64[r] arcs."""
        group = np.searchsorted(self.first_arcs, arcs, side="right") - 1
        ranks: Int64s = self.first_ranks[group] + (arcs - self.first_arcs[group]) // self.degrees[group]
        return ranks


def table_size(scratch: Scratch, positions: int) -> int:
    """Return how many positions a table of degrees or ranks may cover."""
    return max(1, min(positions, scratch.capacity // _ITEM))


def count_degrees(edges: SortedKeys, base: int, positions: int, scratch: Scratch) -> ScratchArray:
    """Count the degrees of all positions, in as many passes over the edges as the tables need.

    Parameters
    ----------
    edges
        Both ends as `base` plus a position, the smaller end in the high half.
    base, positions
        The ends lie in [base, base + positions).
    scratch
        Where tables go.

    Returns
    -------
    ScratchArray
        uint32[positions]
    """
    degrees = scratch.array(np.uint32)
    size = table_size(scratch, positions)
    for low in range(0, positions, size):
        length = min(size, positions - low)
        reserved = scratch.reserve(length * _ITEM, "a table of degrees")
        table = np.zeros(length, np.uint32)
        whole = length == positions and edges.keys.is_whole and table.nbytes > _CACHED
        if not whole or not count_in_buckets(edges.keys.read(0, len(edges)), base, table, scratch):
            _fill_degrees(edges, base + low, table, scratch)
        degrees.adopt(table, reserved)
    return degrees


def _fill_degrees(edges: SortedKeys, low: int, table: UInt32s, scratch: Scratch) -> None:
    """Count ends of edges in a table of zeros that covers the ends from `low` on.

    Every thread counts a part of the edges in a table of its own, as far as half of the work space has room for these.
    """
    tables = scratch.work // 2
    threads = min(core_count(), 1 + tables // table.nbytes, len(edges) // max(_WORTH_A_THREAD, len(table) // 4))
    bounds = _bounds(len(edges), threads)
    step = max(1, min(_KEYS_TOGETHER, (scratch.work - tables) // len(bounds) // edges.keys.dtype.itemsize))

    def count(part: tuple[int, int]) -> UInt32s:
        first, last = part
        own = np.zeros(len(table), np.uint32) if first else table
        for start in range(first, last, step):
            _count_ends(edges.keys.read(start, min(start + step, last)), low, own)
        return own

    _, *others = scratch.on_cores(count, bounds)

    def add(part: tuple[int, int]) -> None:
        for other in others:
            table[slice(*part)] += other[slice(*part)]

    if others:
        scratch.on_cores(add, _bounds(len(table), core_count()))


def _bounds(length: int, parts: int) -> list[tuple[int, int]]:
    """Return where about equal parts of a range begin and end: at least one part, and none that is empty but this."""
    parts = max(1, min(parts, length))
    return [(length * part // parts, length * (part + 1) // parts) for part in range(parts)]


def summarize(degrees: ScratchArray, scratch: Scratch) -> DegreeHistogram:
    """Make the histogram of uint32[positions] degrees."""
    common = np.zeros(_COMMON, np.int64)
    rare: Counter[int] = Counter()
    size = max(1, scratch.work // (2 * _ITEM))
    threads = scratch.work // (4 * common.nbytes)

    def count(part: tuple[int, int]) -> tuple[Int64s, list[int]]:
        block, counts = degrees.read(*part), np.zeros(_COMMON, np.int64)
        _count_common(block, counts)
        return counts, block[block >= _COMMON].tolist()

    for start in range(0, len(degrees), size):
        length = min(size, len(degrees) - start)
        parts = _bounds(length, min(core_count(), threads, length // _WORTH_A_THREAD))
        for counts, beyond in scratch.on_cores(count, [(start + first, start + last) for first, last in parts]):
            common += counts
            rare.update(beyond)
    present = np.flatnonzero(common[1:]) + 1
    large = np.array(sorted(rare), np.int64)
    found = np.concatenate((present, large))
    counts = np.concatenate((common[present], np.array([rare[degree] for degree in large.tolist()], np.int64)))
    return DegreeHistogram.of(found[::-1].copy(), counts[::-1].copy())


def rank_by_degree(degrees: ScratchArray, histogram: DegreeHistogram, scratch: Scratch) -> ScratchArray:
    """Rank positions by descending degree, ties by position.

    Returns
    -------
    ScratchArray
        uint32[positions], `NO_RANK` where there is no edge.
    """
    ranks = scratch.array(np.uint32)
    group_of = np.zeros(_COMMON, np.int64)
    common = np.flatnonzero(histogram.degrees < _COMMON)
    group_of[histogram.degrees[common]] = common
    following = histogram.first_ranks.copy()
    size = table_size(scratch, len(degrees))
    for low in range(0, len(degrees), size):
        high = min(low + size, len(degrees))
        reserved = scratch.reserve((high - low) * _ITEM, "a table of ranks")
        table = np.empty(high - low, np.uint32)
        part = max(1, scratch.work // 2 // _ITEM)
        for start in range(low, high, part):
            block = degrees.read(start, min(start + part, high))
            _rank_block(block, histogram, group_of, following, table[start - low :][: len(block)], scratch)
        ranks.adopt(table, reserved)
    return ranks


def _rank_block(
    degrees: UInt32s,
    histogram: DegreeHistogram,
    group_of: Int64s,
    following: Int64s,
    ranks: UInt32s,
    scratch: Scratch,
) -> None:
    """Rank consecutive positions and move `following`, which has the next rank of each distinct degree.

    Threads first count the degrees of a part each: the sums are where the ranks of each part begin.
    """
    threads = min(core_count(), len(degrees) // _WORTH_A_THREAD, scratch.work // 4 // following.nbytes)
    bounds = _bounds(len(degrees), threads)
    begins = np.zeros((len(bounds) + 1, len(following)), np.int64)
    begins[0] = following

    def count(part: int) -> None:
        _count_groups(degrees[slice(*bounds[part])], histogram.degrees, group_of, begins[part + 1])

    def rank(part: int) -> None:
        where = slice(*bounds[part])
        _rank(degrees[where], histogram.degrees, group_of, begins[part], ranks[where])

    if len(bounds) > 1:
        scratch.on_cores(count, range(len(bounds)))
        np.cumsum(begins, axis=0, out=begins)
    scratch.on_cores(rank, range(len(bounds)))
    following[:] = begins[-2]  # the last part has moved it


@compiled("u8[::1], i8, u4[::1]")
def _count_ends(keys: npt.NDArray[np.uint64], low: int, table: UInt32s) -> None:
    """Count both ends of edges in a table that covers the ends from `low` on."""
    for at in range(keys.size):
        small = np.int64(keys[at] >> np.uint64(32)) - low
        large = np.int64(keys[at] & np.uint64(0xFFFFFFFF)) - low
        if 0 <= small < table.size:
            table[small] += np.uint32(1)
        if 0 <= large < table.size:
            table[large] += np.uint32(1)


@compiled("u4[::1], i8[::1]")
def _count_common(degrees: UInt32s, counts: Int64s) -> None:
    for at in range(degrees.size):
        if degrees[at] < counts.size:
            counts[degrees[at]] += 1


@compiled
def _group(degree: np.int64, distinct: Int64s, group_of: Int64s) -> int:
    """Return where a degree stands among the distinct ones; `distinct.size` where it comes from a damaged file."""
    if degree < group_of.size:
        return int(group_of[degree])
    group, end = 0, distinct.size
    while group < end:
        middle = (group + end) // 2
        if distinct[middle] > degree:
            group = middle + 1
        else:
            end = middle
    return group


@compiled("u4[::1], i8[::1], i8[::1], i8[::1]")
def _count_groups(degrees: UInt32s, distinct: Int64s, group_of: Int64s, counts: Int64s) -> None:
    """Count how often each distinct degree occurs."""
    for at in range(degrees.size):
        degree = np.int64(degrees[at])
        if degree != 0:
            group = _group(degree, distinct, group_of)
            if group != distinct.size:
                counts[group] += 1


@compiled("u4[::1], i8[::1], i8[::1], i8[::1], u4[::1]")
def _rank(degrees: UInt32s, distinct: Int64s, group_of: Int64s, following: Int64s, ranks: UInt32s) -> None:
    """Assign to each position the next rank of its degree, which `following` holds for each distinct degree.

    Any other degree comes from a damaged scratch file, and gets none.
    """
    for at in range(degrees.size):
        ranks[at] = np.uint32(NO_RANK)
        degree = np.int64(degrees[at])
        if degree != 0:
            group = _group(degree, distinct, group_of)
            if group != distinct.size:
                ranks[at] = np.uint32(following[group])
                following[group] += 1
