"""Diamonds, counted by pairs of triangles at the same edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.kernel_plan import KernelPlan
from longwall.pipeline.planning.method import INDUCED, Method, not_plain
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.stages.four_vertices import CountDiamondsOfArcs
from longwall.stages.range_counting import CountDiamonds, CountRanges

# With at least this number of edges, counts of arcs take less time on a device than whole rows: diamonds of R-MAT 15,
# which has 442,076, take 0.28 and 0.47 ms so, those of R-MAT 14, with 213,184, take 0.24 and 0.23 (H200).
_MANY_EDGES = 1 << 18
_PREFERRED = 0.5  # of the steps of the other way, where the lists of smaller neighbours are read in order


class Diamonds(Method):
    """Diamonds by the triangles at each edge, whose rows are looked up."""

    name: ClassVar[str] = "diamonds"
    family: ClassVar[str] = "triangles"
    sure: ClassVar[bool] = False

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for a diamond."""
        return _proposed(query, facts, CountDiamonds(), self.name)


@dataclass(frozen=True)
class DiamondsByArcsPlan(KernelPlan):
    """Diamonds by the triangles of each arc: lists of smaller neighbours are read in order."""

    def steps(self, facts: Facts) -> float:
        """Return fewer steps than by rows where reading in order takes less time."""
        large = facts.graph is not None and facts.graph.num_edges >= _MANY_EDGES
        in_order = facts.residency == "paged" or (facts.on_device and large)
        return self.cost * _PREFERRED if in_order else self.cost


class DiamondsByArcs(Method):
    """Diamonds by the triangles of each arc, which come in order."""

    name: ClassVar[str] = "diamonds-by-arcs"
    family: ClassVar[str] = "triangles"
    sure: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for a diamond."""
        return _proposed(query, facts, CountDiamondsOfArcs(), self.name, DiamondsByArcsPlan)


def _refusal(query: Query) -> Refusal | None:
    if not query.plain:
        return not_plain(query)
    if query.induced:
        return INDUCED
    if sorted(map(len, query.pattern.neighbours)) != [2, 2, 3, 3]:
        return Refusal("the pattern is no diamond")
    return None


def _proposed(
    query: Query, facts: Facts, count: CountRanges, name: str, kind: type[KernelPlan] = KernelPlan
) -> CountPlan | Refusal:
    cost = float(facts.stats.sum_degree_squared) / 4
    return _refusal(query) or kind(query.pattern, cost, RangeCount(count, cost), method=name)
