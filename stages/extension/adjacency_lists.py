"""Read adjacency lists, one after the other, wherever the adjacency is.

Where not all of a graph is on the device, the lists are recorded as reads of its pages first. What lies in host memory
is then copied to the device, each list once, in the order of the vertices, which is that of the pages: on an H200 the
host link is seven times as fast for reads in this order as for reads at random.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads

Array = Any  # a NumPy or a CuPy array

_COPIED_BLOCKS = 4  # blocks that are copied at once, as long as none is in work


def read_lists(
    graph: GraphArrays, owners: Array, level: int, beside: Sequence[RowReads], block: int, xp: Any
) -> Iterator[tuple[Array, Array]]:
    """Read the neighbours of vertices, in order.

    Parameters
    ----------
    graph
        The data graph; every vertex has a neighbour.
    owners : uint32[n]
        The vertices, of which there are some.
    level
        The level of a table that they are read for.
    beside
        What else of the adjacency will be read meanwhile.
    block
        The most neighbours that are given at once.
    xp
        The module of all arrays: numpy or cupy.

    Yields
    ------
    lists : int64[m]
        Positions in `owners`, ascending; the reader may change them.
    neighbours : uint32[m]
        A neighbour of each of these owners.

    Notes
    -----
    A list takes up to 120 bytes and an arc of the block 36. A list that is copied takes 4 bytes an arc, once however
    many owners it has.
    """
    begins, sizes, values = graph.indptr[owners], degrees(graph, owners), graph.indices
    if graph.pages is not None:
        if graph.pages.staged:
            distinct, place = xp.unique(owners, return_inverse=True)
            graph.pages.touch(level, [RowReads(distinct, NeighbourRange.ALL), *beside])
            begins, values = _copied(graph, distinct, _COPIED_BLOCKS * block, xp)
            begins = begins[place]
            del distinct, place
        else:
            graph.pages.touch(level, [RowReads(owners, NeighbourRange.ALL), *beside])
    for lists, arcs in list_arcs(begins, sizes, block, xp):
        yield lists, values[arcs]


def degrees(graph: GraphArrays, vertices: Array) -> Array:
    """How many neighbours vertices have: int64[len(vertices)]."""
    return graph.indptr[vertices.astype("int64") + 1] - graph.indptr[vertices]


def is_edge(graph: GraphArrays, first: Array, second: Array, xp: Any) -> Array:
    """Whether pairs of vertices are adjacent; see `find_arcs`."""
    return find_arcs(graph, first, second, xp) >= 0


def find_arcs(graph: GraphArrays, first: Array, second: Array, xp: Any) -> Array:
    """Return the arcs of pairs of vertices, -1 where they are not adjacent: int64[k].

    There is one binary search per pair, all in step.
    """
    low = graph.indptr[first]
    end = high = graph.indptr[first.astype(xp.int64) + 1]
    for _ in range(graph.max_degree.bit_length() + 1):
        middle = (low + high) >> 1
        smaller = (low < high) & (graph.indices[xp.minimum(middle, graph.num_arcs - 1)] < second)
        high = xp.where(smaller, high, xp.minimum(middle, high))
        low = xp.where(smaller, middle + 1, low)
    found = (low < end) & (graph.indices[xp.minimum(low, graph.num_arcs - 1)] == second)
    return xp.where(found, low, -1)


def _copied(graph: GraphArrays, vertices: Array, block: int, xp: Any) -> tuple[Array, Array]:
    """The lists of vertices one behind the other, and where they begin there."""
    sizes = degrees(graph, vertices)
    ends = xp.cumsum(sizes)
    values = xp.empty(int(ends[-1]), dtype=xp.uint32)
    at = 0
    for _, arcs in list_arcs(graph.indptr[vertices], sizes, block, xp):
        values[at : at + arcs.size] = graph.indices[arcs]
        at += arcs.size
    ends -= sizes
    return ends, values


def list_arcs(begins: Array, sizes: Array, block: int, xp: Any) -> Iterator[tuple[Array, Array]]:
    """The numbers of lists and their arcs, int64 each, `block` at a time; no list is empty."""
    ends = xp.cumsum(sizes)
    shift = begins - ends
    shift += sizes
    total = int(ends[-1])
    for begin in range(0, total, block):
        end = min(begin + block, total)
        first, last = (int(i) for i in xp.searchsorted(ends, xp.asarray([begin, end - 1]), side="right"))
        # No list is empty, so each end but the last begins one more.
        lists = xp.zeros(end - begin, dtype=xp.int64)
        lists[ends[first:last] - begin] = 1
        xp.cumsum(lists, out=lists)
        lists += first
        arcs = xp.arange(begin, end)
        arcs += shift[lists]
        yield lists, arcs
