"""4-cycles on the device: wedge counters, and launches of ``four_cycles.cu`` and ``column_cycles.cu``."""

from collections.abc import Callable, Iterable
from typing import Any

from longwall.kernels.cuda.device import WARP, Device, exact, units_that_fit
from longwall.kernels.cuda.runtime.constants import LIGHT_WEDGES
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Targets

Array = Any  # a CuPy array

_WARPS = 8  # per block of the kernel for light vertices
_MANY = 1 << 15  # wedges from which on a vertex' ends are counted window by window
_LARGEST_NARROW = (1 << 16) - 1  # neighbours, where counters have 16 bits
_VERTICES_SHARE = 8  # the part of a counter's memory that its range of vertices has
_MOST_COLUMN_ARCS = (1 << 32) - 1  # whose places are numbers of 32 bits
_VERTEX_BYTES = 12  # of a vertex of that range: its wedges, and its number if they are many


class _WedgeCounter:
    """Vertices by their wedges: one with many is a block's work, the others are a warp's."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        require_fits((graph.num_arcs // 2) ** 2 // 2, 64, "the number of 4-cycles")
        self._device, self._graph = device, graph
        self._most = max(min(graph.num_vertices, memory // _VERTICES_SHARE // _VERTEX_BYTES), 1)
        self._sizes = device.xp.empty(self._most, device.xp.int64)
        self._heavy = device.xp.empty(self._most, device.xp.uint32)

    def _count(
        self, source: str, arrays: tuple[Any, ...], last: int, table: tuple[Any, ...], blocks: int, result: Array
    ) -> None:
        """Count for a range of vertices, which `arrays` end with the first of; `table` begins with its window."""
        device, sizes = self._device, self._sizes
        light_root, heavy_number, num_heavy = device.xp.zeros((3, 1), device.xp.uint32)
        heavy, end = (self._heavy, num_heavy), (device.stop_flag, result)
        light, threads = device.multiprocessors * 2, _WARPS * WARP
        device.launch(source, "measure_wedges", (*arrays, last, sizes, *heavy), blocks=2 * light, threads=threads)
        device.launch(
            source,
            "count_heavy",
            (*arrays, sizes, *heavy, *table, heavy_number, *end),
            blocks=min(blocks, last - arrays[-1]),
            threads=1024,
            shared=(table[0] + 4) * 4,
        )
        device.launch(
            source,
            "count_light",
            (*arrays, last, sizes, light_root, *end),
            blocks=light,
            threads=threads,
            shared=2 * 2 * LIGHT_WEDGES * _WARPS * 4,
        )


class CudaFourCycleCounter(_WedgeCounter):
    """Wedge counters of blocks; see ``four_cycles.cu``."""

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        super().__init__(device, graph, memory)
        n, most = graph.num_vertices, device.shared_memory // 4 - 4
        window = min(n, most)
        beyond = n if n > most else 0
        blocks_each = 2 if (window + 4) * 8 + 4096 < device.shared_memory else 1
        memory -= self._most * _VERTEX_BYTES
        self._blocks = units_that_fit(device.multiprocessors * blocks_each, beyond * 4, memory)
        store = device.xp.zeros(max(self._blocks * beyond, 1), device.xp.uint32)
        self._table = window, n, _MANY, int(graph.max_degree <= _LARGEST_NARROW), store

    def count(self, first: int, last: int) -> int:
        """Count the 4-cycles of a range of vertices."""
        return exact(self.start(first, last))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernels. Return what :func:`longwall.kernels.cuda.device.exact` fetches."""
        result = self._device.result()
        for begin in range(first, last, self._most):
            arrays = (*self._graph.rows, begin)
            end = min(begin + self._most, last)
            self._count("local_counts/four_cycles.cu", arrays, end, self._table, self._blocks, result)
        return result


class CudaColumnCycleCounter(_WedgeCounter):
    """Columns of the adjacency, and counters in shared memory; see ``column_cycles.cu``.

    Attributes
    ----------
    arc_capacity
        The most arcs that the columns of a range may have.
    """

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        super().__init__(device, graph, memory)
        n = graph.num_vertices
        left = memory - self._most * _VERTEX_BYTES - 4 * n
        if left < 4 * max(graph.max_degree, 1):
            raise WorkspaceTooLarge(memory - left + 4 * max(graph.max_degree, 1))
        self.arc_capacity = min(left // 4, max(graph.num_arcs // 2, 1), _MOST_COLUMN_ARCS)
        self._ends = device.xp.empty(n, device.xp.uint32)
        self._arcs = device.xp.empty(self.arc_capacity, device.xp.uint32)

    def count(self, first: int, last: int, rows: Callable[[], Iterable[Targets]] | None = None) -> int:
        """Count the 4-cycles of a range of vertices, while lists are streamed; None: all are there."""
        graph, xp = self._graph, self._device.xp
        n = graph.num_vertices
        ends = self._ends[: max(n - first - 1, 0)]
        if not ends.size:
            return 0
        source, arrays = "local_counts/column_cycles.cu", (*graph.rows, places_of(graph))
        self._device.launch_over(source, "measure_columns", ends.size, (*arrays, n, first, last, ends))
        xp.cumsum(ends, dtype=xp.uint32, out=ends)
        self._device.launch_over(source, "copy_columns", ends.size, (*arrays, n, first, last, ends, self._arcs))
        window, blocks = self._device.shared_memory // 4 - 4, self._device.multiprocessors
        result = self._device.result()
        for begin, end in rows() if rows else [(first, n)]:
            for start in range(begin, end, self._most):
                columns = (*graph.rows, places_of(graph), self._arcs, ends, first, last, start)
                self._count(source, columns, min(start + self._most, end), (window,), blocks, result)
        return exact(result)
