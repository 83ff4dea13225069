"""k-cliques: count them with bitmap tables, in all or per edge, or list them by extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import MAX_FAMILY
from longwall.pipeline.workloads.base import Workload, count_or_list, plan_pattern

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator
    from longwall.pipeline.phases.count_plans import CountPlan
    from longwall.pipeline.planning.search_plan import MatchPlan
    from longwall.storage.graph.graph import Graph

_MAX_EDGE_CLIQUE = 4  # vertices of the cliques that are counted at every edge


class Cliques(Workload):
    """``kind = "cliques"``: sets of `k` vertices in which every two are joined by an edge."""

    kind: Literal["cliques"] = Field(description="sets of vertices, every two joined by an edge")
    k: Annotated[int, Field(ge=3, le=MAX_FAMILY)] = Field(description=f"number of vertices, 3 to {MAX_FAMILY}")
    output: Literal["count", "embeddings", "edges"] = Field(
        default="count", description="`count`, `embeddings`, or `edges` (k up to 4): the number of cliques of each edge"
    )

    @field_validator("k")
    @classmethod
    def _edges_have_small_cliques(cls, k: int, info: ValidationInfo) -> int:
        if info.data.get("output") == "edges" and k > _MAX_EDGE_CLIQUE:
            raise ValueError(f"counts per edge are given for at most {_MAX_EDGE_CLIQUE} vertices, not {k}")
        return k

    @property
    def num_columns(self) -> int:
        """Number of columns of the embeddings."""
        return self.k

    def plan(self, graph: Graph) -> CountPlan | MatchPlan:
        """Plan for this size."""
        pattern = parse_pattern(f"clique-{self.k}")
        if self.output == "edges":
            from longwall.pipeline.phases.count_per_edge import plan_per_edge

            return plan_per_edge(pattern, "triangle" if self.k == 3 else "clique-4", graph)
        return plan_pattern(pattern, graph, self.output)

    def execute(self, plan: CountPlan | MatchPlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the cliques."""
        return [count_or_list(plan, env)]
