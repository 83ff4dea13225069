"""Triangles on the device, in all or per vertex: launches of ``triangles.cu``.

Those of a range of a whole graph are one launch, of ``warp_triangles.cu`` or ``homomorphisms/diamonds.cu``.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import THREADS, WARP, Device, fetch_sum, units_that_fit
from longwall.kernels.cuda.homomorphisms.diamonds import RowPairs, launch_state
from longwall.kernels.cuda.local_counts.reverse_adjacency import LargerArcs, ReverseAdjacency
from longwall.kernels.cuda.runtime.constants import TABLE_SHARE
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.cuda.runtime.sources import compiles
from longwall.kernels.interface.engine import EngineLost, ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Block, Targets

Array = Any  # a CuPy array

_WARPS = 8  # per block of the kernel for short lists
# Of the memory, for arcs from their smaller ends: of a graph in pages, which says how many there are; of another one;
# and beside counts of vertices.
_PAGED_REVERSE_SHARE, _REVERSE_SHARE, _REVERSE_SHARE_OF_PARTS = 1 / 4, 1 / 2, 1 / 8
_SHORT = 128  # most smaller neighbours of a vertex where each is a warp's work
_SHORT_BLOCKS = 6  # per multiprocessor, of that kernel: all at once
MOST_HITS = 4096  # out-neighbours of a vertex whose counts are in shared memory
_MOST_PASSES = 16  # over the edges, to count triangles per vertex


class ShortTriangles:
    """Counts triangles of a graph without long lists of smaller neighbours; see ``warp_triangles.cu``."""

    def __init__(self, device: Device, graph: GraphArrays):
        self._device, self._graph = device, graph
        self._state, self._result = launch_state(device)
        slots = 1 << (max(TABLE_SHARE * graph.max_out_degree, WARP) - 1).bit_length()
        self._slots, self._shared = slots, 16 + 4 * _WARPS * (slots + WARP)
        self._blocks = min(device.multiprocessors * _SHORT_BLOCKS, max(-(-graph.num_vertices // _WARPS), 1))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernel for a range of arcs; see `RowPairs.start`."""
        graph = self._graph
        arrays = (*graph.rows, graph.num_vertices)
        self._device.launch(
            "local_counts/warp_triangles.cu",
            "count_triangles",
            (*arrays, first, last, self._slots, self._state, self._device.stop_flag, self._result),
            blocks=self._blocks,
            threads=_WARPS * WARP,
            shared=self._shared,
        )
        return self._result


