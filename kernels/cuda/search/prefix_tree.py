"""Operations on prefix trees in columns, on the device: the twin of :mod:`longwall.kernels.cpu.search.prefix_tree`.

A call of CuPy costs as much as a kernel over a million rows, and asking for a number waits for the device. So a few
kernels do the work for all levels (``prefix_tree.cu``), and what cannot be known beforehand, how many nodes of each
level are kept or where a slice begins and ends, is fetched once: kernels write it to the host's memory.
"""

import threading
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.cuda.device import WARP
from longwall.kernels.cuda.runtime.compile import kernel
from longwall.kernels.cuda.runtime.constants import TREE_GROUP_BITS, TREE_STEPS
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import Level, admissible

Array = Any  # a CuPy array
Tree = tuple[tuple[Array, ...], tuple[Array, ...]]

_THREADS = 256
_BLOCKS = 8  # per multiprocessor: as many threads as it holds
_GROUP = 1 << TREE_GROUP_BITS  # nodes of a warp
_LEVELS = 5  # that sum_groups takes
_NONE = np.uintp(0)


def edges(graph: GraphArrays, levels: tuple[Level, Level], first: int, last: int) -> Tree:
    """Make the tree of the edges of a range of arcs. Takes 14 bytes per arc beside the result."""
    import cupy

    vertex = int(cupy.searchsorted(graph.indptr, first, side="right")) - 1
    beyond = int(cupy.searchsorted(graph.indptr, last, side="left"))
    owners = cupy.arange(vertex, beyond, dtype=np.uint32)
    offsets = cupy.clip(graph.indptr[vertex : beyond + 1], first, last) - first
    values = owners, graph.indices[first:last]
    low, high = columns(values, (offsets,))
    mask = admissible(graph, levels[0], low) & admissible(graph, levels[1], high)
    if levels[1].below:
        mask &= high < low
    if levels[1].above:
        mask &= high > low
    return filtered(values, (offsets,), mask) or (values, (offsets,))


def columns(values: Sequence[Array], offsets: Sequence[Array]) -> Array:
    """Flatten all levels. Tables of more than 5 levels take 8 bytes per node of some levels for a moment."""
    import cupy

    last = _contiguous(values[-1])
    flat = cupy.empty((len(values), last.size), last.dtype)
    for top in range(len(offsets) - 1, -1, -TREE_STEPS) or (-1,):
        climbed = range(top, max(top - TREE_STEPS, -1), -1)
        steps = [
            (_to_rows(offsets, top) if level == top else offsets[level], _contiguous(values[level], last.dtype))
            for level in climbed
        ]
        _climb(flat, top, last if top == len(offsets) - 1 else _NONE, steps)
    return flat


def column(values: Sequence[Array], offsets: Sequence[Array], level: int, rows: int) -> Array:
    """Flatten a level above the last one. Takes 8 bytes per node of some levels, if more than 4 are below it."""
    import cupy

    wanted = _contiguous(values[level])
    flat = cupy.empty((1, rows), wanted.dtype)
    top = min(level + TREE_STEPS, len(offsets)) - 1
    steps = [(_to_rows(offsets, top), _NONE), *((offsets[above], _NONE) for above in range(top - 1, level - 1, -1))]
    steps[-1] = (steps[-1][0], wanted)
    _climb(flat, top - level, _NONE, steps)
    return flat[0]


def looked_up(ids: Array, vertices: Array) -> Array:
    """Return the ids of vertices (uint32[n]): int64[n] or uint64[n]."""
    return ids[vertices]


def filtered(values: Sequence[Array], offsets: Sequence[Array], mask: Array) -> Tree | None:
    """Keep the rows where the mask holds. Takes a sixth of a byte per node beside the result."""
    if not mask.size:
        return None
    marked = _mark(values, offsets, _contiguous(mask, np.bool_), None)
    return None if marked.kept[-1] == mask.size else _gathered(values, offsets, marked)


