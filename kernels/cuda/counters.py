"""Counters with kernels of their own: triangles, cliques and 4-cycles, over ranges of roots."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.launch import WARP, Device, exact, units_that_fit
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.interface.engine import EngineLost, GraphArrays

Array = Any  # a CuPy array

_WARPS = 8  # warps per block of the kernels for light vertices

# Out-degree up to which a vertex is one warp's work, for triangles and cliques; kLight. On small graphs the warps with
# the longest rows end last: 5-cliques of ca-AstroPh take 1.6 ms with 64 and 0.4 ms with 24. Large ones hardly care.
_LIGHT = 16
# Table rows that are one block's work above. Every part builds its table anew: 6-cliques of R-MAT scale 20 take 2.7 s
# with 32 rows and 2.1 s with 256.
_ROWS_PER_PART = 512
_MOST_PASSES = 16  # over the edges, to count triangles per vertex
_VERTICES_SHARE = 8  # the part of a 4-cycle counter's memory that its range of vertices has


def _heavy_tasks(
    device: Device, graph: GraphArrays, slots: tuple[int, int], light: int, rows: int, num_tasks: Array
) -> Array:
    """List what is dealt to whole blocks; see ``heavy_vertices.cu``. Takes half a byte for each of the slots."""
    first, last = slots
    # A vertex has a task at most for each `light` of its slots, which only of the first and the last may be elsewhere.
    most = (last - first) // light + 2 * (graph.max_out_degree // rows + 1)
    tasks = device.xp.empty((most, 2), device.xp.uint32)
    device.launch(
        "heavy_vertices.cu",
        "find_heavy",
        (graph.indptr, graph.split, graph.num_vertices, first, last, light, rows, tasks, num_tasks),
        blocks=device.multiprocessors * 4,
        threads=_WARPS * WARP,
    )
    return tasks


class _Triangles:
    """What counting triangles in all and per vertex share; see ``triangles.cu``."""

    workspace_bytes = 0

    _WARP_SLOTS, _BLOCK_SLOTS = 1024, 8192  # kWarpSlots, kBlockSlots
    _BLOCKS = 6  # per multiprocessor

    def __init__(self, device: Device, graph: GraphArrays):
        self._device, self._graph = device, graph

    def _work(self, first: int, last: int) -> tuple[Array, Array]:
        """Allocate what a range takes: the tasks of its heavy vertices; their number, and how far both kernels are."""
        state = self._device.xp.zeros((3, 1), self._device.xp.uint32)
        longest = self._graph.max_out_degree + 1
        return _heavy_tasks(self._device, self._graph, (first, last), _LIGHT, longest, state[0]), state

    def _run(
        self, prefix: str, first: int, last: int, work: tuple[Array, Array], tables: int, out: tuple[Array, ...]
    ) -> None:
        device, graph = self._device, self._graph
        tasks, (num_tasks, heavy_task, light_root) = work
        arrays = (graph.indptr, graph.indices, graph.split, places_of(graph))
        device.launch(
            "triangles.cu",
            f"{prefix}_heavy",
            (*arrays, tasks, num_tasks, first, last, heavy_task, device.stop_flag, *out),
            blocks=min(device.multiprocessors * self._BLOCKS // tables, len(tasks)),
            threads=_WARPS * WARP,
            shared=(4 + self._BLOCK_SLOTS * tables) * 4,
        )
        device.launch(
            "triangles.cu",
            f"{prefix}_light",
            (*arrays, graph.num_vertices, first, last, light_root, device.stop_flag, *out),
            blocks=device.multiprocessors * self._BLOCKS // tables,
            threads=_WARPS * WARP,
            shared=self._WARP_SLOTS * _WARPS * tables * 4,
        )


class CudaTriangleCounter(_Triangles):
    """Counts triangles; its tables are in shared memory."""

    def count(self, first: int, last: int) -> int:
        """Count the triangles of a range of slots."""
        return exact(self.start(first, last))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernels; gives what :func:`longwall.kernels.cuda.runtime.launch.exact` fetches."""
        result = self._device.result()
        self._run("count", first, last, self._work(first, last), 1, (result,))
        return result


