"""The degeneracy order: peel vertices of the least degree, round by round."""

from typing import Any

import numpy as np

from longwall.kernels.cuda.device import WARP, Device
from longwall.kernels.cuda.runtime.constants import NO_LEVEL, PEEL_CONTROL_WORDS, PEEL_NEXT_LEVEL
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.maximal_cliques import DegeneracyOrder
from longwall.kernels.interface.workspaces import NARROW

_SOURCE = "maximal_cliques/order.cu"
_PEEL_THREADS = 1024  # of a block, one per multiprocessor: blocks wait for each other


def degeneracy_order(device: Device, graph: GraphArrays, later: Any = None) -> DegeneracyOrder:
    """Order the vertices by peeling."""
    xp, n = device.xp, graph.num_vertices
    rank, indptr = xp.empty(n, np.uint32), xp.zeros(n + 1, np.int64)
    degree, queue = xp.empty(n, np.uint32), xp.empty(n, np.uint32)
    control = xp.zeros(PEEL_CONTROL_WORDS, np.uint32)
    control[PEEL_NEXT_LEVEL] = NO_LEVEL
    device.launch(
        _SOURCE,
        "peel",
        (graph.indptr, graph.indices, n, degree, queue, rank, control, device.stop_flag),
        blocks=min(max(-(-n // _PEEL_THREADS), 1), device.multiprocessors),
        threads=_PEEL_THREADS,
    )
    del degree, queue
    keys = xp.empty(n, np.uint64)
    device.launch_over(_SOURCE, "write_keys", n, (rank, n, keys))
    keys.sort()
    device.launch_over(_SOURCE, "write_ranks", n, (keys, n, rank))
    del keys
    largest = xp.zeros(2, np.uint64)
    rows = (graph.indptr, graph.indices, rank, n)
    device.launch_over(_SOURCE, "count_later", n * WARP, (*rows, NARROW, indptr, largest))
    xp.cumsum(indptr, out=indptr)
    indices = xp.empty(graph.num_arcs // 2, np.uint32) if later is None else later
    device.launch_over(_SOURCE, "write_later", n * WARP, (*rows, indptr, indices))
    device.synchronize()
    degeneracy, words = largest.get().tolist()
    return DegeneracyOrder(rank, indptr, indices, degeneracy, words)