def extended(values: Sequence[Array], offsets: Sequence[Array], counts: Array) -> Tree:
    """Drop rows without children. Return the offsets of a new level; takes a fifth of a byte per node beside them."""
    import cupy

    if not counts.size:
        return tuple(values), (*offsets, cupy.zeros(1, np.int64))
    counts = _contiguous(counts, np.int64)
    marked = _mark(values, offsets, None, counts)
    tree = tuple(values), tuple(offsets)
    if marked.kept[-1] < counts.size:
        tree = _gathered(values, offsets, marked)
    ends = cupy.empty(marked.kept[-1] + 1, np.int64)
    _launch("gather_ends", (counts.size, counts, marked.sums, marked.before[-1], ends), _whole_warps(counts.size))
    return tree[0], (*tree[1], ends)


def sliced(values: Sequence[Array], offsets: Sequence[Array], begin: int, end: int) -> Tree:
    """Cut rows begin to end - 1 out."""
    import cupy

    parts, cut = [_part(values[-1], begin, end)], []
    there = [level for level in reversed(range(len(offsets))) if offsets[level] is not None]
    for level, (first, last) in zip(there, _ancestors(offsets, there, begin, end), strict=True):
        own = cupy.empty(last - first + 1, np.int64)
        _launch("cut_offsets", (own.size, offsets[level][first:], own, begin, end), own.size)
        cut.append(own)
        parts.append(_part(values[level], first, last))
        begin, end = first, last
    missing = (None,) * (len(offsets) - len(there))
    return (*missing, *reversed(parts)), (*missing, *reversed(cut))


# --- flatten ----------------------------------------------------------------------------------------------------------


def _to_rows(offsets: Sequence[Array], level: int) -> Array:
    """Where the rows below each node of a level begin: its own offsets, where the next level has the rows."""
    bounds = offsets[level]
    for below in offsets[level + 1 :]:
        bounds = below[bounds]
    return bounds


def _climb(flat: Array, top: int, last: Array, steps: Sequence[tuple[Array, Array]]) -> None:
    """Fill the column `top` of `flat` and those before it, one with each step; and the next one with `last`."""
    rows = flat.shape[1]
    if rows:
        sized = [(offsets, offsets.size - 1, data) for offsets, data in steps]
        _launch(f"climb_{8 * flat.itemsize}", (rows, last, flat, top, *_padded(sized)), _whole_warps(rows))


# --- compact ----------------------------------------------------------------------------------------------------------


class _Marked(NamedTuple):
    """What is kept of the levels of a tree.

    Attributes
    ----------
    words
        A bit per node: uint32[groups * 8] for each level.
    before
        How many nodes are kept before each group: int64[groups] for each level.
    kept
        How many nodes are kept of each level.
    sums
        How many children the rows before each group have, None if rows have no counts: int64[groups].
    """

    words: list[Array]
    before: list[Array]
    kept: list[int]
    sums: Array


