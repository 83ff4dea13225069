"""Triangles: their number, the triangles themselves, or how many each vertex or each edge is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.workloads.base import Workload, answer_pattern, plan_pattern

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.plan import CountPlan
    from longwall.pipeline.planning.planner import Planner
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

    def plan(self, graph: Graph, planner: Planner | None = None) -> CountPlan:
        """Plan for triangles."""
        return plan_pattern(parse_pattern("triangle"), graph, self.output, planner)

    def execute(self, plan: CountPlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the triangles, in all, per vertex or per edge."""
        return [answer_pattern(plan, env)]
