"""Counts that follow from degrees and triangles, where memory holds the graph only in part, or the CPU counts.

A search reads whole lists again and again; triangles need the arcs to smaller neighbours alone, which come in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.jit.compile import compiled
from longwall.pipeline.phases.range_count import RangeCount, RangePhase
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation
from longwall.stages.range_counting import CountCliques, CountTrianglesOfVertices
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.system.concurrency import core_count, map_ordered

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.execution.environment import Environment
    from longwall.pipeline.execution.streaming.part_sums import PartSums
    from longwall.pipeline.patterns.pattern import Pattern
    from longwall.storage.graph.graph import Graph

Int64s = NDArray[np.int64]

_PATH, _TAILED = [1, 1, 2, 2], [1, 2, 2, 3]  # degrees, ascending
_VERTICES_AT_ONCE = 1 << 18
_SHIFTS = (0, 12, 24)
_ARCS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class CountTails(RangePhase):
    """Count triangles with a tail: each triangle as often as its vertices have other neighbours."""

    name = "triangles with a tail"
    aggregation = Aggregation(int, sum, int)

    def take(self, env: Environment) -> Callable[[Any], PartialResult]:
        """See `RangePhase`; a worker's counts are all that it found so far."""
        graph, before = env.graph, 0
        if isinstance(graph, StoredGraph):
            return PartialResult

        def take(triangles: Int64s) -> PartialResult:
            nonlocal before
            total = 0
            for first in range(0, len(triangles), _VERTICES_AT_ONCE):
                some = triangles[first : first + _VERTICES_AT_ONCE]
                total += add_tails(graph, np.arange(first, first + len(some)), some)
            found, before = total - before, total
            return PartialResult(found)

        return take

    def part_sums(self, graph: StoredGraph) -> PartSums:
        """See `RangePhase`."""
        from longwall.pipeline.execution.streaming.part_sums import WeighedSum

        return WeighedSum(partial(add_tails, graph))


def triangle_phase(pattern: Pattern, cost: float) -> RangeCount | CountTails | None:
    """Return the phase from which a pattern's count follows; None: it does not, `count_by_triangles` counts others.

    Parameters
    ----------
    pattern
        The pattern; one with labels is another.
    cost
        Estimated number of elementary steps.
    """
    degrees = sorted(map(len, pattern.neighbours))
    if pattern.labels is not None or pattern.edge_labels is not None or degrees not in (_PATH, _TAILED):
        return None
    return RangeCount(CountCliques(3), cost) if degrees == _PATH else CountTails(CountTrianglesOfVertices(), cost)


def count_by_triangles(pattern: Pattern, env: Coordinator) -> int | None:
    """Count the embeddings, non-induced, of a path of 4 vertices or a triangle with a tail; None: of another pattern.

    The middle edge of a path has an arc more at either end, which are not the two sides of a triangle. A tail is an
    edge of a triangle's vertex to a vertex that is not the triangle's.

    Parameters
    ----------
    pattern
        The pattern; one with labels is another.
    env
        What the plan works with.

    Raises
    ------
    NotEnoughMemory
        If there is no room for the workspace.
    """
    phase = triangle_phase(pattern, float(env.graph.num_edges))
    if phase is None:
        return None
    if isinstance(phase, RangeCount):
        return _walks(env) - 3 * int(phase.run(env))
    began = time.perf_counter()
    record = env.run(phase)
    found = int(phase.aggregation.result(record.values))
    seconds = time.perf_counter() - began
    env.metrics.record(phase.count.method, 0, record.total, found, seconds, 0, record.ranges)
    return found


def add_tails(graph: Graph, vertices: Int64s, triangles: Int64s) -> int:
    """Add up the triangles, int64[k], of int64[k] vertices, each times the other neighbours of the vertex."""
    tails, total = np.maximum(graph.degrees_of(vertices) - 2, 0), 0
    # In parts of 32 and of 12 bits, so that their products add up in 64 bits.
    for half, above in ((triangles & 0xFFFFFFFF, 0), (triangles >> 32, 32)):
        parts = (half * (tails >> shift & 0xFFF) for shift in _SHIFTS)
        total += sum(int(part.sum()) << shift + above for part, shift in zip(parts, _SHIFTS, strict=True))
    return total


def _walks(env: Coordinator) -> int:
    """Add up (d - 1) (e - 1) over all edges between vertices of degrees d and e."""
    graph = env.graph
    if isinstance(graph, StoredGraph):
        from longwall.pipeline.execution.derived import derived
        from longwall.pipeline.execution.streaming.stream_phase import AdjacencyLists
        from longwall.storage.streaming.edge_sums import add_degree_products

        return add_degree_products(graph, derived(env, AdjacencyLists()), env.resources.host, env.observer, env.cancel)
    cuts = np.searchsorted(graph.indptr, range(0, len(graph.indices), _ARCS_AT_ONCE), side="left")
    bounds = np.unique([0, *cuts, graph.num_vertices]).tolist()

    def add(rows: tuple[int, int]) -> int:
        low, high = _add_walks(graph.indptr, graph.indices, *rows)
        return int(low) + (int(high) << 32)

    return sum(map_ordered(add, pairwise(bounds), min(core_count(), len(bounds)))) // 2


@compiled("i8[::1], u4[::1], i8, i8")
def _add_walks(indptr: Any, indices: Any, first: int, last: int) -> Any:
    """Add up the walks by arcs of the vertices first to last - 1: the lower halves of 32 bits, and the upper ones."""
    low, high = np.uint64(0), np.uint64(0)
    for v in range(first, last):
        near = np.uint64(0)
        for i in range(indptr[v], indptr[v + 1]):
            u = indices[i]
            near += np.uint64(indptr[u + 1] - indptr[u] - 1)
        own = np.uint64(indptr[v + 1] - indptr[v] - 1) if indptr[v + 1] > indptr[v] else np.uint64(0)
        part = own * (near & np.uint64(0xFFFFFFFF))
        low += part & np.uint64(0xFFFFFFFF)
        high += (part >> np.uint64(32)) + own * (near >> np.uint64(32))
    return low, high


def count_stars(graph: Graph, leaves: int) -> int:
    """Return the number of stars with a number of leaves, at least two."""
    total = 0
    for first in range(0, graph.num_vertices, _VERTICES_AT_ONCE):
        degrees = np.diff(graph.indptr[first : first + _VERTICES_AT_ONCE + 1])
        pairs = zip(*(part.tolist() for part in np.unique(degrees, return_counts=True)), strict=True)
        total += sum(comb(degree, leaves) * number for degree, number in pairs)
    return total
