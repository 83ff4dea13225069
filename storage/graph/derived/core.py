"""Cores: the largest part of a graph in which every vertex has a given number of neighbours, as a graph of its own.

A map of a pattern whose vertices have c neighbours or more sends all of them into the c-core, since the image of each
has as many neighbours among the images. So such a pattern is in the core as often as in the graph (the peeling is that
of Batagelj and Zaversnik, 2003, at one level). Vertices that are left are ranked anew by the degrees that are left.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.degree_histogram import NO_RANK, DegreeHistogram
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import GraphStats, WedgeSample, summarize_graph

_SAMPLE_BYTES = 4 << 20  # of random wedges
_AT_ONCE = 1 << 20  # vertices that are peeled, or written, between two looks whether the run is to end

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]


class Core(NamedTuple):
    """A core of a graph."""

    graph: Graph
    """The core, with the ids of the input."""
    vertices: UInt32s
    """uint32[n]: its vertices as vertices of the whole graph."""

    @property
    def nbytes(self) -> int:
        """Bytes of what it does not share with the whole graph."""
        graph = self.graph
        own = (graph.indptr, graph.indices, graph.split, graph.original_ids, self.vertices)
        return sum(array.nbytes for array in own) + (0 if graph.labels is None else graph.labels.nbytes)


def peel_bytes(graph: Graph) -> int:
    """Return the bytes that `core_degrees` takes, its result included."""
    return 8 * graph.num_vertices


def core_bytes(graph: Graph, degrees: Int32s) -> int:
    """Return the bytes that `core_graph` takes, for the graph that it makes and beside it."""
    vertices, arcs = int(np.count_nonzero(degrees)), int(degrees.sum(dtype=np.int64))
    return 4 * graph.num_vertices + 4 * arcs + 64 * vertices + _SAMPLE_BYTES


def low_vertices(graph: Graph, least: int) -> int:
    """Return how many vertices have fewer than `least` neighbours."""
    ranks = range(graph.num_vertices)  # degrees descend
    return len(ranks) - bisect_left(ranks, 1 - least, key=lambda rank: -int(graph.degrees_of(np.array([rank]))[0]))


def core_degrees(graph: Graph, least: int, stop: Callable[[], bool] = lambda: False) -> Int32s:
    """Peel vertices of fewer than `least` neighbours until there are none.

    Parameters
    ----------
    graph
        The graph.
    least
        Neighbours that are left to every vertex.
    stop
        Whether the work is to end; what is returned means nothing then.

    Returns
    -------
    int32[n]
        How many neighbours each vertex has in the core, 0 where it is not there.
    """
    degrees = np.diff(graph.indptr).astype(np.int32)
    queue = np.empty(graph.num_vertices, np.uint32)
    end = _few(degrees, least, queue)
    begin = 0
    while begin < end and not stop():
        last = min(end, begin + _AT_ONCE)
        end = _peel(graph.indptr, graph.indices, least, degrees, queue, begin, last, end)
        begin = last
    degrees[degrees < least] = 0
    return degrees


def core_graph(graph: Graph, degrees: Int32s, least: int) -> Core:
    """Make the graph of a core that is not empty.

    Parameters
    ----------
    graph
        The whole graph.
    degrees : int32[n]
        As `core_degrees` returned them for `least`.
    least
        Neighbours that every vertex of the core has at least.

    Returns
    -------
    Core
        The graph has the labels and the ids of the whole one, without labels of edges and transactions.
    """
    return part_graph(graph, degrees, graph.labels, f"{least}-core of {graph.content_hash}")


def part_graph(graph: Graph, degrees: Int32s, labels: npt.NDArray[np.int32] | None, content_hash: str) -> Core:
    """Make a graph of some vertices of another one, not none, and all edges between them.

    Parameters
    ----------
    graph
        The whole graph.
    degrees : int32[n]
        How many of these vertices each of them is adjacent to, which is one at least; 0 for the others.
    labels : int32[n] or None
        Labels of the vertices of the whole graph.
    content_hash
        What the graph that is made has in place of a hash.
    """
    kept = np.flatnonzero(degrees).astype(np.uint32)
    kept = kept[np.argsort(-degrees[kept], kind="stable")]
    ranks = np.full(graph.num_vertices, NO_RANK, np.uint32)
    ranks[kept] = np.arange(len(kept), dtype=np.uint32)
    indptr = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(degrees[kept], out=indptr[1:])
    indices, split, following = np.empty(int(indptr[-1]), np.uint32), indptr[:-1].copy(), indptr[:-1].copy()
    for first in range(0, len(kept), _AT_ONCE):
        _write(graph.indptr, graph.indices, kept, ranks, first, min(first + _AT_ONCE, len(kept)), indices, following)
    _find_splits(indptr, indices, split)
    found = Graph(
        indptr=indptr,
        indices=indices,
        split=split,
        original_ids=graph.original_ids[kept],
        labels=None if labels is None else labels[kept],
        edge_labels=None,
        stats=graph.stats,
        content_hash=content_hash,
        name_starts=graph.name_starts,
        name_bytes=graph.name_bytes,
        label_names=graph.label_names,
    )
    return Core(replace(found, stats=_stats(found)), kept)


def _stats(graph: Graph) -> GraphStats:
    degrees, counts = np.unique(np.diff(graph.indptr), return_counts=True)
    histogram = DegreeHistogram(degrees[::-1].astype(np.int64), counts[::-1].astype(np.int64))
    wedges = WedgeSample(histogram)
    wedges.look(0, graph.indices)
    wedges.prepare()
    wedges.test(0, graph.indices)
    labels: Counter[int] = Counter()
    if graph.labels is not None:
        values, times = np.unique(graph.labels, return_counts=True)
        labels.update(dict(zip(values.tolist(), times.tolist(), strict=True)))
    most = int((graph.split - graph.indptr[:-1]).max())
    return summarize_graph(histogram, most, labels, wedges.closed_fraction)


@compiled("i4[::1], i8, u4[::1]")
def _few(degrees: Int32s, least: int, queue: UInt32s) -> int:
    """List the vertices with fewer than `least` neighbours; return how many."""
    found = 0
    for v in range(degrees.size):
        if degrees[v] < least:
            queue[found] = v
            found += 1
    return found


@compiled("i8[::1], u4[::1], i8, i4[::1], u4[::1], i8, i8, i8")
def _peel(
    indptr: Int64s, indices: UInt32s, least: int, degrees: Int32s, queue: UInt32s, begin: int, last: int, end: int
) -> int:
    """Take the vertices queue[begin:last] away; return where the queue ends then."""
    for at in range(begin, last):
        v = queue[at]
        for j in range(indptr[v], indptr[v + 1]):
            u = indices[j]
            if degrees[u] >= least:
                degrees[u] -= 1
                if degrees[u] < least:
                    queue[end] = u
                    end += 1
    return end


@compiled("i8[::1], u4[::1], u4[::1], u4[::1], i8, i8, u4[::1], i8[::1]")
def _write(
    indptr: Int64s,
    indices: UInt32s,
    kept: UInt32s,
    ranks: UInt32s,
    first: int,
    last: int,
    core: UInt32s,
    following: Int64s,
) -> None:
    """Append the vertices `first` to `last` - 1 of a core to the rows of their neighbours, which ascend so."""
    for u in range(first, last):
        v = kept[u]
        for j in range(indptr[v], indptr[v + 1]):
            w = ranks[indices[j]]
            if w != NO_RANK:
                core[following[w]] = u
                following[w] += 1


@compiled("i8[::1], u4[::1], i8[::1]")
def _find_splits(indptr: Int64s, indices: UInt32s, split: Int64s) -> None:
    """Move `split`, which has where the rows begin, to the first neighbour of a larger id."""
    for v in range(split.size):
        while split[v] < indptr[v + 1] and indices[split[v]] < v:
            split[v] += 1
