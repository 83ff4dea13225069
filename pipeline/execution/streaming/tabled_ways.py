"""How memory is shared where tables stay on a device while lists pass, and what is read then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longwall.kernels.interface.kcliques import WORD_BYTES, longest_table, table_words
from longwall.stages.range_counting import CountCliques
from longwall.storage.streaming.estimate import Reads
from longwall.storage.streaming.list_capacity import capacity_bytes
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.streaming.table_ranges import estimate_tabled_reads

# Of the device, for the lists of a part: blocks may be short, but all lists of a range are there, and where they begin.
_LISTS_SHARE = 1 / 4
_LEAST_PART, _LIST_BYTES = 1 << 12, 32  # of the longest list, which must have room, and so must its neighbours
_TABLES_SHARE = 0.6  # of what is left: about what the kernels leave of it for tables
_BESIDES = 1 << 26  # bytes of a device for what blocks of threads have each


class TabledWay(NamedTuple):
    """How tables are made.

    Attributes
    ----------
    stage
        What counts.
    part
        Bytes of a part on the host.
    reads
        What will be read, estimated.
    """

    stage: CountCliques
    part: int
    reads: Reads


def tabled_way(graph: StoredGraph, count: CountCliques, part: int, device: int, pieces: int) -> TabledWay | None:
    """Return how tables are made, None where one has no room.

    Parameters
    ----------
    graph
        The graph.
    count
        The stage that counts.
    part
        Most bytes of a part on the host.
    device
        Bytes of the device.
    pieces
        Ranges of the graph that are counted one by one.
    """
    longest, size = graph.stats.max_out_degree, min(part, int(_LISTS_SHARE * device))
    words = int(_TABLES_SHARE * (device - capacity_bytes(graph.num_vertices, size))) // WORD_BYTES
    if size < _LEAST_PART + _LIST_BYTES * longest or longest_table(longest) >= words:
        return None
    return TabledWay(count, size, estimate_tabled_reads(graph, size, pieces, count.smallest - 1, words))


def enough_memory(graph: StoredGraph, count: CountCliques) -> int:
    """Return what suffices for all tables of a graph, in bytes: more is of no use, and all is set to zero each time."""
    degrees, numbers = (np.array(values) for values in graph.out_degrees())
    words = int((table_words(degrees, count.smallest - 1) * numbers).sum())
    return int(WORD_BYTES * words / _TABLES_SHARE) + _BESIDES
