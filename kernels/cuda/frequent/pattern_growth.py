"""Grow patterns by one edge on the device: the kernels of ``pattern_growth.cu``.

The calls are described in :mod:`longwall.kernels.interface.pattern_growth`.
"""

from typing import Any

from longwall.kernels.cuda.device import WARP, Device
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.constants import NO_ROW
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.pattern_growth import GrowthBatch, Images, TypedGraph

Array = Any  # a CuPy array

_SOURCE = "frequent/pattern_growth.cu"
_LOCAL_COUNTS = 4096  # whose counters fit the shared memory that a block has without asking


def growth_header(vertices: int) -> str:
    """Constants for patterns of up to `vertices` vertices; few different ones, as each is compiled."""
    return constants({"kWidth": 1 << max((vertices - 1).bit_length(), 2)})


class CudaGrower:
    """Workspace of one worker; see :class:`longwall.kernels.interface.pattern_growth.GrowKernel`.

    Parameters
    ----------
    device
        The device.
    graph
        The graph, in arrays that kernels can read.
    memory
        Bytes that it may take: 4 for every vertex of the graph and of the largest pattern, if images are marked.
    """

    counting_bytes = marking_bytes = 0

    def __init__(self, device: Device, graph: TypedGraph, memory: int):
        self._device, self._graph, self._memory = device, graph, memory

    def count(self, rows: Array, growth: GrowthBatch, counts: Array) -> None:
        """Add how many rows the grown patterns will have."""
        local = counts.size if counts.size <= _LOCAL_COUNTS else 0
        after = (local, counts.view(self._device.xp.uint64))
        self._launch("count_extensions", rows, growth, after, rows.shape[1], shared=8 * local)

    def mark_groups(self, rows: Array, growth: GrowthBatch, alive: Array, images: Array) -> None:
        """Set the bit of each transaction that has a row."""
        after = (self._graph.groups, alive, images.shape[1], images)
        self._launch("mark_groups", rows, growth, after, rows.shape[1])

    def mark_images(self, rows: Array, growth: GrowthBatch, images: Images) -> None:
        """Add images."""
        xp, n, width = self._device.xp, self._graph.num_vertices, growth.labels.shape[1]
        at_once = self._memory // (4 * n * width)
        if not at_once:
            raise WorkspaceTooLarge(4 * n * width)
        first = int(growth.first[0])
        low, high = int(rows[0, 0]) - first, int(rows[0, -1]) - first + 1
        bounds = xp.searchsorted(rows[0], xp.arange(low + first, high + first + 1, dtype=xp.uint32)).get()
        into = (*images.arrays(), *images.sets.shape[1:])
        for pattern in range(low, high, at_once):
            last = min(pattern + at_once, high)
            begin, end = int(bounds[pattern - low]), int(bounds[last - low])
            seen = xp.full((last - pattern) * width * n, NO_ROW, xp.uint32)
            self._launch("mark_rows", rows, growth, (begin, end, n, pattern, seen, *into), end - begin)
            self._launch("mark_runs", rows, growth, (n, seen.size, seen, *into), seen.size)
            self._launch("mark_rest", rows, growth, (begin, end, n, pattern, seen, *into), end - begin)

    def sizes(self, sets: Array) -> Array:
        """Count the bits of sets; a warp has a set."""
        counts = self._device.xp.empty(sets.shape[:-1], self._device.xp.int64)
        self._device.launch_over(
            _SOURCE,
            "count_bits",
            WARP * counts.size,
            (sets, counts.size, sets.shape[-1], counts),
            generated=growth_header(2),
        )
        return counts

    def child_counts(self, rows: Array, growth: GrowthBatch, alive: Array) -> Array:
        """How many rows each row grows into."""
        counts = self._device.xp.zeros(rows.shape[1], self._device.xp.int64)
        self._launch("count_children", rows, growth, (alive, counts), rows.shape[1])
        return counts

    def children(self, rows: Array, growth: GrowthBatch, alive: Array, offsets: Array) -> tuple[Array, Array]:
        """Grow rows."""
        xp = self._device.xp
        total = int(offsets[-1])
        numbers, vertices = xp.zeros(total, xp.int32), xp.zeros(total, xp.uint32)
        self._launch("write_children", rows, growth, (alive, offsets, numbers, vertices), WARP * rows.shape[1])
        return numbers, vertices

    def grouped(self, rows: Array, offsets: Array, numbers: Array, vertices: Array, first: int) -> Array:
        """Group grown rows by sorting; all keys are different, so that the order within a number is kept."""
        xp, total = self._device.xp, int(vertices.size)
        place = xp.arange(total, dtype=xp.int64)
        order = xp.argsort(numbers.astype(xp.int64) * total + place)
        parents = (xp.searchsorted(offsets, place, side="right") - 1)[order]
        columns = xp.empty((rows.shape[0] + 1, total), xp.uint32)
        columns[0] = numbers[order] + first
        for level in range(1, rows.shape[0]):
            columns[level] = rows[level][parents]
        columns[-1] = vertices[order]
        return columns

    def _launch(
        self, function: str, rows: Array, growth: GrowthBatch, after: tuple[Any, ...], threads: int, shared: int = 0
    ) -> None:
        graph, width = self._graph, growth.labels.shape[1]
        self._device.launch_over(
            _SOURCE,
            function,
            threads,
            (
                graph.runs, graph.types, graph.begins, graph.indices, graph.targets,
                width, growth.first, growth.sizes, growth.columns, growth.labels, growth.path_sizes, growth.paths,
                growth.known, growth.forward, growth.backward,
                rows, rows.shape[1], *after, self._device.stop_flag,
            ),
            shared=shared,
            generated=growth_header(width),
        )  # fmt: skip
        # The result is read next. Reading while it runs would hold the driver's lock, and keep `interrupt` out.
        self._device.synchronize()
