"""k-cliques: count them with bitmap tables, or list them by extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import MAX_FAMILY
from longwall.pipeline.workloads.base import Workload, count_or_list, plan_pattern

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator
    from longwall.pipeline.phases.count_plans import CountPlan
    from longwall.pipeline.planning.search_plan import MatchPlan
    from longwall.storage.graph.graph import Graph


class Cliques(Workload):
    """``kind = "cliques"``: sets of `k` vertices in which every two are joined by an edge."""

    kind: Literal["cliques"] = Field(description="sets of vertices, every two joined by an edge")
    k: Annotated[int, Field(ge=3, le=MAX_FAMILY)] = Field(description=f"number of vertices, 3 to {MAX_FAMILY}")
    output: Literal["count", "embeddings"] = Field(default="count", description="`count` or `embeddings`")

    @property
    def num_columns(self) -> int:
        """Number of columns of the embeddings."""
        return self.k

    def plan(self, graph: Graph) -> CountPlan | MatchPlan:
        """Plan for this size."""
        return plan_pattern(parse_pattern(f"clique-{self.k}"), graph, self.output)

    def execute(self, plan: CountPlan | MatchPlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the cliques."""
        return [count_or_list(plan, env)]