@compiles(lambda: [("local_counts/warp_triangles.cu", "")])
class CudaTriangleCounter:
    """Counts triangles: lists are looked up from their other ends; see ``prefixes.cuh``."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        self._short = self._reverse = None
        if graph.oriented or graph.pages is not None:
            share = _REVERSE_SHARE if graph.pages is None else _PAGED_REVERSE_SHARE
            self._reverse = ReverseAdjacency(device, graph, int(share * memory), least=2)
            return
        if graph.max_out_degree <= _SHORT and graph.num_arcs < 1 << 32:
            self._short = ShortTriangles(device, graph)

    @cached_property
    def _rows(self) -> RowPairs:
        device, graph = self._device, self._graph
        return RowPairs(device, graph, "count_triangles", LargerArcs.of_whole(device, graph).tasks(device, graph))

    def count(self, first: int, last: int, targets: Targets | None = None) -> int:
        """Count the triangles of a range of arcs, or those of its arcs to `targets`."""
        return self.count_blocks([Block(first, last, targets)])

    def count_blocks(self, blocks: Iterable[Block]) -> int:
        """Count the triangles of blocks, while their lists are streamed: the host does not wait for their kernels."""
        if self._reverse is None:
            return sum(fetch_sum(self.start(*block[:3])) for block in blocks)
        result = self._device.result()
        for block in blocks:
            self._add(self._reverse, block, result)
        return fetch_sum(result)

    def start(self, first: int, last: int, targets: Targets | None = None) -> Array:
        """Launch the kernels. Return what :func:`longwall.kernels.cuda.device.fetch_sum` fetches."""
        if self._reverse is not None:
            result = self._device.result()
            self._add(self._reverse, Block(first, last, targets), result)
            return result
        if self._short is not None and targets is None:
            return self._short.start(first, last)
        return self._rows.start(first, last, *(targets or (0, self._graph.num_vertices)))

    def _add(self, reverse: ReverseAdjacency, block: Block, result: Array) -> None:
        for arcs in reverse.parts(*block):
            self._launch(*block[:2], arcs, result)

    def _launch(self, first: int, last: int, arcs: LargerArcs, result: Array) -> None:
        device, graph = self._device, self._graph
        tasks = arcs.tasks(device, graph)
        rows = (*graph.rows, places_of(graph))
        work = (tasks.size, tasks.words, arcs.next, device.stop_flag)
        device.launch(
            "local_counts/triangles.cu",
            "count_triangles",
            (*rows, *arcs.arguments, first, last, *work, result),
            blocks=tasks.blocks,
            threads=THREADS,
            shared=tasks.shared,
        )


class CudaTriangleVertexCounter:
    """Counts triangles per vertex; for as many vertices at a time as there is room for, a part of them at least."""

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        n, whole = graph.num_vertices, not graph.oriented and graph.pages is None
        share = 0 if whole else int(_REVERSE_SHARE_OF_PARTS * memory)
        self._reverse = None if whole else ReverseAdjacency(device, graph, share, least=2)
        memory -= share
        least = -(-n // _MOST_PASSES)
        self._counts = device.xp.zeros(least * units_that_fit(_MOST_PASSES, 8 * least, memory), np.int64)
        self._sums: NDArray[np.int64] | None = None if self._counts.size >= n else np.zeros(n, np.int64)
        self.workspace_bytes = 0 if self._sums is None else self._sums.nbytes + self._counts.nbytes
        self._begun = False

    def add(self, first: int, last: int, targets: Targets | None = None) -> None:
        """Add the triangles of a range of arcs, or those of its arcs to `targets`."""
        self.add_blocks(lambda: [Block(first, last, targets)])

    def add_blocks(self, blocks: Callable[[], Iterable[Block]]) -> None:
        """Add the triangles of blocks, while their lists are streamed, once for each part of the vertices."""
        self._begun = False
        try:
            with self._device.faults():
                self._add_parts(blocks)
                self._device.synchronize()
        except ShortOfMemory as error:
            if self._begun:
                raise EngineLost(f"triangles of a range were added in part: {error}") from error
            raise

    def counts(self) -> NDArray[np.int64]:
        """Triangles per vertex so far."""
        if self._sums is not None:
            return self._sums
        host: NDArray[np.int64] = self._counts[: self._graph.num_vertices].get()
        return host

    def _add_parts(self, blocks: Callable[[], Iterable[Block]]) -> None:
        if self._sums is None:
            self._add_all(blocks(), 0)
            return
        for begin in range(0, self._sums.size, self._counts.size):
            self._counts.fill(0)
            self._add_all(blocks(), begin)
            some = self._sums[begin : begin + self._counts.size]
            counts = self._counts[: some.size].get()
            self._begun = True
            some += counts

    def _add_all(self, blocks: Iterable[Block], begin: int) -> None:
        for block in blocks:
            if self._reverse is None:
                larger: Iterable[LargerArcs] = [LargerArcs.of_whole(self._device, self._graph, block.targets)]
            else:
                larger = self._reverse.parts(*block)
            for arcs in larger:
                self._add(arcs, block[:2], begin)

    def _add(self, larger: LargerArcs, arcs: tuple[int, int], begin: int) -> None:
        """Add those of the vertices from `begin` on."""
        device, graph = self._device, self._graph
        tasks, hits = larger.tasks(device, graph, 2), min(graph.max_out_degree, MOST_HITS)
        rows = (*graph.rows, places_of(graph))
        work = (tasks.size, tasks.words, hits, larger.next, device.stop_flag)
        device.launch(
            "local_counts/triangles.cu",
            "add_triangles",
            (*rows, *larger.arguments, graph.num_vertices, *arcs, *work, self._counts, begin, self._counts.size),
            blocks=tasks.blocks,
            threads=THREADS,
            shared=tasks.shared + 4 * hits,
        )
        self._begun |= self._sums is None  # counts of a part of the vertices are forgotten if something fails
