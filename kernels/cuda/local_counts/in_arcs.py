"""Arcs from their smaller ends: those of a graph that is whole, or made of lists of smaller neighbours.

Launches of ``in_arcs.cu``; see ``prefixes.cuh`` for what they are looked up for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.cuda.local_counts.arc_triangles import ArcTasks
from longwall.kernels.cuda.runtime.launch import THREADS, WARP, Device
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
_PREFIX_BYTES = 64 + 40 * THREADS  # kPrefixWords
_MOST_BYTES = 36 << 10  # with a block's bitmap: six blocks fit, and lists have few of the vertices beyond it
_STATES = 1 << 7
_TASKS = 4  # kTasks


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
        """Cut them into tasks of blocks, with a bitmap of so many words for every 32 vertices."""
        room = min(device.shared_memory, _MOST_BYTES) - _PREFIX_BYTES
        words = min(-(-graph.num_vertices // 32), room // (4 * words_each))
        shared = _PREFIX_BYTES + 4 * words_each * words
        blocks = max(min(_BLOCKS, device.shared_memory // (shared + 1024)), 1) * device.multiprocessors
        size = min(max(self.arcs // (blocks * _TASKS), WARP), THREADS)
        return ArcTasks(size, words, shared, min(blocks, max(-(-self.arcs // size), 1)))


class InArcs:
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

    @property
    def nbytes(self) -> int:
        """Bytes of the device that they take."""
        return int(self._pairs.nbytes + self._starts.nbytes)

    def parts(self, first: int, last: int, targets: Targets | None) -> Iterator[LargerArcs]:
        """Make those of the arcs `first` to `last` - 1 that lead to `targets`, part by part; None: all.

        Kernels that read a part are launched before the next one is asked for, which takes its place.
        """
        vertices = targets or (0, self._graph.num_vertices)
        for arcs, (low, high) in self._cut((first, last), vertices):
            for vertex in range(low, high, self._number):
                yield self._make(arcs, vertex, min(vertex + self._number, high))

    def _cut(self, arcs: Range, vertices: Range) -> Iterator[tuple[Range, Range]]:
        """Cut ranges of arcs and of the vertices that they lead to, so that there is room for the arcs of a piece."""
        if self._graph.pages is not None:
            yield from self._graph.pages.cut(arcs, vertices, self._arcs)
            return
        for first in range(*arcs, self._arcs):
            yield (first, min(first + self._arcs, arcs[1])), vertices

    def _make(self, arcs: tuple[int, int], low: int, high: int) -> LargerArcs:
        graph = self._graph
        starts, (number, next_task) = self._starts[: high - low], self._zeros()
        starts.data.memset_async(0, starts.nbytes)
        rows = (graph.indptr, graph.indices, graph.split, places_of(graph))
        owners = (*rows, graph.num_vertices, *arcs, self._least, low, high, starts)
        self._launch("count_in_arcs", owners)
        self._launch("start_in_arcs", (starts, high - low, number))
        self._launch("place_in_arcs", (*owners, self._pairs))
        return LargerArcs.of_pairs(self._pairs, number, min(arcs[1] - arcs[0], self._arcs), next_task)

    def _zeros(self) -> tuple[Array, Array]:
        """Return numbers on the device that are 0, uint64[1] and uint32[1]; after many others they are used again."""
        if self._used == _STATES:
            self._numbers.fill(0)
            self._tasks.fill(0)
            self._used = 0
        self._used += 1
        own = slice(self._used - 1, self._used)
        return self._numbers[own], self._tasks[own]

    def _launch(self, function: str, arguments: tuple[Any, ...]) -> None:
        blocks = self._device.multiprocessors * _BLOCKS
        self._device.launch("in_arcs.cu", function, arguments, blocks=blocks, threads=THREADS)
