"""Cycles of five vertices on the device: wedge counters, and launches of ``five_cycles.cu``."""

from longwall.kernels.cuda.device import Device, exact, units_that_fit
from longwall.kernels.interface.graph_arrays import GraphArrays


class CudaFiveCycleCounter:
    """Wedge counters; see ``five_cycles.cu``."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        xp, n = device.xp, graph.num_vertices
        self._device, self._graph = device, graph
        self._window = min(n, device.shared_memory // 8 - 8)
        self._blocks = units_that_fit(device.multiprocessors, 12 * n, memory)
        self._store = xp.zeros(self._blocks * 3 * n, xp.uint32)

    def count(self, first: int, last: int) -> int:
        """Count the 5-cycles of a range of vertices."""
        device, graph = self._device, self._graph
        result = device.result()
        if first < last:
            device.launch(
                "homomorphisms/five_cycles.cu",
                "five_cycles",
                (
                    graph.indptr,
                    graph.indices,
                    graph.split,
                    graph.num_vertices,
                    first,
                    last,
                    self._window,
                    self._store,
                    device.xp.zeros(1, device.xp.uint32),
                    device.stop_flag,
                    result,
                ),
                blocks=min(self._blocks, last - first),
                threads=1024,
                shared=(2 * self._window + 4) * 4,
            )
        return exact(result)
