"""Motifs of 3 vertices of a graph that stays in its store: triangles, and wedges by the degrees of their centres."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from longwall.pipeline.phases.range_count import RangeCount
from longwall.stages.range_counting import CountCliques

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator


def triangle_phase(k: int, cost: float) -> RangeCount | None:
    """Return the phase from which all motifs of `k` vertices follow; None: there is no such phase."""
    return RangeCount(CountCliques(3), cost) if k == 3 else None


def count_three(env: Coordinator) -> list[int]:
    """Count the induced wedges and the triangles: in the order of the pattern codes.

    Every two neighbours of a vertex are a wedge, or a triangle that is found at each of its vertices.
    """
    began, stats = time.perf_counter(), env.graph.stats
    phase = triangle_phase(3, float(env.graph.num_edges))
    assert phase is not None
    triangles = int(phase.run(env))
    pairs = (stats.sum_degree_squared - 2 * stats.num_edges) // 2
    env.metrics.record("degrees", 0, stats.num_vertices, pairs, time.perf_counter() - began)
    return [pairs - 3 * triangles, triangles]
