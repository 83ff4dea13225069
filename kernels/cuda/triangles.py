"""Triangles on the device, in all or per vertex: launches of ``triangles.cu``.

Those of most arcs of a resident graph are one launch, of ``warp_triangles.cu`` or ``row_pairs.cu``.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.homomorphisms.diamonds import RowPairs, launch_state
from longwall.kernels.cuda.local_counts.arc_triangles import arc_tasks
from longwall.kernels.cuda.runtime.launch import THREADS, WARP, Device, sum_of_parts, units_that_fit
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.interface.engine import EngineLost
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Block, Targets

Array = Any  # a CuPy array

WARPS = 8  # per block of the kernels for light vertices, here and for cliques
# Out-degree up to which a vertex is one warp's work, for triangles and cliques; kLight. On small graphs the warps with
# the longest rows end last: 5-cliques of ca-AstroPh take 1.6 ms with 64 and 0.4 ms with 24.
# It makes little difference on large graphs.
LIGHT = 16
WARP_SLOTS, BLOCK_SLOTS = 1024, 8192  # kWarpSlots, kBlockSlots
BLOCKS = 3  # per multiprocessor, of the kernels whose tables have counts
_WHOLE_FROM = 4  # a part of the arcs that is worth a look at each of them
_SHORT, _SHARE = 128, 4  # most smaller neighbours of a vertex where each is a warp's work; kShare
_SHORT_BLOCKS = 6  # per multiprocessor, of that kernel: all at once
_MOST_PASSES = 16  # over the edges, to count triangles per vertex


def triangle_counter(device: Device, graph: GraphArrays, memory: int) -> "CudaTriangleCounter":  # noqa: ARG001
    """Make a counter of triangles."""
    return CudaTriangleCounter(device, graph)


def triangle_vertex_counter(device: Device, graph: GraphArrays, memory: int) -> "CudaTriangleVertexCounter":
    """Make a counter of triangles per vertex; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    return CudaTriangleVertexCounter(device, graph, memory)


def heavy_tasks(
    device: Device, graph: GraphArrays, arcs: tuple[int, int], light: int, rows: int, num_tasks: Array
) -> Array:
    """List the tasks of whole blocks; see ``heavy_vertices.cu``. Takes half a byte for each arc."""
    first, last = arcs
    # A vertex has a task at most for each `light` of its arcs; only the first and the last vertex have arcs elsewhere.
    most = (last - first) // light + 2 * (graph.max_out_degree // rows + 1)
    tasks = device.xp.empty((most, 2), device.xp.uint32)
    device.launch(
        "heavy_vertices.cu",
        "find_heavy",
        (graph.indptr, graph.split, graph.num_vertices, first, last, light, rows, tasks, num_tasks),
        blocks=device.multiprocessors * 4,
        threads=WARPS * WARP,
    )
    return tasks


