"""Counters with kernels of their own: triangles, cliques and 4-cycles, over ranges of roots."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.launch import WARP, Device, exact, units_that_fit
from longwall.kernels.cuda.module import constants
from longwall.kernels.engine import GraphArrays

Array = Any  # a CuPy array

_WARPS = 8  # warps per block of the kernels for light vertices

# Out-degree up to which a vertex is one warp's work, for triangles and cliques; kLight. On small graphs the warps with
# the longest rows end last: 5-cliques of ca-AstroPh take 1.6 ms with 64 and 0.4 ms with 24. Large ones hardly care.
_LIGHT = 16
# Table rows that are one block's work above. Every part builds its table anew: 6-cliques of R-MAT scale 20 take 2.7 s
# with 32 rows and 2.1 s with 256.
_ROWS_PER_PART = 512


class _HeavyVertices:
    """The vertices whose work is dealt to whole blocks: those of more than `light` out-neighbours."""

    def __init__(self, xp: Any, graph: GraphArrays, light: int):
        chosen = xp.flatnonzero(graph.split - graph.indptr[:-1] > light)
        self.vertices = chosen.astype(xp.uint32)
        self.begins = graph.indptr[chosen].get()
        self.ends = graph.split[chosen].get()

    def overlapping(self, first: int, last: int) -> slice:
        """Those whose out-neighbours stand in the slots first to last - 1."""
        begin = int(np.searchsorted(self.ends, first, side="right"))
        return slice(begin, max(int(np.searchsorted(self.begins, last, side="left")), begin))


class _Triangles:
    """What counting triangles in all and per vertex share; see ``triangles.cu``."""

    host_bytes = 0

    _WARP_SLOTS, _BLOCK_SLOTS = 1024, 8192  # kWarpSlots, kBlockSlots
    _BLOCKS = 6  # per multiprocessor

    def __init__(self, device: Device, graph: GraphArrays):
        self._device, self._graph = device, graph
        self._heavy = _HeavyVertices(device.xp, graph, _LIGHT)

    def _run(self, prefix: str, first: int, last: int, tables: int, out: tuple[Array, ...]) -> None:
        device, graph = self._device, self._graph
        next_root = device.xp.zeros(2, device.xp.uint32)
        heavy = self._heavy.overlapping(first, last)
        arrays = (graph.indptr, graph.indices, graph.split)
        if heavy.stop > heavy.start:
            device.launch(
                "triangles.cu",
                f"{prefix}_heavy",
                (
                    *arrays,
                    self._heavy.vertices[heavy],
                    heavy.stop - heavy.start,
                    first,
                    last,
                    next_root[1:],
                    device.stop_flag,
                    *out,
                ),
                blocks=min(device.multiprocessors * self._BLOCKS // tables, heavy.stop - heavy.start),
                threads=_WARPS * WARP,
                shared=(4 + self._BLOCK_SLOTS * tables) * 4,
            )
        device.launch(
            "triangles.cu",
            f"{prefix}_light",
            (*arrays, graph.num_vertices, first, last, next_root, device.stop_flag, *out),
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
        """Launch the kernels; gives what :func:`longwall.kernels.cuda.launch.exact` fetches."""
        result = self._device.result()
        self._run("count", first, last, 1, (result,))
        return result


class CudaTriangleVertexCounter(_Triangles):
    """Counts triangles per vertex."""

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        units_that_fit(1, graph.num_vertices * 8, memory)
        super().__init__(device, graph)
        self._counts = device.xp.zeros(graph.num_vertices, device.xp.int64)

    def add(self, first: int, last: int) -> None:
        """Add the triangles of a range of slots."""
        self._run("add", first, last, 2, (self._counts,))
        self._device.synchronize()

    def counts(self) -> NDArray[np.int64]:
        """Triangles per vertex so far."""
        host: NDArray[np.int64] = self._counts.get()
        return host


def clique_header(k: int) -> str:
    """Write the ``generated.cuh`` that ``cliques.cu`` includes."""
    return constants({"kCliqueSize": k, "kLight": _LIGHT})


class CudaCliqueCounter:
    """Bitmap tables for counting k-cliques, k >= 4; see ``cliques.cu``."""

    host_bytes = 0

    _THREADS = 512
    _BLOCKS = 2  # per multiprocessor
    _QUEUE = 64  # kQueue

    def __init__(self, device: Device, graph: GraphArrays, k: int, memory: int):
        self._device, self._graph = device, graph
        self._generated = clique_header(k)
        self._heavy = _HeavyVertices(device.xp, graph, max(_LIGHT, k - 2))
        parts = -(-(self._heavy.ends - self._heavy.begins) // _ROWS_PER_PART)
        self._first_task = np.concatenate([np.zeros(1, np.int64), np.cumsum(parts)])
        self._device_first_task = device.xp.asarray(self._first_task)
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
        """Launch the kernels; gives what :func:`longwall.kernels.cuda.launch.exact` fetches."""
        device, graph = self._device, self._graph
        result = device.result()
        next_root = device.xp.zeros(2, device.xp.uint32)
        arrays = (graph.indptr, graph.indices, graph.split)
        heavy = self._heavy.overlapping(first, last)
        tasks = int(self._first_task[heavy.stop] - self._first_task[heavy.start])
        if tasks:
            device.launch(
                "cliques.cu",
                "count_heavy",
                (
                    *arrays,
                    self._heavy.vertices[heavy],
                    self._device_first_task[heavy.start : heavy.stop + 1],
                    heavy.stop - heavy.start,
                    first,
                    last,
                    self._shared_words,
                    self._store,
                    self._store_words,
                    next_root[1:],
                    device.stop_flag,
                    result,
                ),
                blocks=min(self._blocks, tasks),
                threads=self._THREADS,
                shared=self._shared_words * 4,
                generated=self._generated,
            )
        device.launch(
            "cliques.cu",
            "count_light",
            (*arrays, graph.num_vertices, first, last, next_root, device.stop_flag, result),
            blocks=device.multiprocessors * 4,
            threads=_WARPS * WARP,
            shared=self._light_shared,
            generated=self._generated,
        )
        return result


class CudaFourCycleCounter:
    """Wedge counters; see ``wedges.cu``."""

    host_bytes = 0

    _LIGHT = 512  # kLight
    _THREADS = 1024

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        xp, n = device.xp, graph.num_vertices
        most = device.shared_memory // 4 - 4
        self._window = min(n, most)
        beyond = n if n > most else 0
        blocks_each = 2 if (self._window + 4) * 8 + 4096 < device.shared_memory else 1
        self._blocks = units_that_fit(device.multiprocessors * blocks_each, beyond * 4, memory)
        self._store = xp.zeros(max(self._blocks * beyond, 1), xp.uint32)
        self._sizes = xp.empty(n, xp.int64)
        device.launch(
            "wedges.cu",
            "measure_wedges",
            (graph.indptr, graph.indices, graph.split, n, self._sizes),
            blocks=device.multiprocessors * 4,
            threads=_WARPS * WARP,
        )
        heavy = xp.flatnonzero(self._sizes > self._LIGHT).astype(xp.uint32)
        self._heavy, self._host_heavy = heavy, heavy.get()

    def count(self, first: int, last: int) -> int:
        """Count the 4-cycles of a range of vertices."""
        return exact(self.start(first, last))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernels; gives what :func:`longwall.kernels.cuda.launch.exact` fetches."""
        device, graph = self._device, self._graph
        result = device.result()
        next_root = device.xp.zeros(2, device.xp.uint32)
        arrays = (graph.indptr, graph.indices, graph.split, self._sizes)
        begin, end = (int(x) for x in np.searchsorted(self._host_heavy, [first, last]))
        if end > begin:
            device.launch(
                "wedges.cu",
                "count_heavy",
                (
                    *arrays,
                    self._heavy[begin:end],
                    end - begin,
                    graph.num_vertices,
                    self._window,
                    self._store,
                    next_root[1:],
                    device.stop_flag,
                    result,
                ),
                blocks=min(self._blocks, end - begin),
                threads=self._THREADS,
                shared=(self._window + 4) * 4,
            )
        device.launch(
            "wedges.cu",
            "count_light",
            (*arrays, first, last, next_root, device.stop_flag, result),
            blocks=device.multiprocessors * 2,
            threads=_WARPS * WARP,
            shared=2 * 2 * self._LIGHT * _WARPS * 4,
        )
        return result
