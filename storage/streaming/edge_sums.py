"""Sums over the edges of a graph that stays in its store, of what the degrees of their ends say."""

import threading

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.compile import compiled
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.observer import Observer
from longwall.storage.streaming.list_file import ListFile
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.system.concurrency import core_count, map_ordered

UInt32s = npt.NDArray[np.uint32]
_ITEM = 4  # bytes of a degree, and of a neighbour


def add_degree_products(
    graph: StoredGraph, lists: ListFile, host: MemoryBudget, observer: Observer, cancel: threading.Event
) -> int:
    """Add up (d - 1) (e - 1) over all edges between vertices of degrees d and e, in one pass over the lists.

    Parameters
    ----------
    graph, lists
        The graph, and the lists of its smaller neighbours.
    host
        Pays for the degrees, 4 bytes a vertex, and for a segment of the lists for each thread.
    observer
        Receives the progress, in edges.
    cancel
        Set when the work is to end.

    Returns
    -------
    int
        The sum, however large.

    Raises
    ------
    BudgetExceeded
        If there is no room for the degrees.
    RunError
        If the lists cannot be read.
    KeyboardInterrupt
        If it was cancelled.
    """
    observer.phase("adding up degrees", graph.num_edges, "edges")
    threads = max(min(core_count(), lists.segments), 1)
    with host.reserve(degree_bytes(graph, lists.longest, threads), "the degrees of all vertices"):
        degrees = np.repeat(graph.histogram.degrees.astype(np.uint32), graph.histogram.counts)
        local = threading.local()

        def add(segment: int) -> tuple[int, int]:
            if cancel.is_set():
                raise KeyboardInterrupt
            if not hasattr(local, "buffer"):
                local.buffer = np.empty(lists.longest, np.uint32)
            values = lists.read(segment, local.buffer)
            low, high = _add_products(values, int(lists.bounds[segment]), graph.starts, degrees)
            return int(low) + (int(high) << 32), len(values)

        total = 0
        for found, edges in map_ordered(add, range(lists.segments), threads):
            total += found
            lists.bytes_read += _ITEM * edges
            observer.advance(edges)
    return total


def degree_bytes(graph: StoredGraph, longest: int, threads: int) -> int:
    """Return what the degrees of all vertices take of the host, and a buffer of neighbours for each thread."""
    return _ITEM * (graph.num_vertices + threads * longest)


@compiled("u4[::1], i8, i8[::1], u4[::1]")
def _add_products(
    values: UInt32s, at: int, starts: npt.NDArray[np.int64], degrees: UInt32s
) -> tuple[np.uint64, np.uint64]:
    """Add up the products of the neighbours from arc `at` on: the lower halves of 32 bits, and the upper ones."""
    low, high, stop, one = np.uint64(0), np.uint64(0), at + values.size, np.uint64(1)
    vertex = first_above(starts, at) - 1
    while vertex < starts.size - 1 and starts[vertex] < stop:
        near = np.uint64(0)
        for arc in range(max(starts[vertex], at), min(starts[vertex + 1], stop)):
            near += np.uint64(degrees[values[arc - at]]) - one
        own = np.uint64(degrees[vertex]) - one
        part = own * (near & np.uint64(0xFFFFFFFF))
        low += part & np.uint64(0xFFFFFFFF)
        high += (part >> np.uint64(32)) + own * (near >> np.uint64(32))
        vertex += 1
    return low, high
