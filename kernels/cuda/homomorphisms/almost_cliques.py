"""Cliques of five vertices less an edge on the device: bitmap tables, and launches of ``almost_cliques.cu``."""

from longwall.kernels.cuda.device import THREADS, WARP, Device, fetch_sum, units_that_fit
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowTables

_BLOCKS = 4  # per multiprocessor
_CONTROL_BYTES = 16


class CudaAlmostCliqueCounter:
    """A table for each block; see ``almost_cliques.cu``."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int):
        self._device, self._graph, self._tables = device, graph, tables
        rows = graph.max_out_degree // (THREADS // WARP) + 1  # of a lane, for each of which it looks at some others
        found = rows * (graph.max_out_degree // WARP + 1) * graph.max_degree**2 // 2
        require_fits(found, 64, "the number of pairs at the triangles of a vertex")
        most = graph.max_out_degree * ((graph.max_degree + 31) // 32 | 1)
        self._words = min(most, max(device.shared_memory // _BLOCKS - 1024 - _CONTROL_BYTES, 0) // 4)
        self._store_words = most if most > self._words else 0
        self._blocks = units_that_fit(device.multiprocessors * _BLOCKS, 4 * self._store_words, memory)
        self._store = device.xp.empty(max(self._blocks * self._store_words, 1), device.xp.uint32)

    def count(self, first: int, last: int) -> int:
        """Count those whose largest vertex of degree 4 lies in a range of vertices."""
        device, graph, tables = self._device, self._graph, self._tables
        result = device.result()
        if first < last:
            device.launch(
                "homomorphisms/almost_cliques.cu",
                "count_almost_cliques",
                (
                    graph.indptr,
                    graph.split,
                    tables.common_indptr,
                    tables.common,
                    first,
                    last,
                    self._words,
                    self._store,
                    self._store_words,
                    device.xp.zeros(1, device.xp.uint32),
                    device.stop_flag,
                    result,
                ),
                blocks=min(self._blocks, last - first),
                threads=THREADS,
                shared=_CONTROL_BYTES + 4 * self._words,
            )
        return fetch_sum(result)
