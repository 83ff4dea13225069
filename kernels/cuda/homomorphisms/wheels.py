"""Wheels of four spokes on the device: counters of walks, and launches of ``wheels.cu``."""

from longwall.kernels.cuda.device import THREADS, WARP, Device, fetch_sum, units_that_fit
from longwall.kernels.cuda.runtime.constants import WARP_COUNTERS
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowTables

_BLOCKS = 8  # per multiprocessor
_CONTROL_BYTES = 16


class CudaWheelCounter:
    """A counter for every neighbour of a vertex, for each block; see ``wheels.cu``."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int):
        self._device, self._graph, self._tables = device, graph, tables
        self._words = THREADS // WARP * WARP_COUNTERS
        most = (device.shared_memory - _CONTROL_BYTES) // 4
        self._window = min(graph.max_degree, most)
        self._words = max(self._words, self._window)
        self._store_words = graph.max_degree if self._window < graph.max_degree else 0
        wanted = device.multiprocessors * _BLOCKS
        self._blocks = units_that_fit(wanted, 4 * self._store_words, memory)
        self._store = device.xp.zeros(max(self._blocks * self._store_words, 1), device.xp.uint32)

    def count(self, first: int, last: int) -> int:
        """Count the wheels of a range of arcs."""
        device, graph, tables = self._device, self._graph, self._tables
        result = device.result()
        if first < last:
            device.launch(
                "homomorphisms/wheels.cu",
                "count_wheels",
                (
                    graph.indptr,
                    graph.num_vertices,
                    tables.common_indptr,
                    tables.common,
                    first,
                    last,
                    self._window,
                    self._words,
                    self._store,
                    self._store_words,
                    device.xp.zeros(1, device.xp.uint32),
                    device.stop_flag,
                    result,
                ),
                blocks=self._blocks,
                threads=THREADS,
                shared=_CONTROL_BYTES + 4 * self._words,
            )
        return fetch_sum(result)
