"""Cliques of five vertices less an edge on the device: bitmap tables, and launches of ``almost_cliques.cu``."""

from longwall.kernels.cuda.device import THREADS, WARP, Device, units_that_fit
from longwall.kernels.cuda.homomorphisms.block_counter import CONTROL_BYTES, BlockCounter, table_words
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowTables

_BLOCKS = 4  # per multiprocessor


class CudaAlmostCliqueCounter(BlockCounter):
    """A table for each block over a range of vertices; see ``almost_cliques.cu``."""

    def __init__(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int):
        rows = graph.max_out_degree // (THREADS // WARP) + 1  # of a lane, for each of which it looks at some others
        found = rows * (graph.max_out_degree // WARP + 1) * graph.max_degree**2 // 2
        require_fits(found, 64, "the number of pairs at the triangles of a vertex")
        words, store_words = table_words(device, graph.max_out_degree, graph.max_degree, _BLOCKS)
        blocks = units_that_fit(device.multiprocessors * _BLOCKS, 4 * store_words, memory)
        super().__init__(
            device,
            "homomorphisms/almost_cliques.cu",
            "count_almost_cliques",
            (graph.indptr, graph.split, tables.common_indptr, tables.common),
            (words, device.xp.empty(max(blocks * store_words, 1), device.xp.uint32), store_words),
            blocks=blocks,
            shared=CONTROL_BYTES + 4 * words,
        )
