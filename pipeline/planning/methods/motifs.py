"""Counts of all connected patterns of a size (motifs)."""

from __future__ import annotations

from typing import ClassVar

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.homomorphisms.pattern_core import pass_costs
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import MAX_COUNTED, About, Query
from longwall.storage.graph.stats import GraphStats

_QUICK = 1e8  # steps: planning the count of every pattern takes longer than an enumeration that is so short
_PARENTS = 2.3  # smaller sets that a connected set grows out of (measured on collaboration graphs)
_STORED = Refusal("the graph stays in its store")


class MotifEnumeration(Method):
    """Enumerates the connected induced subgraphs of a size, and counts them by pattern."""

    name: ClassVar[str] = "motif-enumeration"
    family: ClassVar[str] = "enumeration"
    about: ClassVar[About] = "motifs"

    def is_sure(self, plan: CountPlan) -> bool:
        """Return whether the enumeration is short."""
        return plan.cost < _QUICK or plan.pattern.num_vertices > MAX_COUNTED

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the enumeration."""
        from longwall.pipeline.planning.motifs.by_enumeration import EnumerationPlan

        if facts.residency == "stored":
            return _STORED
        cost = steps_of_sets(query.pattern.num_vertices, facts.stats)
        return EnumerationPlan(query.pattern, cost, method=self.name)


class MotifsOfThree(Method):
    """Counts triangles, and wedges by the degrees of their centres."""

    name: ClassVar[str] = "motifs-of-three"
    about: ClassVar[About] = "motifs"

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:
        """Propose the count of triangles."""
        from longwall.pipeline.planning.motifs.of_three import ThreePlan

        if query.pattern.num_vertices != 3:
            return Refusal("the patterns have more than 3 vertices")
        triangles = planner.plan(Query(parse_pattern("triangle")), facts)
        return ThreePlan(triangles.pattern, triangles.cost, triangles, method=self.name)


class MotifCounting(Method):
    """Counts every pattern, most of them together, and subtracts the counts of denser ones."""

    name: ClassVar[str] = "motif-counting"
    about: ClassVar[About] = "motifs"

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:
        """Propose the count pattern by pattern."""
        from longwall.kernels.host.patterns.pattern_codes import code_edges, connected_codes
        from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
        from longwall.pipeline.planning.motifs.by_counting import CountingPlan
        from longwall.pipeline.planning.rewrites.hub_removal import hubs_worth
        from longwall.pipeline.planning.rewrites.k_core import LEAF_CORE
        from longwall.pipeline.planning.worth import worth_a_core

        k, graph = query.pattern.num_vertices, facts.graph
        if not 3 < k <= MAX_COUNTED:
            return Refusal(f"the patterns have 3 vertices, or more than {MAX_COUNTED}")
        if facts.residency == "stored" or graph is None:
            return _STORED
        one_by_one = planner.but("hub-removal")  # all patterns together are counted around hubs
        patterns = tuple(Pattern(k, code_edges(code, k)) for code in connected_codes(k).tolist())
        costs = pass_costs(facts.stats)
        able = tuple(pattern for pattern in patterns if plan_homomorphisms((pattern,), costs) is not None)
        sums = plan_homomorphisms(able, costs) if able else None
        shared = () if sums is None else sums.patterns
        on_any = Facts.of(graph)
        alone = tuple(one_by_one.plan(Query(pattern), on_any) for pattern in patterns if pattern not in shared)
        cost = sum(plan.cost for plan in alone) + (0.0 if sums is None else sums.cost)
        return CountingPlan(
            query.pattern,
            cost,
            patterns,
            together=None if sums is None else HomomorphismCount(sums),
            alone=alone,
            in_core=sums is not None and worth_a_core(sums.cost, graph, LEAF_CORE),
            hubs=hubs_worth(cost, graph),
            planner=one_by_one,
            method=self.name,
        )


def steps_of_sets(k: int, stats: GraphStats) -> float:
    """Estimate the elementary steps in which all connected sets of `k` vertices are found."""
    neighbour_degree = stats.sum_degree_squared / max(2 * stats.num_edges, 1)
    sets = float(stats.num_edges)
    for size in range(2, k - 1):
        sets *= max(size * neighbour_degree / _PARENTS, 1.0)
    return sets * neighbour_degree
