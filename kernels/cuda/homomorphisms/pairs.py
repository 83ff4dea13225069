"""What is beside pairs of vertices on the device: bitmap tables, and launches of ``pairs.cu``."""

from longwall.kernels.cuda.device import THREADS, WARP, Device, units_that_fit
from longwall.kernels.cuda.homomorphisms.block_counter import CONTROL_BYTES, BlockCounter, table_words
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.sources import compiles
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import CodegreePattern, largest_part

_BLOCKS = 4  # per multiprocessor


def pair_header(codegree: CodegreePattern) -> str:
    """Write the ``generated.cuh`` that ``pairs.cu`` includes."""
    return constants({"kCodegree": codegree, "kSymmetric": int(codegree.symmetric), "kCommon": codegree.common})


@compiles(lambda codegree: [("homomorphisms/pairs.cu", pair_header(codegree))])
class CudaPairCounter(BlockCounter):
    """A table, and counters of wedges, for each block over a range of vertices a; see ``pairs.cu``."""

    def __init__(self, device: Device, graph: GraphArrays, codegree: CodegreePattern, memory: int):
        xp, n, longest = device.xp, graph.num_vertices, max(graph.max_degree, 1)
        words, store_words = table_words(device, longest, longest, _BLOCKS)
        closed = longest if codegree == CodegreePattern.ENDS else 1
        vectors = THREADS // WARP * 3 * longest
        ends = 4 if codegree == CodegreePattern.STAR else 3
        square = longest * longest if codegree.has_codegrees else 1
        each = 4 * (ends * n + vectors + square + store_words) + 8 * closed
        blocks = units_that_fit(device.multiprocessors * _BLOCKS, each, memory)
        require_fits(largest_part(graph.num_arcs, longest), 63, "the number of maps beside a pair")
        workspace = (
            *(xp.zeros(blocks * ends * n, xp.uint32), ends),
            *(xp.empty(blocks * closed, xp.uint64), closed),
            *(xp.empty(blocks * vectors, xp.uint32), longest),
            *(xp.empty(blocks * square, xp.uint32), square),
            *(words, xp.empty(max(blocks * store_words, 1), xp.uint32), store_words),
        )
        super().__init__(
            device,
            "homomorphisms/pairs.cu",
            "count_pairs",
            (graph.indptr, graph.indices, n),
            workspace,
            blocks=blocks,
            shared=CONTROL_BYTES + 4 * words,
            generated=pair_header(codegree),
        )
