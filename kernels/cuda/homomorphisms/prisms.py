"""Prisms on the device: bitmap tables, and launches of ``prisms.cu``."""

from longwall.kernels.cuda.device import Device, units_that_fit
from longwall.kernels.cuda.homomorphisms.block_counter import CONTROL_BYTES, BlockCounter
from longwall.kernels.interface.graph_arrays import GraphArrays

_BLOCKS = 4  # per multiprocessor
_LISTS = 4  # of a block, with an entry for every vertex


class CudaPrismCounter(BlockCounter):
    """A table, and lists of vertices, for each block over a range of largest vertices; see ``prisms.cu``."""

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        xp, n, smaller = device.xp, graph.num_vertices, graph.max_out_degree
        width = (smaller + 31) // 32
        rows = min(n, smaller * graph.max_degree // 2)  # vertices that two neighbours of a have
        inner_words = smaller * width
        store_words = max(inner_words + rows * width, 1)
        blocks = units_that_fit(device.multiprocessors * _BLOCKS, 4 * (_LISTS * n + store_words), memory)
        workspace = (
            xp.zeros(blocks * _LISTS * n, xp.uint32),
            *(xp.empty(blocks * store_words, xp.uint32), store_words, inner_words),
        )
        super().__init__(
            device,
            "homomorphisms/prisms.cu",
            "count_prisms",
            (*graph.rows, n),
            workspace,
            blocks=blocks,
            shared=CONTROL_BYTES,
        )
