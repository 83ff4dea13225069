"""Diamonds on the device: triangles of arcs, and pairs of them; launches of ``arc_diamonds.cu``."""

from collections.abc import Iterable
from typing import Any

from longwall.kernels.cuda.local_counts.arc_triangles import arc_tasks
from longwall.kernels.cuda.runtime.launch import THREADS, WARP, Device, sum_of_parts
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.cuda.triangles import BLOCK_SLOTS, BLOCKS, LIGHT, WARP_SLOTS, WARPS, heavy_tasks
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import ArcBlock, Corner

Array = Any  # a CuPy array

_COUNT_BYTES = 4
_MOST_HITS = 4096  # out-neighbours of a vertex whose counts are in shared memory
_PAGED_SHARE = 2 / 3  # of the memory, that counts have beside copies of pages: lists are at least as long


def arc_diamond_counter(device: Device, graph: GraphArrays, memory: int) -> "CudaArcDiamondCounter":
    """Make a counter of diamonds; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    return CudaArcDiamondCounter(device, graph, memory)


class CudaArcDiamondCounter:
    """Triangles of the arcs of a range.

    Attributes
    ----------
    arc_room
        The most arcs of a range.
    """

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        self._half = None if graph.oriented or graph.pages is not None else HalfArcs(device, graph)
        if self._half is not None:
            memory -= self._half.nbytes
        share = 1 if graph.pages is None else _PAGED_SHARE
        most = max(graph.num_arcs if self._half is None else self._half.number, 1)
        room = min(int(share * memory) // _COUNT_BYTES, most)
        if room < 1:
            raise WorkspaceTooLarge(_COUNT_BYTES)
        self.arc_room = max(graph.num_arcs, 1) if room == most else room
        self._counts = device.xp.empty(room, device.xp.uint32)

    def count(self, first: int, last: int, blocks: Iterable[ArcBlock] | None = None) -> int:
        """Count the pairs of triangles at a range of arcs, while lists come in turn; None: all are there."""
        if self._half is not None and blocks is None:
            return self._count_whole(self._half, first, last)
        counts = self._counts[: last - first]
        counts.fill(0)
        for block in blocks or self._all(first, last):
            self._add(block, (counts, first, last - first))
        return self._pairs(counts)

    def _pairs(self, counts: Array) -> int:
        parts = self._device.xp.zeros(2, self._device.xp.uint64)
        self._device.launch_over("arc_diamonds.cu", "add_pairs", counts.size, (counts, counts.size, parts))
        return sum_of_parts(parts)

    def _count_whole(self, half: "HalfArcs", first: int, last: int) -> int:
        """Count those of a whole graph: all lists are looked up from their other ends."""
        device, graph = self._device, self._graph
        low, begin = half.place(first)
        _, end = half.place(last)
        if begin >= end:
            return 0
        counts = self._counts[: end - begin]
        counts.fill(0)
        hits = min(graph.max_out_degree, _MOST_HITS)
        tasks = arc_tasks(device, graph, graph.num_arcs, 2)
        device.launch(
            "arc_diamonds.cu",
            "add_triangles",
            (
                *(graph.indptr, graph.indices, graph.split, graph.num_vertices, low),
                *(tasks.size, tasks.words, hits, device.xp.zeros(1, device.xp.uint32), device.stop_flag),
                *(counts, half.starts, begin, end - begin),
            ),
            blocks=tasks.blocks,
            threads=THREADS,
            shared=tasks.shared + 4 * hits,
        )
        return self._pairs(counts)

    def _all(self, first: int, last: int) -> list[ArcBlock]:
        graph, xp = self._graph, self._device.xp
        low = int(xp.searchsorted(graph.indptr, first, side="right")) - 1
        high = int(xp.searchsorted(graph.indptr, last, side="left"))
        begin, end = int(graph.indptr[low]), int(graph.indptr[high])
        if begin == 0 and end == graph.num_arcs:
            return [(0, end, None, Corner.ANY)]
        return [(begin, end, None, Corner.LARGEST), (begin, graph.num_arcs, (low, high), Corner.SMALLER)]

    def _add(self, block: ArcBlock, counts: tuple[Array, int, int]) -> None:
        """Add triangles of the arcs of a block to those of the range."""
        device, graph = self._device, self._graph
        first, last, targets, corner = block
        if first >= last:
            return
        low, high = targets or (0, graph.num_vertices)
        num_tasks, heavy_task, light_root = device.xp.zeros((3, 1), device.xp.uint32)
        tasks = heavy_tasks(device, graph, (first, last), LIGHT, graph.max_out_degree + 1, num_tasks)
        arrays = (graph.indptr, graph.indices, graph.split, places_of(graph))
        where = (*counts, int(Corner.LARGEST in corner), int(Corner.SMALLER in corner))
        device.launch(
            "arc_diamonds.cu",
            "add_heavy",
            (*arrays, tasks, num_tasks, first, last, low, high, heavy_task, device.stop_flag, *where),
            blocks=min(device.multiprocessors * BLOCKS, len(tasks)),
            threads=WARPS * WARP,
            shared=(4 + BLOCK_SLOTS * 2) * 4,
        )
        device.launch(
            "arc_diamonds.cu",
            "add_light",
            (*arrays, graph.num_vertices, first, last, low, high, light_root, device.stop_flag, *where),
            blocks=device.multiprocessors * BLOCKS,
            threads=WARPS * WARP,
            shared=WARP_SLOTS * WARPS * 2 * 4,
        )


class HalfArcs:
    """The places of the arcs to smaller neighbours, where these alone are counted.

    Attributes
    ----------
    starts : int64[n + 1]
        Where those of each vertex begin.
    number
        How many there are.
    """

    def __init__(self, device: Device, graph: GraphArrays):
        xp = device.xp
        self._xp, self._graph = xp, graph
        self.starts = xp.zeros(graph.num_vertices + 1, xp.int64)
        xp.subtract(graph.split, graph.indptr[:-1], out=self.starts[1:])
        xp.cumsum(self.starts, out=self.starts)
        self.number = int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the device that they take."""
        return int(self.starts.nbytes)

    def place(self, arc: int) -> tuple[int, int]:
        """Return the vertex of an arc of the graph, and where the arc is among these or, if it is none, the next one."""
        graph = self._graph
        if arc >= graph.num_arcs:
            return graph.num_vertices, self.number
        vertex = int(self._xp.searchsorted(graph.indptr, arc, side="right")) - 1
        begin, end = int(graph.indptr[vertex]), int(graph.split[vertex])
        return vertex, int(self.starts[vertex]) + min(arc, end) - begin

