"""Cycles of four and of five vertices, counted by pairs of wedges with the same ends."""

from __future__ import annotations

from typing import ClassVar

from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.kernel_plan import KernelPlan
from longwall.pipeline.planning.method import INDUCED, Method, not_plain
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.stages.four_vertices import CountFourCycles
from longwall.stages.range_counting import CountFiveCycles, CountRanges


class FourCycles(Method):
    """4-cycles: two wedges with the same ends are one, so wedges are aggregated by their ends."""

    name: ClassVar[str] = "four-cycles"
    sure: ClassVar[bool] = True
    size: ClassVar[int] = 4
    steps: ClassVar[float] = 1 / 4
    """Of an estimate, per unit of the sum of squared degrees."""
    stage: ClassVar[type[CountRanges]] = CountFourCycles

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for a cycle of this size."""
        if not query.plain:
            return not_plain(query)
        if query.induced:
            return INDUCED
        if sorted(map(len, query.pattern.neighbours)) != [2] * self.size:
            return Refusal(f"the pattern is no {self.size}-cycle")
        cost = float(facts.stats.sum_degree_squared) * self.steps
        return KernelPlan(query.pattern, cost, RangeCount(self.stage(), cost), method=self.name)


class FiveCycles(FourCycles):
    """5-cycles: wedges from the smallest vertex, and the edges between their ends."""

    name: ClassVar[str] = "five-cycles"
    size: ClassVar[int] = 5
    steps: ClassVar[float] = 4.0
    stage: ClassVar[type[CountRanges]] = CountFiveCycles