def _mark(values: Sequence[Array], offsets: Sequence[Array], mask: Array, counts: Array) -> _Marked:
    """Mark the rows where the mask holds, or counts are positive, and their ancestors."""
    import cupy

    sizes = [int(level.size) for level in values]
    groups = [size // _GROUP + 1 for size in sizes]  # a node's offset may be that of the end
    starts = list(accumulate(groups, initial=0))
    all_words = cupy.zeros(starts[-1] * (_GROUP // 32), np.uint32)
    all_before = cupy.empty(starts[-1], np.int64)
    words = [all_words[start * (_GROUP // 32) :] for start in starts[:-1]]
    sums = None if counts is None else cupy.empty(groups[-1], np.int64)
    source = (_NONE if mask is None else mask, _NONE if counts is None else counts)
    for base in range(len(offsets), 0, -TREE_STEPS) or (0,):
        climbed = range(base - 1, max(base - 1 - TREE_STEPS, -1), -1)
        steps = _padded([(offsets[level], sizes[level], words[level]) for level in climbed])
        arguments = (sizes[base], *source, words[base], _NONE if sums is None else sums, *steps)
        _launch("mark_kept", arguments, _whole_warps(sizes[base] + 1))
        source = _NONE, _NONE  # from there on what is marked is what is kept
    totals, answer = _answer(len(sizes))
    for first in range(0, len(sizes), _LEVELS):
        bounds = starts[first : first + _LEVELS + 1]
        with_sums = first == 0 and sums is not None
        arguments = (all_words, all_before, np.uintp(totals + 8 * first), len(bounds) - 1, *_sums(sums, with_sums))
        padding = [bounds[-1]] * (_LEVELS + 1 - len(bounds))
        per_block = min(-(-max(groups) // WARP) * WARP, 1024)
        _launch("sum_groups", (*arguments, *bounds, *padding), per_block * (len(bounds) - 1 + with_sums), per_block)
    return _Marked(words, [all_before[start:] for start in starts[:-1]], _given(answer), sums)


def _sums(sums: Array, given: bool) -> tuple[Array, int]:
    return (sums, sums.size) if given else (_NONE, 0)


def _gathered(values: Sequence[Array], offsets: Sequence[Array], marked: _Marked) -> Tree:
    """Bring together what is kept of every level."""
    import cupy

    new_values, new_offsets = [], []
    for level, kept in enumerate(marked.kept):
        old = _contiguous(values[level])
        own = cupy.empty(kept, old.dtype)
        below: tuple[Any, ...] = (_NONE,) * 4
        if level < len(offsets):
            new_offsets.append(cupy.empty(kept + 1, np.int64))
            below = (offsets[level], new_offsets[-1], marked.words[level + 1], marked.before[level + 1])
        arguments = (old.size, marked.words[level], marked.before[level], old, own, *below)
        _launch(f"gather_{8 * old.itemsize}", arguments, old.size)
        new_values.append(own)
    return tuple(new_values), tuple(new_offsets)


# --- cut --------------------------------------------------------------------------------------------------------------


def _ancestors(offsets: Sequence[Array], levels: Sequence[int], begin: int, end: int) -> list[tuple[int, int]]:
    """First node of each level (upwards from the last but one) that has rows begin to end - 1, and where these end."""
    if begin == end:
        return [(0, 0)] * len(levels)
    found: list[tuple[int, int]] = []
    for done in range(0, len(levels), TREE_STEPS):
        steps = [(offsets[level], offsets[level].size - 1, _NONE) for level in levels[done : done + TREE_STEPS]]
        ends, answer = _answer(2 * TREE_STEPS)
        first, end = found[-1] if found else (begin, end)
        _launch("find_ends", (np.uintp(ends), first, end - 1, *_padded(steps)), 64, 64)
        both = _given(answer)
        found += [(both[step], both[TREE_STEPS + step] + 1) for step in range(len(steps))]
    return found


def _part(values: Array, begin: int, end: int) -> Array:
    return None if values is None else values[begin:end]


# --- all --------------------------------------------------------------------------------------------------------------


def _padded(steps: Sequence[tuple[Array, int, Array]]) -> list[Any]:
    """Offsets, number of nodes and data of the levels that a launch climbs, as a kernel takes them."""
    flat: list[Any] = [argument for step in steps for argument in step]
    return flat + [_NONE, 0, _NONE] * (TREE_STEPS - len(steps))


def _contiguous(array: Array, dtype: Any = None) -> Array:
    import cupy

    if array.flags.c_contiguous and (dtype is None or array.dtype == dtype):
        return array
    return cupy.ascontiguousarray(array, dtype)


def _whole_warps(nodes: int) -> int:
    """Threads of the warps that have all groups of a number of nodes."""
    return -(-nodes // _GROUP) * WARP


_answers = threading.local()


def _answer(number: int) -> tuple[int, Any]:
    """Page-locked memory where a kernel writes a few numbers: where it is, and int64[number]; each thread has one."""
    import cupy

    if getattr(_answers, "size", 0) < number:
        _answers.memory, _answers.size = cupy.cuda.alloc_pinned_memory(8 * number), number
    return int(_answers.memory.ptr), np.frombuffer(_answers.memory, np.int64, number)


def _given(answer: Any) -> list[int]:
    """What kernels wrote, once they have."""
    import cupy

    cupy.cuda.Device().synchronize()
    given: list[int] = answer.tolist()
    return given


def _launch(function: str, arguments: tuple[Any, ...], threads: int, per_block: int = _THREADS) -> None:
    """Launch a kernel for a number of threads; if these are too many, those launched share the work."""
    import cupy

    per_block = min(per_block, -(-threads // WARP) * WARP)
    blocks = min(-(-threads // per_block), _most_blocks(int(cupy.cuda.Device().id)))
    kernel("search/prefix_tree.cu", function)((blocks,), (per_block,), arguments)


@cache
def _most_blocks(device: int) -> int:
    import cupy

    return _BLOCKS * int(cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"])
