"""Wheels of four spokes on the device: counters of walks, and launches of ``wheels.cu``."""

from longwall.kernels.cuda.device import THREADS, WARP, Device, units_that_fit
from longwall.kernels.cuda.homomorphisms.block_counter import CONTROL_BYTES, BlockCounter
from longwall.kernels.cuda.runtime.constants import WARP_COUNTERS
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowTables

_BLOCKS = 8  # per multiprocessor


class CudaWheelCounter(BlockCounter):
    """A counter for every neighbour of a vertex, for each block over a range of arcs; see ``wheels.cu``."""

    def __init__(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int):
        window = min(graph.max_degree, (device.shared_memory - CONTROL_BYTES) // 4)
        words = max(THREADS // WARP * WARP_COUNTERS, window)
        store_words = graph.max_degree if window < graph.max_degree else 0
        blocks = units_that_fit(device.multiprocessors * _BLOCKS, 4 * store_words, memory)
        store = device.xp.zeros(max(blocks * store_words, 1), device.xp.uint32)
        super().__init__(
            device,
            "homomorphisms/wheels.cu",
            "count_wheels",
            (graph.indptr, graph.num_vertices, tables.common_indptr, tables.common),
            (window, words, store, store_words),
            blocks=blocks,
            shared=CONTROL_BYTES + 4 * words,
        )
