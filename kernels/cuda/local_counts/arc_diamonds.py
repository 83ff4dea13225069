"""Diamonds on the device: triangles of arcs, and pairs of them; launches of ``arc_diamonds.cu``."""

from collections.abc import Iterable
from typing import Any

from longwall.kernels.cuda.runtime.launch import WARP, Device, sum_of_parts
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.cuda.triangles import BLOCK_SLOTS, BLOCKS, LIGHT, WARP_SLOTS, WARPS, heavy_tasks
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import ArcBlock, Corner

Array = Any  # a CuPy array

_COUNT_BYTES = 4
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
        share = 1 if graph.pages is None else _PAGED_SHARE
        self.arc_room = min(int(share * memory) // _COUNT_BYTES, max(graph.num_arcs, 1))
        if not self.arc_room:
            raise WorkspaceTooLarge(_COUNT_BYTES)
        self._device, self._graph = device, graph
        self._counts = device.xp.empty(self.arc_room, device.xp.uint32)

    def count(self, first: int, last: int, blocks: Iterable[ArcBlock] | None = None) -> int:
        """Count the pairs of triangles at a range of arcs, while lists come in turn; None: all are there."""
        xp = self._device.xp
        counts = self._counts[: last - first]
        counts.fill(0)
        for block in blocks or self._all(first, last):
            self._add(block, (counts, first, last - first))
        parts = xp.zeros(2, xp.uint64)
        self._device.launch_over("arc_diamonds.cu", "add_pairs", last - first, (counts, last - first, parts))
        return sum_of_parts(parts)

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
