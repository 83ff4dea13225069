"""The rows of a graph that is built, in order: from buckets of arcs in memory, or from a merge of sorted runs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.sorting import KeyLayout
from longwall.storage.graph.degree_histogram import DegreeHistogram
from longwall.storage.ingest.place_transactions import RankedTransactions
from longwall.storage.ingest.relabel import Rows, sort_by_rank, to_rows
from longwall.storage.sorting.key_sorter import ScratchSorter, SortedBlock
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
from longwall.storage.sorting.sorted_keys import SortedKeys, merging_memory
from longwall.storage.sorting.workspaces import Workspaces
from longwall.storage.system.concurrency import core_count, map_ordered

_LEAST_PIECE, _LARGEST_PIECE, _FRAGMENT = 2**14, 2**17, 64  # edges; arcs of a bucket in a piece on average, at least
_PIECES_TOGETHER = 8  # that are a task
_BUCKET, _MOST_BUCKETS = 2**15, 2**11  # arcs of a bucket on average, if there are not too many: they fit a core's cache
_TOGETHER = 2**20  # arcs of a block of rows, where no bucket has more
_ARC, _ROW = 8, 32  # bytes of an arc in a bucket; of a row of a block, at most
_WORK_OF_BUCKET = 32  # bytes of the work space that there are for each arc of the largest bucket, at least
_VERTEX, _NEIGHBOUR = 40, 4  # bytes in the graph; of a vertex with tables while it is written

Advance = Callable[[int], None]


class MergedRows:
    """Rows of arcs that are sorted in runs; a context manager.

    Parameters
    ----------
    sorter
        Has the arcs: see `relabel.sort_by_rank`.
    """

    def __init__(self, sorter: ScratchSorter) -> None:
        self._sorter = sorter
        self.labelled = bool(sorter.layout.payload)

    def blocks(
        self, histogram: DegreeHistogram, transactions: RankedTransactions | None, scratch: Scratch
    ) -> Iterator[Rows]:
        """Yield all rows, in order; see `Rows`."""

        def make(block: SortedBlock) -> Rows:
            rows = to_rows(block.keys, histogram.num_vertices)
            return rows._replace(
                labels=block.payload.astype(np.int32) if block.payload is not None else None,
                crossing=transactions.crossing(block.keys) if transactions is not None else None,
            )

        return self._sorter.each_block(make, merging_memory(scratch))

    def check(self) -> None:
        """Check that scratch files still hold what was written; raises RunError where one does not."""
        self._sorter.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sorter.__exit__(kind, error, trace)


class _Buckets(NamedTuple):
    """Rows whose arcs are sorted together."""

    of_bin: npt.NDArray[np.uint16]
    """uint16[bins]: the bucket of each bin of ranks, see `bin_starts`."""
    cuts: npt.NDArray[np.int64]
    """int64[buckets + 1]: the first row of each bucket, and the end of the last one."""
    ends: npt.NDArray[np.int64]
    """int64[buckets + 1]: where their arcs begin, and those of the last one end."""
    piece: int
    """Edges that are brought to buckets at a time."""

    @property
    def largest(self) -> int:
        """Arcs of the largest one."""
        return int(np.diff(self.ends).max())

    def bytes_of(self, edges: int) -> int:
        """Return the memory for the arcs of a given number of edges, and for their places."""
        return _ARC * (2 * edges + -(-edges // self.piece) * len(self.cuts))


class BucketRows:
    """Rows of arcs in memory, those of a bucket of rows together in each piece; a context manager.

    Parameters
    ----------
    edges : uint64[m]
        As of `rank_rows`.
    key_base
        See there.
    ranks : uint32[positions]
        See there.
    buckets
        Of the rows.
    scratch, advance
        See there.

    Raises
    ------
    BudgetExceeded
        There is no room.
    """

    labelled = False

    def __init__(
        self,
        edges: npt.NDArray[np.uint64],
        key_base: int,
        ranks: npt.NDArray[np.uint32],
        buckets: _Buckets,
        scratch: Scratch,
        advance: Advance,
    ) -> None:
        from longwall.kernels.cpu.sorting.buckets import scatter_arcs

        count, size, bucket_of = len(edges), buckets.piece, buckets.of_bin
        reserved = scratch.host.reserve(buckets.bytes_of(count), scratch.what)
        area, starts = np.empty(2 * count, np.uint64), range(0, count, size)
        self._arcs, self._buckets = scratch.array(np.uint64), buckets
        self._arcs.adopt(area, reserved)
        self._places = np.empty((len(starts), len(buckets.cuts)), np.int64)

        def scatter(first: int) -> int:
            both = np.empty(2 * min(size, count), np.uint64)
            last = min(first + _PIECES_TOGETHER, len(starts))
            for number in range(first, last):
                piece = edges[starts[number] : starts[number] + size]
                where = 2 * starts[number], area, self._places[number]
                scatter_arcs(piece, np.uint64(key_base), ranks, bucket_of, both, *where)
            return min(last * size, count) - first * size

        workers = max(1, min(core_count(), scratch.work // (4 * _ARC * min(size, count))))
        for done in map_ordered(scatter, range(0, len(starts), _PIECES_TOGETHER), workers):
            advance(done)

    def blocks(
        self,
        histogram: DegreeHistogram,
        transactions: RankedTransactions | None,
        scratch: Scratch,
    ) -> Iterator[Rows]:
        """Yield all rows, in order, none of them in two pieces; see `Rows`."""
        from longwall.kernels.cpu.sorting.buckets import COLUMN_BITS, COLUMN_DIGITS, sort_row_buckets

        n, cuts, ends = histogram.num_vertices, self._buckets.cuts, self._buckets.ends
        together = max(1, min(_TOGETHER, scratch.work // (_ROW * 2 * (core_count() + 1))))
        firsts = np.unique(ends[1:] // together, return_index=True)[1]
        groups = np.append(firsts, len(cuts) - 1)
        made = int((_NEIGHBOUR * np.diff(ends[groups]) + _ROW * np.diff(cuts[groups])).max())
        spaces = Workspaces(self._buckets.largest, (COLUMN_DIGITS, 1 << COLUMN_BITS), scratch, 2 * made)
        if spaces.threads == 0 or not self._arcs.is_whole:
            with MergedRows(self._sorted_again(scratch)) as merged:
                yield from merged.blocks(histogram, transactions, scratch)
            return
        self._arcs.pinned = True
        area = self._arcs.read(0, len(self._arcs))

        def sort(group: tuple[int, int]) -> Rows:
            first, last = group
            low, high = int(cuts[first]), int(cuts[last])
            begins = histogram.consecutive_starts(low, high)
            cursors, smaller = begins - begins[0], np.empty(high - low, np.int64)
            indices = np.empty(int(ends[last] - ends[first]), np.uint32)
            with spaces.take() as (words, other, counts):
                bits = (n - 1).bit_length()
                where = area, self._places, first, last, bits, low, cursors
                sort_row_buckets(*where, words, other, counts, indices, smaller)
            return Rows(low, indices, smaller, splits=begins + smaller)

        yield from map_ordered(sort, pairwise(groups.tolist()), spaces.threads)

    def _sorted_again(self, scratch: Scratch) -> ScratchSorter:
        """Sort arcs that had to make room since."""
        with ExitStack() as opened:
            sorter = opened.enter_context(ScratchSorter(scratch, KeyLayout(), scratch.work * 3 // 4))
            for _, arcs in self._arcs.tables(scratch.work // 8):
                sorter.add(arcs)
            self._arcs.drop()
            sorter.finish()
            opened.pop_all()
        return sorter

    def check(self) -> None:
        """Check the file, if the arcs are in one; raises RunError where it is damaged."""
        self._arcs.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._arcs.discard()


def rank_rows(
    edges: SortedKeys,
    key_base: int,
    ranks: ScratchArray,
    histogram: DegreeHistogram,
    scratch: Scratch,
    advance: Advance,
    *,
    plain: bool,
) -> MergedRows | BucketRows:
    """Replace positions by ranks and bring both directions of every edge in order.

    Parameters
    ----------
    edges
        Both ends as `key_base` plus a position, the smaller end in the high half.
    key_base
        See there.
    ranks : ScratchArray
        uint32[positions]
    histogram
        Degrees of the graph.
    scratch
        Work space.
    advance
        Called with how many more edges are relabelled.
    plain
        Whether nothing but rows is wanted: no transactions.
    """
    if plain and edges.labels is None and edges.keys.is_whole and ranks.is_whole:
        buckets = _buckets(histogram)
        graph = _VERTEX * histogram.num_vertices + _NEIGHBOUR * histogram.num_arcs
        needed = buckets.bytes_of(len(edges)) + max(0, graph - edges.keys.held)
        if needed <= scratch.host.free and buckets.largest <= scratch.work // _WORK_OF_BUCKET:
            ranks.pinned = True
            keys, table = edges.keys.read(0, len(edges)), ranks.read(0, len(ranks))
            return BucketRows(keys, key_base, table, buckets, scratch, advance)
    return MergedRows(sort_by_rank(edges, key_base, ranks, scratch, advance))


def _buckets(histogram: DegreeHistogram) -> _Buckets:
    """Cut the rows into buckets that have about as many arcs, where bins of ranks begin."""
    from longwall.kernels.cpu.sorting.buckets import bin_starts

    starts, arcs = bin_starts(histogram.num_vertices), histogram.num_arcs
    wanted = max(1, min(arcs // _BUCKET, _MOST_BUCKETS))
    _, first, bucket_of = np.unique(
        histogram.row_starts(starts) * wanted // arcs, return_index=True, return_inverse=True
    )
    cuts = np.append(starts[first], histogram.num_vertices)
    piece = max(_LEAST_PIECE, min(_LARGEST_PIECE, _FRAGMENT * len(cuts) // 2))
    return _Buckets(bucket_of.astype(np.uint16), cuts, histogram.row_starts(cuts), piece)
