"""What is beside pairs of vertices on the device: bitmap tables, and launches of ``pairs.cu``."""

from longwall.kernels.cuda.device import THREADS, WARP, Device, fetch_sum, units_that_fit
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import CodegreePattern, largest_part

_BLOCKS = 4  # per multiprocessor
_CONTROL_BYTES = 16


class CudaPairCounter:
    """A table, and counters of wedges, for each block; see ``pairs.cu``."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, codegree: CodegreePattern, memory: int):
        xp, n, longest = device.xp, graph.num_vertices, max(graph.max_degree, 1)
        self._device, self._graph, self._codegree, self._longest = device, graph, codegree, longest
        most = longest * ((longest + 31) // 32 | 1)
        self._words = min(most, max(device.shared_memory // _BLOCKS - 1024 - _CONTROL_BYTES, 0) // 4)
        self._store_words = most if most > self._words else 0
        self._closed = longest if codegree == CodegreePattern.ENDS else 1
        vectors = THREADS // WARP * 3 * longest
        self._ends = 4 if codegree == CodegreePattern.STAR else 3
        self._square = longest * longest if codegree.has_codegrees else 1
        each = 4 * (self._ends * n + vectors + self._square + self._store_words) + 8 * self._closed
        self._blocks = units_that_fit(device.multiprocessors * _BLOCKS, each, memory)
        require_fits(largest_part(graph.num_arcs, longest), 63, "the number of maps beside a pair")
        self._arrays = (
            xp.zeros(self._blocks * self._ends * n, xp.uint32),
            xp.empty(self._blocks * self._closed, xp.uint64),
            xp.empty(self._blocks * vectors, xp.uint32),
            xp.empty(self._blocks * self._square, xp.uint32),
            xp.empty(max(self._blocks * self._store_words, 1), xp.uint32),
        )

    def count(self, first: int, last: int) -> int:
        """Count the maps whose a lies in a range of vertices."""
        device, graph, codegree = self._device, self._graph, self._codegree
        ends, closed, vectors, codegrees, store = self._arrays
        result = device.result()
        if first < last:
            device.launch(
                "homomorphisms/pairs.cu",
                "count_pairs",
                (
                    graph.indptr,
                    graph.indices,
                    graph.num_vertices,
                    int(codegree),
                    int(codegree.symmetric),
                    codegree.common,
                    first,
                    last,
                    ends,
                    self._ends,
                    closed,
                    self._closed,
                    vectors,
                    self._longest,
                    codegrees,
                    self._square,
                    self._words,
                    store,
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
