"""Triangles: their number, the triangles themselves, or how many each vertex or each edge is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.workloads.base import Workload, count_or_list, plan_pattern

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator
    from longwall.pipeline.planning.plan import CountPlan
    from longwall.pipeline.planning.planner import Planner
    from longwall.pipeline.planning.search.search_plan import MatchPlan
    from longwall.storage.graph.graph import Graph


class Triangles(Workload):
    """``kind = "triangles"``."""

    kind: Literal["triangles"] = Field(description="three vertices, every two joined by an edge")
    output: Literal["count", "embeddings", "vertices", "edges"] = Field(
        default="count",
        description="`count`, `embeddings`, or `vertices`, `edges`: the number of triangles of each vertex or edge",
    )

    @property
    def num_columns(self) -> int:
        """Number of columns of the embeddings."""
        return 3

    def plan(self, graph: Graph, planner: Planner | None = None) -> CountPlan | MatchPlan:
        """Plan for triangles."""
        pattern = parse_pattern("triangle")
        if self.output == "vertices":
            from longwall.pipeline.phases.count_per_vertex import plan_triangles_per_vertex

            return plan_triangles_per_vertex(pattern, graph)
        if self.output == "edges":
            from longwall.pipeline.phases.count_per_edge import plan_per_edge

            return plan_per_edge(pattern, "triangle", graph)
        return plan_pattern(pattern, graph, self.output, planner)

    def execute(self, plan: CountPlan | MatchPlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the triangles, in all, per vertex or per edge."""
        return [count_or_list(plan, env)]