class CudaTriangleVertexCounter(_Triangles):
    """Counts triangles per vertex; for as many vertices at a time as there is room for, a part of them at least."""

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        super().__init__(device, graph)
        n = graph.num_vertices
        least = -(-n // _MOST_PASSES)
        self._counts = device.xp.zeros(least * units_that_fit(_MOST_PASSES, 8 * least, memory), np.int64)
        self._sums: NDArray[np.int64] | None = None if self._counts.size >= n else np.zeros(n, np.int64)
        self.workspace_bytes = 0 if self._sums is None else self._sums.nbytes + self._counts.nbytes

    def add(self, first: int, last: int) -> None:
        """Add the triangles of a range of slots."""
        work = self._work(first, last)  # all that is allocated: what fails before anything is added is tried again
        try:
            self._add_all(first, last, work)
        except Exception as error:
            raise EngineLost(f"triangles of a range were added in part: {error}") from error

    def counts(self) -> NDArray[np.int64]:
        """Triangles per vertex so far."""
        if self._sums is not None:
            return self._sums
        host: NDArray[np.int64] = self._counts[: self._graph.num_vertices].get()
        return host

    def _add_all(self, first: int, last: int, work: tuple[Array, Array]) -> None:
        if self._sums is None:
            self._add(first, last, work, 0)
            return
        for begin in range(0, self._sums.size, self._counts.size):
            self._counts.fill(0)
            work[1][1:] = 0
            self._add(first, last, work, begin)
            some = self._sums[begin : begin + self._counts.size]
            some += self._counts[: some.size].get()

    def _add(self, first: int, last: int, work: tuple[Array, Array], begin: int) -> None:
        """Add those of the vertices from `begin` on."""
        self._run("add", first, last, work, 2, (self._counts, begin, self._counts.size))
        self._device.synchronize()


def clique_header(k: int) -> str:
    """Write the ``generated.cuh`` that ``cliques.cu`` includes."""
    return constants({"kCliqueSize": k, "kLight": _LIGHT, "kRowsPerPart": _ROWS_PER_PART})


class CudaCliqueCounter:
    """Bitmap tables for counting k-cliques, k >= 4; see ``cliques.cu``."""

    workspace_bytes = 0

    _THREADS = 512
    _BLOCKS = 2  # per multiprocessor
    _QUEUE = 64  # kQueue

    def __init__(self, device: Device, graph: GraphArrays, k: int, memory: int):
        self._device, self._graph = device, graph
        self._generated = clique_header(k)
        self._heavy_from = max(_LIGHT, k - 2)
        walked = max(k - 5, 0)
        light_words = (_LIGHT + 31) // 32
        table_words = 16 * light_words * (light_words + 1)
        self._light_shared = _WARPS * (table_words + self._QUEUE + walked * light_words) * 4
        # Tables are in shared memory as far as they fit there, and in global memory beyond.
        warps, width = self._THREADS // WARP, (graph.max_out_degree + 31) // 32
        group, rest = divmod(graph.max_out_degree, 32)
        words = warps * (self._QUEUE + walked * width) + (16 * group + rest) * (group + 1)
        most = device.shared_memory // self._BLOCKS // 4 - 512
        self._shared_words = min(words + 4, most)
        self._store_words = words if words + 4 > most else 0
        wanted = device.multiprocessors * self._BLOCKS
        self._blocks = units_that_fit(wanted, self._store_words * 4, memory)
        self._store = device.xp.empty(max(self._blocks * self._store_words, 1), device.xp.uint32)

    def count(self, first: int, last: int) -> int:
        """Count the cliques of a range of slots."""
        return exact(self.start(first, last))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernels; gives what :func:`longwall.kernels.cuda.runtime.launch.exact` fetches."""
        device, graph = self._device, self._graph
        result = device.result()
        light_root, heavy_task, num_tasks = device.xp.zeros((3, 1), device.xp.uint32)
        arrays = (graph.indptr, graph.indices, graph.split, places_of(graph))
        tasks = _heavy_tasks(device, graph, (first, last), self._heavy_from, _ROWS_PER_PART, num_tasks)
        device.launch(
            "cliques.cu",
            "count_heavy",
            (
                *arrays,
                tasks,
                num_tasks,
                first,
                last,
                self._shared_words,
                self._store,
                self._store_words,
                heavy_task,
                device.stop_flag,
                result,
            ),
            blocks=min(self._blocks, len(tasks)),
            threads=self._THREADS,
            shared=self._shared_words * 4,
            generated=self._generated,
        )
        device.launch(
            "cliques.cu",
            "count_light",
            (*arrays, graph.num_vertices, first, last, light_root, device.stop_flag, result),
            blocks=device.multiprocessors * 4,
            threads=_WARPS * WARP,
            shared=self._light_shared,
            generated=self._generated,
        )
        return result


class CudaFourCycleCounter:
    """Wedge counters; see ``four_cycles.cu``."""

    workspace_bytes = 0

    _LIGHT = 512  # kLight
    _THREADS = 1024
    _VERTEX_BYTES = 12  # of a range that is counted at once: its wedges, and its number if they are many

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        xp, n = device.xp, graph.num_vertices
        most = device.shared_memory // 4 - 4
        self._window = min(n, most)
        beyond = n if n > most else 0
        blocks_each = 2 if (self._window + 4) * 8 + 4096 < device.shared_memory else 1
        self._most = max(min(n, memory // _VERTICES_SHARE // self._VERTEX_BYTES), 1)
        memory -= self._most * self._VERTEX_BYTES
        self._blocks = units_that_fit(device.multiprocessors * blocks_each, beyond * 4, memory)
        self._store = xp.zeros(max(self._blocks * beyond, 1), xp.uint32)

    def count(self, first: int, last: int) -> int:
        """Count the 4-cycles of a range of vertices."""
        return exact(self.start(first, last))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernels; gives what :func:`longwall.kernels.cuda.runtime.launch.exact` fetches."""
        result = self._device.result()
        for begin in range(first, last, self._most):
            self._run(begin, min(begin + self._most, last), result)
        return result

    def _run(self, first: int, last: int, result: Array) -> None:
        device, graph = self._device, self._graph
        light_root, heavy_number, num_heavy = device.xp.zeros((3, 1), device.xp.uint32)
        sizes = device.xp.empty(last - first, device.xp.int64)
        heavy = device.xp.empty(last - first, device.xp.uint32)
        arrays = (graph.indptr, graph.indices, graph.split)
        device.launch(
            "four_cycles.cu",
            "measure_wedges",
            (*arrays, first, last, sizes, heavy, num_heavy),
            blocks=device.multiprocessors * 4,
            threads=_WARPS * WARP,
        )
        device.launch(
            "four_cycles.cu",
            "count_heavy",
            (
                *arrays,
                first,
                sizes,
                heavy,
                num_heavy,
                graph.num_vertices,
                self._window,
                self._store,
                heavy_number,
                device.stop_flag,
                result,
            ),
            blocks=min(self._blocks, last - first),
            threads=self._THREADS,
            shared=(self._window + 4) * 4,
        )
        device.launch(
            "four_cycles.cu",
            "count_light",
            (*arrays, sizes, first, last, light_root, device.stop_flag, result),
            blocks=device.multiprocessors * 2,
            threads=_WARPS * WARP,
            shared=2 * 2 * self._LIGHT * _WARPS * 4,
        )
