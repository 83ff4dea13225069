"""What is among common neighbours on the device: bitmap tables, and launches of ``inner_counts.cu``."""

from typing import Any

from longwall.kernels.cuda.device import WARP, Device, units_that_fit
from longwall.kernels.cuda.homomorphisms.block_counter import CONTROL_BYTES, table_words
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import Inner, RowTables

Array = Any  # a CuPy array

_BLOCKS = 8  # per multiprocessor
_WARPS = 4  # of a block


def inner_counts(device: Device, graph: GraphArrays, tables: RowTables, inner: Inner, out: Array, memory: int) -> None:
    """Count among common neighbours."""
    if not graph.num_arcs:
        return
    # Two edges cover each pattern that is mapped to the common neighbours.
    require_fits(min(tables.longest**4, graph.num_arcs**2), 63, "the number of maps to common neighbours")
    xp, longest = device.xp, tables.longest
    out.data.memset_async(0, out.nbytes)
    words, store_words = table_words(device, longest, longest, _BLOCKS)
    blocks = units_that_fit(device.multiprocessors * _BLOCKS, 4 * store_words, memory)
    arrays = (graph.indptr, graph.split, graph.num_vertices, graph.num_arcs)
    lists = (tables.common_indptr, tables.common, tables.reverse)
    work = (
        words,
        xp.empty(max(blocks * store_words, 1), xp.uint32),
        store_words,
        xp.zeros(1, xp.uint64),
        device.stop_flag,
        out,
    )
    device.launch(
        "homomorphisms/inner_counts.cu",
        "count_inner",
        (*arrays, *lists, int(inner), *work),
        blocks=min(blocks, graph.num_arcs),
        threads=_WARPS * WARP,
        shared=CONTROL_BYTES + 4 * words,
    )