class ShortTriangles:
    """Counts triangles of a graph without long lists of smaller neighbours; see ``warp_triangles.cu``."""

    def __init__(self, device: Device, graph: GraphArrays):
        self._device, self._graph = device, graph
        self._state, self._result = launch_state(device)
        slots = 1 << (max(_SHARE * graph.max_out_degree, WARP) - 1).bit_length()
        self._slots, self._shared = slots, 16 + 4 * WARPS * (slots + WARP)
        self._blocks = min(device.multiprocessors * _SHORT_BLOCKS, max(-(-graph.num_vertices // WARPS), 1))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernel for a range of arcs; see `RowPairs.start`."""
        graph = self._graph
        arrays = (graph.indptr, graph.indices, graph.split, graph.num_vertices)
        self._device.launch(
            "warp_triangles.cu",
            "count_triangles",
            (*arrays, first, last, self._slots, self._state, self._device.stop_flag, self._result),
            blocks=self._blocks,
            threads=WARPS * WARP,
            shared=self._shared,
        )
        return self._result


class CudaTriangleCounter:
    """Counts triangles; bitmaps are in shared memory."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays):
        self._device, self._graph = device, graph
        self._whole = graph.pages is None and not graph.oriented  # rows with larger neighbours, too, may be read often
        if self._whole:
            short = graph.max_out_degree <= _SHORT and graph.num_arcs < 1 << 32
            self._at_once = ShortTriangles(device, graph) if short else RowPairs(device, graph, "count_triangles")

    def count(self, first: int, last: int, targets: Targets | None = None) -> int:
        """Count the triangles of a range of arcs, or those of its arcs to `targets`."""
        return sum_of_parts(self.start(first, last, targets))

    def count_blocks(self, blocks: Iterable[Block]) -> int:
        """Count the triangles of blocks, while their lists come in turn: the host does not wait for their kernels."""
        if self._whole:
            return sum(self.count(*block) for block in blocks)
        result = self._device.result()
        for first, last, targets in blocks:
            self._launch(first, last, targets, result)
        return sum_of_parts(result)

    def start(self, first: int, last: int, targets: Targets | None = None) -> Array:
        """Launch the kernels. Return what :func:`longwall.kernels.cuda.runtime.launch.sum_of_parts` fetches."""
        if self._whole and targets is None and _WHOLE_FROM * (last - first) >= self._graph.num_arcs:
            return self._at_once.start(first, last)
        result = self._device.result()
        self._launch(first, last, targets, result)
        return result

    def _launch(self, first: int, last: int, targets: Targets | None, result: Array) -> None:
        device, graph = self._device, self._graph
        tasks = arc_tasks(device, graph, last - first)
        device.launch(
            "triangles.cu",
            "count_pairs",
            (
                *(graph.indptr, graph.indices, graph.split, places_of(graph), graph.num_vertices, first, last),
                *(targets or (0, graph.num_vertices)),
                *(tasks.size, tasks.words, device.xp.zeros(1, np.uint32), device.stop_flag, result),
            ),
            blocks=tasks.blocks,
            threads=THREADS,
            shared=tasks.shared,
        )


class CudaTriangleVertexCounter:
    """Counts triangles per vertex; for as many vertices at a time as there is room for, a part of them at least."""

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        n = graph.num_vertices
        least = -(-n // _MOST_PASSES)
        self._counts = device.xp.zeros(least * units_that_fit(_MOST_PASSES, 8 * least, memory), np.int64)
        self._sums: NDArray[np.int64] | None = None if self._counts.size >= n else np.zeros(n, np.int64)
        self.workspace_bytes = 0 if self._sums is None else self._sums.nbytes + self._counts.nbytes

    def add(self, first: int, last: int, targets: Targets | None = None) -> None:
        """Add the triangles of a range of arcs, or those of its arcs to `targets`."""
        work = self._work(first, last)  # all that is allocated: what fails before anything is added is tried again
        try:
            self._add_all((first, last), targets, work)
        except Exception as error:
            raise EngineLost(f"triangles of a range were added in part: {error}") from error

    def counts(self) -> NDArray[np.int64]:
        """Triangles per vertex so far."""
        if self._sums is not None:
            return self._sums
        host: NDArray[np.int64] = self._counts[: self._graph.num_vertices].get()
        return host

    def _work(self, first: int, last: int) -> tuple[Array, Array]:
        """Allocate what a range takes: the tasks of its heavy vertices; their number, and how far both kernels are."""
        state = self._device.xp.zeros((3, 1), self._device.xp.uint32)
        longest = self._graph.max_out_degree + 1
        return heavy_tasks(self._device, self._graph, (first, last), LIGHT, longest, state[0]), state

    def _add_all(self, arcs: tuple[int, int], targets: Targets | None, work: tuple[Array, Array]) -> None:
        if self._sums is None:
            self._add(arcs, targets, work, 0)
            return
        for begin in range(0, self._sums.size, self._counts.size):
            self._counts.fill(0)
            work[1][1:] = 0
            self._add(arcs, targets, work, begin)
            some = self._sums[begin : begin + self._counts.size]
            some += self._counts[: some.size].get()

    def _add(self, arcs: tuple[int, int], targets: Targets | None, work: tuple[Array, Array], begin: int) -> None:
        """Add those of the vertices from `begin` on."""
        device, graph = self._device, self._graph
        low, high = targets or (0, graph.num_vertices)
        tasks, (num_tasks, heavy_task, light_root) = work
        arrays = (graph.indptr, graph.indices, graph.split, places_of(graph))
        out = (self._counts, begin, self._counts.size)
        device.launch(
            "triangles.cu",
            "add_heavy",
            (*arrays, tasks, num_tasks, *arcs, low, high, heavy_task, device.stop_flag, *out),
            blocks=min(device.multiprocessors * BLOCKS, len(tasks)),
            threads=WARPS * WARP,
            shared=(4 + BLOCK_SLOTS * 2) * 4,
        )
        device.launch(
            "triangles.cu",
            "add_light",
            (*arrays, graph.num_vertices, *arcs, low, high, light_root, device.stop_flag, *out),
            blocks=device.multiprocessors * BLOCKS,
            threads=WARPS * WARP,
            shared=WARP_SLOTS * WARPS * 2 * 4,
        )
        device.synchronize()
