"""Prisms on the device: bitmap tables, and launches of ``prisms.cu``."""

from longwall.kernels.cuda.device import THREADS, Device, fetch_sum, units_that_fit
from longwall.kernels.interface.graph_arrays import GraphArrays

_BLOCKS = 4  # per multiprocessor
_CONTROL_BYTES = 16
_LISTS = 4  # of a block, with an entry for every vertex


def prism_counter(device: Device, graph: GraphArrays, memory: int) -> "CudaPrismCounter":
    """Make a counter of prisms."""
    return CudaPrismCounter(device, graph, memory)


class CudaPrismCounter:
    """A table, and lists of vertices, for each block; see ``prisms.cu``."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        xp, n, smaller = device.xp, graph.num_vertices, graph.max_out_degree
        self._device, self._graph = device, graph
        width = (smaller + 31) // 32
        rows = min(n, smaller * graph.max_degree // 2)  # vertices that two neighbours of a have
        self._inner_words = smaller * width
        self._store_words = max(self._inner_words + rows * width, 1)
        each = 4 * (_LISTS * n + self._store_words)
        self._blocks = units_that_fit(device.multiprocessors * _BLOCKS, each, memory)
        self._vertices = xp.zeros(self._blocks * _LISTS * n, xp.uint32)
        self._store = xp.empty(self._blocks * self._store_words, xp.uint32)

    def count(self, first: int, last: int) -> int:
        """Count those whose largest vertex lies in a range of vertices."""
        device, graph = self._device, self._graph
        result = device.result()
        if first < last:
            device.launch(
                "homomorphisms/prisms.cu",
                "count_prisms",
                (
                    graph.indptr,
                    graph.indices,
                    graph.split,
                    graph.num_vertices,
                    first,
                    last,
                    self._vertices,
                    self._store,
                    self._store_words,
                    self._inner_words,
                    device.xp.zeros(1, device.xp.uint32),
                    device.stop_flag,
                    result,
                ),
                blocks=min(self._blocks, last - first),
                threads=THREADS,
                shared=_CONTROL_BYTES,
            )
        return fetch_sum(result)
