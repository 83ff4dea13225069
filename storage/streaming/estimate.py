"""How much will be read of a graph that stays in its store, from its degrees alone."""

from typing import NamedTuple

import numpy as np

from longwall.storage.streaming.graph_parts import ARC_BYTES, MEMBER_BYTES, ROOTS_SHARE
from longwall.storage.streaming.stored_graph import StoredGraph

_SAMPLED = 1 << 14  # vertices that are looked at: their lists are about as long as those beside them
_MOST_HALVINGS = 30


class Reads(NamedTuple):
    """What a phase reads of the lists of smaller neighbours.

    Attributes
    ----------
    windows
        How often roots are chosen.
    size
        Bytes in all.
    """

    windows: int
    size: int


def estimate_reads(graph: StoredGraph, part: int, windows: int, *, split: bool) -> Reads:
    """Estimate what a phase reads.

    A list is among those of a share f of the roots with the probability 1 - (1 - f)^t, where t of its vertex's
    neighbours are larger, as if the roots were chosen at random. Every window reads the lists of its roots twice, and
    those of their neighbours, which are spread over all before its last root: half of all, on average.

    Parameters
    ----------
    graph
        The graph.
    part
        Bytes of a part.
    windows
        The least number of windows.
    split
        Whether roots are joined with block after block of their neighbours' lists.
    """
    halvings = 0
    while halvings < _MOST_HALVINGS and not _fits(graph, part, 2.0**-halvings, split=split):
        halvings += 1
    windows = max(windows, 2**halvings)
    lists = ARC_BYTES * graph.num_edges
    return Reads(windows, 2 * lists + windows * lists // 2)


def _fits(graph: StoredGraph, part: int, share: float, *, split: bool) -> bool:
    """Whether a part has room for a share of the roots, and the lists of their neighbours where these are not split."""
    stride = -(-graph.num_vertices // _SAMPLED)
    sample = np.arange(0, graph.num_vertices, stride)
    smaller = graph.starts[sample + 1] - graph.starts[sample]
    larger = graph.degrees_of(sample) - smaller
    member = 1 - (1 - share) ** larger if share < 1 else (larger > 0).astype(float)
    size = stride * float((member * (MEMBER_BYTES + (0 if split else ARC_BYTES * smaller))).sum())
    size += share * (ARC_BYTES * graph.num_edges + MEMBER_BYTES * graph.num_vertices)
    return size <= part * (ROOTS_SHARE if split else 1)
