"""Twins: vertices that have the same neighbours, such as the leaves of a hub.

Exchanging two twins is an automorphism of the graph, so all counts around one of them are also those of the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longwall.storage.graph.graph import Graph

_ARCS_AT_ONCE = 1 << 18
VERTEX_BYTES = 48
"""Bytes of a vertex while twins are looked for."""
ARC_BYTES = 40
"""Bytes of an arc of those that are compared at once."""


@dataclass(frozen=True)
class Twins:
    """The twins of a graph.

    Attributes
    ----------
    first : int64[num_vertices]
        The first of the twins of every vertex, which may be the vertex itself.
    numbers : uint32[num_vertices]
        For the first of a class of twins, the size of the class; 0 for the others.
    """

    first: NDArray[np.int64]
    numbers: NDArray[np.uint32]

    def give(self, rows: NDArray[np.int64]) -> None:
        """Copy the numbers of the first twin to the others, in each row."""
        others = np.flatnonzero(self.numbers == 0)
        for row in rows:
            row[others] = row[self.first[others]]


def arcs_at_once(graph: Graph) -> int:
    """Return the most arcs that are compared at once."""
    return max(graph.stats.max_degree, _ARCS_AT_ONCE)


def twins_of(graph: Graph) -> Twins:
    """Find the twins: lists of neighbours with equal hashes are compared with the first one of them."""
    degrees, hashes = np.diff(graph.indptr), _hashes(graph)
    order = np.lexsort((hashes, degrees))  # stable: the first twin comes first
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(hashes[order]) != 0) | (np.diff(degrees[order]) != 0)
    first = np.empty(len(order), np.int64)
    first[order] = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    for vertices in _pieces(graph, np.flatnonzero(first != np.arange(len(first)))):
        lengths = degrees[vertices]
        places = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        own, other = (
            graph.indices[np.repeat(graph.indptr[some], lengths) + places] for some in (vertices, first[vertices])
        )
        differ = np.add.reduceat((own != other).astype(np.int64), np.cumsum(lengths) - lengths)
        first[vertices] = np.where(differ == 0, first[vertices], vertices)
    return Twins(first, np.bincount(first, minlength=len(first)).astype(np.uint32))


def _hashes(graph: Graph) -> NDArray[np.uint64]:
    """Return a hash of the neighbours of every vertex: the sum of their mixed numbers."""
    words = np.arange(1, graph.num_vertices + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    words ^= words >> np.uint64(31)
    hashes = np.empty(graph.num_vertices, np.uint64)
    for vertices in _pieces(graph, np.arange(graph.num_vertices)):
        first, last = int(vertices[0]), int(vertices[-1]) + 1
        begin = int(graph.indptr[first])
        values = words[np.asarray(graph.indices[begin : int(graph.indptr[last])])]
        hashes[first:last] = np.add.reduceat(values, np.asarray(graph.indptr[first:last]) - begin)
    return hashes


def _pieces(graph: Graph, vertices: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut vertices into pieces, each with at most as many arcs as are compared at once."""
    ends = np.cumsum(graph.degrees_of(vertices))
    begin, most = 0, arcs_at_once(graph)
    while begin < len(vertices):
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + most, side="right"))
        yield vertices[begin:end]
        begin = end
