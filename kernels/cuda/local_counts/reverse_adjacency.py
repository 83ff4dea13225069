"""Arcs from their smaller ends: those of a graph that is whole, or made of lists of smaller neighbours.

Launches of ``reverse_adjacency.cu``; see ``prefixes.cuh`` for what they are looked up for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.cuda.device import THREADS, WARP, Device
from longwall.kernels.cuda.local_counts.arc_triangles import ArcTasks
from longwall.kernels.cuda.runtime.constants import PREFIX_BYTES, PREFIX_CONTROL_WORDS, PREFIX_TASKS, VERTEX_RANGES
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Targets

Array = Any  # a CuPy array
Range = tuple[int, int]

_NONE = np.uintp(0)  # instead of an array
_ARC_BYTES, _START_BYTES = 8, 4
_ARCS_SHARE = 5 / 6  # of the memory; the rest says where those of each vertex begin
_LEAST = 1 << 10  # arcs and vertices of a part, whatever the memory
_MOST = (1 << 32) - 1  # arcs of a part: places of 32 bits
_BLOCKS = 8  # per multiprocessor
_PREFIXES_BYTES = 4 * PREFIX_CONTROL_WORDS + PREFIX_BYTES * THREADS
_MOST_BYTES = 36 << 10  # with a block's bitmap: six blocks fit, and lists have few of the vertices beyond it
# A task has up to `_MOST_WINDOWS` times the arcs that a block takes at once, if blocks still have `_LONG_TASKS` each.
_LONG_TASKS, _MOST_WINDOWS = 64, 16
_STATES, _TOGETHER = 1 << 6, 1 << 5  # numbers that are 0 until they are used; ranges whose arcs are made together


class LargerArcs(NamedTuple):
    """Arcs to larger vertices, of a whole graph or in pairs; see ``LargerArcs`` in ``prefixes.cuh``."""

    arguments: tuple[Any, ...]
    """What kernels take."""
    arcs: int
    """No fewer than there are."""
    next: Array
    """The next of their tasks: uint32[1], zero; for one launch."""

    @classmethod
    def of_whole(cls, device: Device, graph: GraphArrays, targets: Targets | None = None) -> LargerArcs:
        """Return those of some vertices of a graph that has its larger neighbours, too; None: all."""
        low, high = targets or (0, graph.num_vertices)
        vertices = graph.indices[int(graph.indptr[low]) :] if low else graph.indices
        there = (graph.indptr[low:], vertices, graph.split[low:], high - low, low)
        return cls((*there, _NONE, _NONE), graph.num_arcs, device.xp.zeros(1, device.xp.uint32))

    @classmethod
    def of_pairs(cls, pairs: Array, number: Array, arcs: int, next_task: Array) -> LargerArcs:
        """Return those of ``number[0]`` pairs, `arcs` at most."""
        return cls((_NONE, _NONE, _NONE, 0, 0, pairs, number), arcs, next_task)

    def tasks(self, device: Device, graph: GraphArrays, words_each: int = 1) -> ArcTasks:
        """Cut them into tasks of blocks, with a bitmap of `words_each` words for every 32 vertices."""
        capacity = min(device.shared_memory, _MOST_BYTES) - _PREFIXES_BYTES
        words = min(-(-graph.num_vertices // 32), capacity // (4 * words_each))
        shared = _PREFIXES_BYTES + 4 * words_each * words
        blocks = max(min(_BLOCKS, device.shared_memory // (shared + 1024)), 1) * device.multiprocessors
        size = min(max(self.arcs // (blocks * PREFIX_TASKS), WARP), THREADS)
        if self.arguments[0] is not _NONE:  # a block searches all rows for that of a task's first arc
            size *= min(max(self.arcs // (blocks * _LONG_TASKS * size), 1), _MOST_WINDOWS)
        return ArcTasks(size, words, shared, min(blocks, max(-(-self.arcs // size), 1)))


class ReverseAdjacency:
    """The arcs of ranges of a graph from their smaller ends, as many at a time as there is room for.

    Parameters
    ----------
    device
        The device.
    graph
        A graph there, of arcs to smaller neighbours alone.
    memory
        Bytes that they may take; a few thousand, at least.
    least
        Vertices of fewer out-neighbours have none.
    """

    def __init__(self, device: Device, graph: GraphArrays, memory: int, least: int = 1):
        self._device, self._graph, self._least = device, graph, least
        arcs = max(int(_ARCS_SHARE * memory) // _ARC_BYTES, _LEAST)
        self._arcs = min(arcs, max(graph.num_arcs, 1), _MOST)
        number = max((memory - _ARC_BYTES * self._arcs) // _START_BYTES, _LEAST)
        self._number = min(number, max(graph.num_vertices, 1))
        self._pairs = device.xp.empty(self._arcs, device.xp.uint64)
        self._starts = device.xp.empty(self._number, device.xp.uint32)
        self._numbers, self._used = device.xp.zeros(_STATES, device.xp.uint64), 0
        self._tasks = device.xp.zeros(_STATES, device.xp.uint32)
        self._made: dict[tuple[Range, Range], LargerArcs] = {}  # of ranges of arcs and vertices

    @property
    def nbytes(self) -> int:
        """Bytes of the device that they take."""
        return int(self._pairs.nbytes + self._starts.nbytes)

    def parts(
        self, first: int, last: int, targets: Targets | None, later: Sequence[Targets | None] = ()
    ) -> Iterator[LargerArcs]:
        """Make those of the arcs `first` to `last` - 1 that lead to `targets`, part by part; None: all.

        Kernels that read a part are launched before the next one is asked for, which may take its place.

        Parameters
        ----------
        first, last
            The range of arcs.
        targets
            The first vertex, and one past the last.
        later
            For which vertices arcs of the same range will be asked for afterwards: those of some are made together.
        """
        arcs, vertices = (first, last), targets or (0, self._graph.num_vertices)
        if (arcs, vertices) not in self._made:
            together = self._together(arcs, [vertices, *(some for some in later if some)])
            if not together:
                for some, (low, high) in self._cut(arcs, vertices):
                    for vertex in range(low, high, self._number):
                        part = vertex, min(vertex + self._number, high)
                        self._make(some, [(part, min(some[1] - some[0], self._arcs))])
                        yield self._made.pop((some, part))
                return
            self._make(arcs, together)
        made = self._made.pop((arcs, vertices))
        if made.arcs:
            yield made

    def _together(self, arcs: Range, ranges: Sequence[Range]) -> list[tuple[Range, int]]:
        """Return those of ranges of vertices, from the first on, whose arcs have room, with the most arcs of each."""
        found: list[tuple[Range, int]] = []
        pages, (low, high), total = self._graph.pages, ranges[0], 0
        if pages is None:
            return found
        for vertices in ranges:
            low, high = min(low, vertices[0]), max(high, vertices[1])
            most = pages.most_to(arcs, vertices)
            total += most
            inside = sum(end - begin for (begin, end), _ in found) + vertices[1] - vertices[0] == high - low
            if total > self._arcs or high - low > self._number or not inside or len(found) == _TOGETHER:
                break
            found.append((vertices, most))
        return found

    def _cut(self, arcs: Range, vertices: Range) -> Iterator[tuple[Range, Range]]:
        """Cut ranges of arcs and of the vertices that they lead to, so that there is room for the arcs of a piece."""
        if self._graph.pages is not None:
            yield from self._graph.pages.cut(arcs, vertices, self._arcs)
            return
        for first in range(*arcs, self._arcs):
            yield (first, min(first + self._arcs, arcs[1])), vertices

    def _make(self, arcs: Range, ranges: Sequence[tuple[Range, int]]) -> None:
        """Make those that lead to ranges of vertices, which are one range together, with the most arcs of each."""
        graph, base, ranges = self._graph, 0, sorted(ranges)
        low, high = ranges[0][0][0], ranges[-1][0][1]
        self._made.clear()
        if self._used + len(ranges) > _STATES:
            self._numbers.fill(0)
            self._tasks.fill(0)
            self._used = 0
        starts = self._starts[: high - low]
        starts.data.memset_async(0, starts.nbytes)
        rows = (*graph.rows, places_of(graph))
        owners = (*rows, graph.num_vertices, *arcs, self._least, low, high, starts)
        self._launch("count_reverse", owners)
        for first in range(0, len(ranges), VERTEX_RANGES):
            some = ranges[first : first + VERTEX_RANGES]
            begin, end, numbers, places = some[0][0][0], some[-1][0][1], self._numbers[self._used :], []
            for vertices, most in some:
                own = slice(self._used, self._used + 1)
                made = LargerArcs.of_pairs(self._pairs[base:], self._numbers[own], most, self._tasks[own])
                self._made[arcs, vertices] = made
                places += [vertices[0] - begin, base]
                base, self._used = base + most, self._used + 1
            places += [end - begin, 0] * (VERTEX_RANGES - len(some))
            self._launch("start_reverse", (starts[begin - low : end - low], end - begin, *places, numbers))
        self._launch("place_reverse", (*owners, self._pairs))

    def _launch(self, function: str, arguments: tuple[Any, ...]) -> None:
        blocks = self._device.multiprocessors * _BLOCKS
        self._device.launch("local_counts/reverse_adjacency.cu", function, arguments, blocks=blocks, threads=THREADS)
