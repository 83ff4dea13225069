"""Counts that follow from degrees and the triangles of every vertex, where memory holds the graph only in part.

A search reads whole lists again and again; triangles need the arcs to smaller neighbours alone, which come in order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.lazy_kernel import lazy_kernel

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator
    from longwall.pipeline.patterns.pattern import Pattern
    from longwall.storage.graph.graph import Graph

_PATH, _TAILED = [1, 1, 2, 2], [1, 2, 2, 3]  # degrees, ascending
_VERTICES_AT_ONCE = 1 << 18
_SHIFTS = (0, 12, 24)
_ARCS_AT_ONCE = 1 << 22


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
    """
    degrees = sorted(map(len, pattern.neighbours))
    if pattern.labels is not None or pattern.edge_labels is not None or degrees not in (_PATH, _TAILED):
        return None
    from longwall.pipeline.phases.count_per_vertex import CountPerVertex
    from longwall.stages.range_counting import CountTrianglesOfVertices

    graph = env.graph
    with CountPerVertex(CountTrianglesOfVertices(), float(graph.num_edges)).run(env) as triangles:
        if degrees == _PATH:
            corners = sum(int(triangles[at : at + _VERTICES_AT_ONCE].sum()) for at in _places(graph))
            return _walks(graph) // 2 - corners
        total = 0
        for at in _places(graph):
            some = triangles[at : at + _VERTICES_AT_ONCE]
            tails = np.maximum(np.diff(graph.indptr[at : at + some.size + 1]) - 2, 0)
            # In parts of 32 and of 12 bits, so that their products add up in 64 bits.
            for half, above in ((some & 0xFFFFFFFF, 0), (some >> 32, 32)):
                parts = (half * (tails >> shift & 0xFFF) for shift in _SHIFTS)
                total += sum(int(part.sum()) << shift + above for part, shift in zip(parts, _SHIFTS, strict=True))
        return total


def _places(graph: Graph) -> range:
    return range(0, graph.num_vertices, _VERTICES_AT_ONCE)


def _walks(graph: Graph) -> int:
    """Add up (d - 1) (e - 1) over all arcs between vertices of degrees d and e."""
    cuts = np.searchsorted(graph.indptr, range(0, len(graph.indices), _ARCS_AT_ONCE), side="left")
    bounds = np.unique([0, *cuts, graph.num_vertices]).tolist()

    def add(rows: tuple[int, int]) -> int:
        low, high = _add_walks(graph.indptr, graph.indices, *rows)
        return int(low) + (int(high) << 32)

    return sum(map_ordered(add, pairwise(bounds), min(core_count(), len(bounds))))


@lazy_kernel
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
