"""Ranges of vertices whose bitmap tables have room at once, and what is read of the lists for them.

A range is joined with block after block of its neighbours' lists, so that all lists before it pass once for each range:
tables have the most bytes of what is counted, and these are never on the host.
"""

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.kcliques import table_words
from longwall.storage.streaming.estimate import Reads, estimate_reads
from longwall.storage.streaming.graph_parts import ARC_BYTES, ROOTS_SHARE
from longwall.storage.streaming.stored_graph import StoredGraph

_VERTICES_AT_ONCE = 1 << 16


def range_end(
    starts: npt.NDArray[np.int64], first: int, last: int, least: int, words: int, arcs: int | None = None
) -> int:
    """Return the end of a range of vertices from `first` on: as many as there is room for, one at least.

    Parameters
    ----------
    starts : int64[n + 1]
        Where the list of each vertex begins.
    first, last
        The first vertex, and one past the last one that is wanted.
    least
        Vertices of fewer neighbours have no table.
    words
        Room for tables; see :func:`longwall.kernels.interface.kcliques.table_words`.
    arcs
        Room for lists, None: any.
    """
    at = first
    while at < last:
        some = starts[at : min(at + _VERTICES_AT_ONCE, last) + 1]
        upto = np.cumsum(table_words(np.diff(some), least))
        fits = int(np.searchsorted(upto, words, side="right"))
        if arcs is not None:
            fits = min(fits, int(np.searchsorted(some, starts[first] + arcs, side="right")) - 1)
        at += fits
        if fits < upto.size:
            break
        words -= int(upto[-1])
    return max(at, first + 1)


def estimate_tabled_reads(graph: StoredGraph, part: int, pieces: int, least: int, words: int) -> Reads:
    """Estimate what a phase reads that makes the tables of ranges.

    Every range reads its own lists twice, and then those of smaller vertices that are neighbours: all of them, about.

    Parameters
    ----------
    graph
        The graph.
    part
        Bytes of a part on the host.
    pieces
        Ranges of the graph that are counted one by one, of equally many arcs.
    least, words
        See `range_end`.
    """
    starts, size, ranges = graph.starts, 2 * ARC_BYTES * graph.num_edges, 0
    ends = np.linspace(0, graph.num_edges, pieces + 1).astype(np.int64)
    first = 0
    for last in np.searchsorted(starts, ends[1:], side="left").tolist():
        while first < last:
            size += ARC_BYTES * int(starts[first])
            first = range_end(starts, first, last, least, words, int(ROOTS_SHARE * part) // ARC_BYTES)
            ranges += 1
    lists = estimate_reads(graph, part, pieces, split=True)
    return max(lists, Reads(ranges, size), key=lambda reads: reads.size)
