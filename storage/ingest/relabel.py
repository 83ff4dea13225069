"""The second half of a build: from edges between positions to sorted edges between ranks, in both directions."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.sorting import KeyLayout
from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.degree_histogram import table_size
from longwall.storage.sorting.key_sorter import ScratchSorter
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
from longwall.storage.sorting.sorted_keys import KeyBlock, SortedKeys
from longwall.storage.system.concurrency import core_count, map_ordered

_RANK = 4
_SHIFT = np.uint64(32)

UInt32s = npt.NDArray[np.uint32]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]


class _Task(NamedTuple):
    """Edges whose larger ends stand in one table of ranks and whose smaller ends in another."""

    block: KeyBlock
    window_base: int
    window: UInt32s
    table_base: int
    table: UInt32s


def sort_by_rank(
    edges: SortedKeys, key_base: int, ranks: ScratchArray, scratch: Scratch, advance: Callable[[int], None]
) -> ScratchSorter:
    """Replace positions by ranks and sort both directions of every edge.

    Parameters
    ----------
    edges
        Both ends as `key_base` plus a position, the smaller end in the high half.
    key_base
        See there.
    ranks : ScratchArray
        uint32[positions]
    scratch
        Work space.
    advance
        Called with how many more edges are relabelled.

    Returns
    -------
    ScratchSorter
        It has each edge twice: row in the high half, column in the low half, both as ranks; the label is the payload.
    """
    memory = scratch.work // 4
    workers = max(1, min(core_count(), memory // 2**20))
    share = memory // (workers + 2)
    layout = KeyLayout(payload=edges.labels is not None)
    with ExitStack() as opened:
        sorter = opened.enter_context(ScratchSorter(scratch, layout, scratch.work - memory))
        for keys, labels in map_ordered(_relabelled, _tasks(edges, key_base, ranks, scratch, share), workers):
            sorter.add(keys, labels)
            advance(len(keys) // 2)
        sorter.finish()
        opened.pop_all()
    return sorter


def _tasks(edges: SortedKeys, key_base: int, ranks: ScratchArray, scratch: Scratch, share: int) -> Iterator[_Task]:
    """Yield all edges, in a pass for every table of ranks that fits in memory; each task takes `share` bytes."""
    if ranks.is_whole:
        ranks.pinned = True  # or it would be both in memory and in a file
        table = ranks.read(0, len(ranks))
        for block in edges.blocks(share // 4):
            yield _Task(block, key_base, table, key_base, table)
        return
    size = table_size(scratch, len(ranks))
    for low in range(0, len(ranks), size):
        high = min(low + size, len(ranks))
        with scratch.reserve((high - low) * _RANK, "a table of ranks"):
            table = ranks.read(low, high)
            for block in edges.blocks(share // 5):
                for part in _cut(block, max(1, share // 5 // _RANK)):
                    first, last = int(part.keys[0] >> _SHIFT), int(part.keys[-1] >> _SHIFT)
                    window = ranks.read(first - key_base, last - key_base + 1)
                    yield _Task(part, first, window, key_base + low, table)


def _cut(block: KeyBlock, span: int) -> Iterator[KeyBlock]:
    """Cut a block where its smaller ends, which ascend, leave a window of `span` positions."""
    start = 0
    while start < len(block.keys):
        limit = (block.keys[start] >> _SHIFT) + np.uint64(span)
        beyond = limit > np.uint64(0xFFFF_FFFF)
        stop = len(block.keys) if beyond else int(np.searchsorted(block.keys, limit << _SHIFT))
        stop = max(stop, start + 1)  # keys of a damaged scratch file may be in any order
        yield KeyBlock(block.keys[start:stop], block.labels[start:stop] if block.labels is not None else None)
        start = stop


def _relabelled(task: _Task) -> tuple[Keys, Int64s | None]:
    keys, labels = task.block
    both = np.empty(2 * len(keys), np.uint64)
    both_labels = np.empty(2 * len(keys), np.int64) if labels is not None else None
    count = _relabel(keys, labels, task.window_base, task.window, task.table_base, task.table, both, both_labels)
    return both[:count], both_labels[:count] if both_labels is not None else None


@compiled(
    "u8[::1], none, i8, u4[::1], i8, u4[::1], u8[::1], none",
    "u8[::1], i4[::1], i8, u4[::1], i8, u4[::1], u8[::1], i8[::1]",
)
def _relabel(
    keys: Keys,
    labels: Int32s | None,
    window_base: int,
    window: UInt32s,
    table_base: int,
    table: UInt32s,
    both: Keys,
    both_labels: Int64s | None,
) -> int:
    """Write both directions of the edges whose larger end stands in the table; return how many words.

    A smaller end outside its window comes from a damaged scratch file: the edge is left out.
    """
    count = 0
    for at in range(keys.size):
        large = np.int64(keys[at] & np.uint64(0xFFFFFFFF)) - table_base
        small = np.int64(keys[at] >> np.uint64(32)) - window_base
        if 0 <= large < table.size and 0 <= small < window.size:
            u = np.uint64(window[small])
            v = np.uint64(table[large])
            both[count] = u << np.uint64(32) | v
            both[count + 1] = v << np.uint64(32) | u
            if labels is not None and both_labels is not None:
                both_labels[count] = labels[at]
                both_labels[count + 1] = labels[at]
            count += 2
    return count


class Rows(NamedTuple):
    """A piece of the rows of a graph."""

    first: int
    """Rank of the row that the piece begins in; it may have begun in a piece before."""
    indices: UInt32s
    """uint32[k]: columns."""
    smaller: npt.NDArray[np.int64]
    """int64[r]: for each row that the piece touches, its columns in the piece that are smaller than the row."""
    labels: Int32s | None = None
    """int32[k]: of the edges to the columns, where edges are labelled."""
    crossing: tuple[int, int] | None = None
    """Ranks of the first edge of the piece that joins two transactions, where there is one."""
    splits: npt.NDArray[np.int64] | None = None
    """int64[r]: where each row is split, among all arcs of the graph, if no row is in two pieces."""


def to_rows(keys: Keys, num_rows: int) -> Rows:
    """Split sorted words (row high, column low) of a graph without empty rows.

    Raises
    ------
    ValueError
        There are other rows than those below `num_rows`, in ascending order: a scratch file is damaged.
    """
    first, last = int(keys[0] >> _SHIFT), int(keys[-1] >> _SHIFT)
    if not first <= last < num_rows:
        raise ValueError("rows out of range")
    indices = np.empty(len(keys), np.uint32)
    smaller = np.zeros(last - first + 1, np.int64)
    _split_words(keys, first, indices, smaller)
    return Rows(first, indices, smaller)


@compiled("u8[::1], i8, u4[::1], i8[::1]")
def _split_words(keys: Keys, first: int, indices: UInt32s, smaller: npt.NDArray[np.int64]) -> None:
    for at in range(keys.size):
        row = np.int64(keys[at] >> np.uint64(32))
        column = np.int64(keys[at] & np.uint64(0xFFFFFFFF))
        indices[at] = np.uint32(column)
        if column < row and 0 <= row - first < smaller.size:
            smaller[row - first] += 1
