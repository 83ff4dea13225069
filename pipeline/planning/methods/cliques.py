"""Cliques, counted by bitmaps of common neighbours or by pivots."""

from __future__ import annotations

from typing import ClassVar

from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.kernel_plan import KernelPlan
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.cliques.leaves import CountCliquesByPivots, suits_pivots
from longwall.stages.range_counting import CountCliques


class Cliques(Method):
    """Cliques by their vertices' lists of smaller neighbours, as bitmaps; large ones by pivots."""

    name: ClassVar[str] = "cliques"
    plain: ClassVar[bool] = True
    sure: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for a clique of three vertices or more."""
        if query.pattern.num_vertices < 3 or not query.pattern.is_clique:
            return Refusal("the pattern is no clique of three vertices or more")
        k, stats = query.pattern.num_vertices, facts.stats
        count = CountCliquesByPivots(k) if suits_pivots(k, stats.max_out_degree) else CountCliques(k)
        cost = sum(plan_match(query.pattern, stats).rows)
        return KernelPlan(query.pattern, cost, RangeCount(count, cost), method=self.name)
