"""How many bytes will be read of every page of the adjacency (GAMMA, Definition 4.1)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.kernels.jit.compile import compiled

_SMALLER, _LARGER = int(NeighbourRange.SMALLER), int(NeighbourRange.LARGER)


@compiled
def _is_shared(prefix, i):
    """Whether a position has the prefix of the one before; without columns none has."""
    if i == 0:
        return False
    shared = prefix.shape[0] > 0
    for column in range(prefix.shape[0]):
        shared &= prefix[column, i] == prefix[column, i - 1]
    return shared


@compiled(
    "const(i8[::1]), const(i8[::1]), const(u4[:]), const(u4[:,:]), i8, i8, i8, i8[::1], i8[::1]",
    "const(i8[::1]), const(i8[::1]), const(i8[:]), const(u4[:,:]), i8, i8, i8, i8[::1], i8[::1]",
)
def _add_rows(indptr, split, vertices, prefix, part, times, page_arcs, ends, steps):
    """Add the bytes of rows to `ends` (of their first and last pages) and `steps` (of the pages between).

    `steps` holds differences from page to page, so that a row costs the same however many pages it spans.
    """
    arc_bytes = 4 * times
    for i in range(vertices.size):
        if _is_shared(prefix, i):
            continue
        vertex = np.int64(vertices[i])
        begin = split[vertex] if part == _LARGER else indptr[vertex]
        end = split[vertex] if part == _SMALLER else indptr[vertex + 1]
        if begin == end:
            continue
        page = begin // page_arcs
        last = (end - 1) // page_arcs
        if page == last:
            ends[page] += (end - begin) * arc_bytes
        else:
            ends[page] += ((page + 1) * page_arcs - begin) * arc_bytes
            ends[last] += (end - last * page_arcs) * arc_bytes
            steps[page + 1] += page_arcs * arc_bytes
            steps[last] -= page_arcs * arc_bytes


def bytes_per_page(
    device: CpuDevice,  # noqa: ARG001
    graph: GraphArrays,
    reads: Sequence[RowReads],
    page_arcs: int,
) -> NDArray[np.uint64]:
    """Count the bytes that will be read of every page."""
    ends, steps = np.zeros((2, -(-graph.num_arcs // page_arcs)), np.int64)
    for read in reads:
        prefix = np.empty((0, 0), np.uint32) if read.prefix is None else read.prefix
        _add_rows(graph.indptr, graph.split, read.vertices, prefix, int(read.part), read.times, page_arcs, ends, steps)
    ends += np.cumsum(steps, out=steps)
    return ends.view(np.uint64)
