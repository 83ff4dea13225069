"""Cycles of five vertices on the device: wedge counters, and launches of ``five_cycles.cu``."""

from longwall.kernels.cuda.device import Device, exact, units_that_fit
from longwall.kernels.cuda.homomorphisms.block_counter import BlockCounter
from longwall.kernels.interface.graph_arrays import GraphArrays


class CudaFiveCycleCounter(BlockCounter):
    """Wedge counters over a range of vertices; see ``five_cycles.cu``."""

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        n, xp = graph.num_vertices, device.xp
        window = min(n, device.shared_memory // 8 - 8)
        store = 2 * n if window < n else 0
        blocks = units_that_fit(device.multiprocessors, 4 * (store + n), memory)
        super().__init__(
            device,
            "homomorphisms/five_cycles.cu",
            "five_cycles",
            (*graph.rows, n),
            (window, xp.zeros(max(blocks * store, 1), xp.uint32), xp.empty(blocks * n, xp.uint32)),
            blocks=blocks,
            threads=1024,
            shared=(2 * window + 4) * 4,
        )

    def count(self, first: int, last: int) -> int:
        """Count the 5-cycles of a range of vertices."""
        return exact(self.start(first, last))
