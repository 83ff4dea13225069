"""4-cycles, counted by pairs of wedges with the same ends."""

from __future__ import annotations

from typing import ClassVar

from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.kernel_plan import KernelPlan
from longwall.pipeline.planning.method import INDUCED, Method, not_plain
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.stages.four_vertices import CountFourCycles


class FourCycles(Method):
    """4-cycles: two wedges with the same ends are one, so wedges are aggregated by their ends."""

    name: ClassVar[str] = "four-cycles"
    sure: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for a 4-cycle."""
        if not query.plain:
            return not_plain(query)
        if query.induced:
            return INDUCED
        if sorted(map(len, query.pattern.neighbours)) != [2] * 4:
            return Refusal("the pattern is no 4-cycle")
        cost = float(facts.stats.sum_degree_squared) / 4
        return KernelPlan(query.pattern, cost, RangeCount(CountFourCycles(), cost), method=self.name)
