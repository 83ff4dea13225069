"""Motifs of 3 vertices: triangles, and wedges by the degrees of their centres."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.motifs.census import CensusPlan

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.phases.range_count import RangePhase
    from longwall.pipeline.planning.plan import CountPlan


@dataclass(frozen=True)
class ThreePlan(CensusPlan):
    """Every two neighbours of a vertex are a wedge, or a triangle that is found at each of its vertices.

    Attributes
    ----------
    triangles
        How triangles are counted.
    """

    triangles: CountPlan

    @property
    def streamed(self) -> RangePhase | None:
        """See `longwall.pipeline.planning.plan.CountPlan`."""
        return self.triangles.streamed

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        plans = [self.triangles.to_dict(), {"kind": "degrees", "pattern": parse_pattern("path-3").edge_text}]
        return {"kind": "motif counting", "k": 3, "estimated_cost": self.cost, "patterns": plans}

    def describe(self) -> str:
        """The plan as text."""
        return (
            "motifs       2 connected patterns of 3 vertices, induced: triangles, and wedges, the other pairs of a\n"
            f"             vertex's neighbours\n{self.triangles.describe()}"
        )

    def counts(self, env: Coordinator) -> list[int]:
        """Count the induced wedges and the triangles: in the order of the pattern codes."""
        triangles = self.triangles.count(env)
        began, stats = time.perf_counter(), env.graph.stats
        pairs = (stats.sum_degree_squared - 2 * stats.num_edges) // 2
        env.metrics.record("degrees", 0, stats.num_vertices, pairs, time.perf_counter() - began)
        return [pairs - 3 * triangles, triangles]
