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


def _of_vertices(device: Device, most: int) -> tuple[Array, Array]:
    """Make what is kept of a range of vertices: of the counter's memory, for copies of pages take what is left."""
    return device.xp.empty(most, device.xp.int64), device.xp.empty(most, device.xp.uint32)


def _require_word(graph: GraphArrays) -> None:
    """Refuse graphs with too many 4-cycles: two opposite edges are in at most two, and each has two such pairs."""
    require_fits((graph.num_arcs // 2) ** 2 // 2, 64, "the number of 4-cycles")


class CudaFourCycleCounter:
    """Wedge counters; see ``four_cycles.cu``."""

    workspace_bytes = 0

    _THREADS = 1024

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        _require_word(graph)
        self._device, self._graph = device, graph
        xp, n = device.xp, graph.num_vertices
        most = device.shared_memory // 4 - 4
        self._window = min(n, most)
        beyond = n if n > most else 0
        blocks_each = 2 if (self._window + 4) * 8 + 4096 < device.shared_memory else 1
        self._most = max(min(n, memory // _VERTICES_SHARE // _VERTEX_BYTES), 1)
        memory -= self._most * _VERTEX_BYTES
        self._blocks = units_that_fit(device.multiprocessors * blocks_each, beyond * 4, memory)
        self._store = xp.zeros(max(self._blocks * beyond, 1), xp.uint32)
        self._sizes, self._heavy = _of_vertices(device, self._most)

    def count(self, first: int, last: int) -> int:
        """Count the 4-cycles of a range of vertices."""
        return exact(self.start(first, last))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernels. Return what :func:`longwall.kernels.cuda.device.exact` fetches."""
        result = self._device.result()
        for begin in range(first, last, self._most):
            self._run(begin, min(begin + self._most, last), result)
        return result

    def _run(self, first: int, last: int, result: Array) -> None:
        device, graph = self._device, self._graph
        light_root, heavy_number, num_heavy = device.xp.zeros((3, 1), device.xp.uint32)
        sizes, heavy = self._sizes, self._heavy
        arrays = graph.rows
        device.launch(
            "local_counts/four_cycles.cu",
            "measure_wedges",
            (*arrays, first, last, sizes, heavy, num_heavy),
            blocks=device.multiprocessors * 4,
            threads=_WARPS * WARP,
        )
        device.launch(
            "local_counts/four_cycles.cu",
            "count_heavy",
            (
                *arrays,
                first,
                sizes,
                heavy,
                num_heavy,
                graph.num_vertices,
                self._window,
                _MANY,
                int(graph.max_degree <= _LARGEST_NARROW),
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
            "local_counts/four_cycles.cu",
            "count_light",
            (*arrays, sizes, first, last, light_root, device.stop_flag, result),
            blocks=device.multiprocessors * 2,
            threads=_WARPS * WARP,
            shared=2 * 2 * LIGHT_WEDGES * _WARPS * 4,
        )


class CudaColumnCycleCounter:
    """Columns of the adjacency, and counters in shared memory; see ``column_cycles.cu``.

    Attributes
    ----------
    arc_room
        The most arcs that the columns of a range may have.
    """

    workspace_bytes = 0

    _THREADS = 1024

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        _require_word(graph)
        self._device, self._graph = device, graph
        n = graph.num_vertices
        self._most = max(min(n, memory // _VERTICES_SHARE // _VERTEX_BYTES), 1)
        left = memory - self._most * _VERTEX_BYTES - 4 * n
        if left < 4 * max(graph.max_degree, 1):
            raise WorkspaceTooLarge(memory - left + 4 * max(graph.max_degree, 1))
        self.arc_capacity = min(left // 4, max(graph.num_arcs // 2, 1), _MOST_COLUMN_ARCS)
        self._ends = device.xp.empty(n, device.xp.uint32)
        self._arcs = device.xp.empty(self.arc_capacity, device.xp.uint32)
        self._sizes, self._heavy = _of_vertices(device, self._most)

    def count(self, first: int, last: int, rows: Callable[[], Iterable[Targets]] | None = None) -> int:
        """Count the 4-cycles of a range of vertices, while lists are streamed; None: all are there."""
        graph, xp = self._graph, self._device.xp
        n = graph.num_vertices
        ends = self._ends[: max(n - first - 1, 0)]
        if not ends.size:
            return 0
        arrays = self._arrays()
        self._device.launch_over(
            "local_counts/column_cycles.cu", "measure_columns", ends.size, (*arrays, n, first, last, ends)
        )
        xp.cumsum(ends, dtype=xp.uint32, out=ends)
        self._device.launch_over(
            "local_counts/column_cycles.cu", "copy_columns", ends.size, (*arrays, n, first, last, ends, self._arcs)
        )
        result = self._device.result()
        for begin, end in rows() if rows else [(first, n)]:
            for start in range(begin, end, self._most):
                self._run((self._arcs, ends, first, last), start, min(start + self._most, end), result)
        return exact(result)

    def _arrays(self) -> tuple[Any, ...]:
        return *self._graph.rows, places_of(self._graph)

    def _run(self, columns: tuple[Any, ...], first: int, last: int, result: Array) -> None:
        device = self._device
        light_root, heavy_number, num_heavy = device.xp.zeros((3, 1), device.xp.uint32)
        sizes, heavy = self._sizes, self._heavy
        arrays = (*self._arrays(), *columns, first)
        device.launch(
            "local_counts/column_cycles.cu",
            "measure_wedges",
            (*arrays, last, sizes, heavy, num_heavy),
            blocks=device.multiprocessors * 4,
            threads=_WARPS * WARP,
        )
        window = device.shared_memory // 4 - 4
        device.launch(
            "local_counts/column_cycles.cu",
            "count_heavy",
            (*arrays, sizes, heavy, num_heavy, window, heavy_number, device.stop_flag, result),
            blocks=min(device.multiprocessors, last - first),
            threads=self._THREADS,
            shared=(window + 4) * 4,
        )
        device.launch(
            "local_counts/column_cycles.cu",
            "count_light",
            (*arrays, last, sizes, light_root, device.stop_flag, result),
            blocks=device.multiprocessors * 2,
            threads=_WARPS * WARP,
            shared=2 * 2 * LIGHT_WEDGES * _WARPS * 4,
        )
