"""How many bytes will be read of every page of the adjacency (GAMMA, Definition 4.1); see ``page_bytes.cu``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import Device
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import RowReads

Array = Any  # a CuPy array


def bytes_per_page(device: Device, graph: GraphArrays, reads: Sequence[RowReads], page_arcs: int) -> NDArray[np.uint64]:
    """Count the bytes that will be read of every page."""
    xp = device.xp
    sums = xp.zeros((2, -(-graph.num_arcs // page_arcs)), np.uint64)
    ends, steps = sums[0], sums[1]
    for read in reads:
        vertices = xp.ascontiguousarray(read.vertices)
        n = int(vertices.size)
        if n:
            out = (*_prefix(xp, read.prefix), int(read.part), read.times, page_arcs, ends, steps)
            device.launch_over(
                "page_bytes.cu",
                "add_rows",
                n,
                (graph.indptr, graph.split, vertices, n, *out),
            )
    device.synchronize()  # as in launch.exact
    found: NDArray[np.uint64]
    found, more = sums.get()
    found += np.cumsum(more, out=more)
    return found


def _prefix(xp: Any, prefix: Array | None) -> tuple[Any, int, int]:
    """Arguments of the kernel for a prefix: where it is, how many columns, and how far apart these lie."""
    if prefix is None:
        return np.uintp(0), 0, 0
    if prefix.strides[1] != prefix.itemsize:
        prefix = xp.ascontiguousarray(prefix)
    return prefix, prefix.shape[0], prefix.strides[0] // prefix.itemsize
