"""Counts around a few hubs, which have most of the work of other plans, and in the graph without them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import derived
from longwall.pipeline.execution.phase import TooExpensive
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.derived_graph import DerivedGraph
from longwall.pipeline.phases.hubs.hub_free import WithoutHubs
from longwall.pipeline.phases.hubs.part_counts import plan_parts
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.hubs.hub_terms import MAX_VERTICES, hub_terms
from longwall.pipeline.planning.hubs.parts import TooManyParts
from longwall.pipeline.planning.method import Rewrite
from longwall.pipeline.planning.methods.search import ends_early
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal, embeddings_of
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.worth import too_quick, worth_making
from longwall.storage.graph.derived.hubs import HubFree, count_hubs
from longwall.storage.graph.graph import Graph
from longwall.storage.streaming.stored_graph import StoredGraph

_GAIN = 0.5  # of the steps of the whole count, that counts around hubs may take
_NOT_IN_PARTS = ("hub-removal", "star-leaves", "candidates")


@dataclass(frozen=True)
class HubRemovalPlan(CountPlan):
    """A sum over which vertices of the pattern are mapped to hubs: the others are mapped to the remaining graph.

    Its cost is that of the count in the whole graph.

    Attributes
    ----------
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    hubs
        The number of hubs.
    planner
        Plans the counts of the parts.
    """

    induced: bool
    hubs: int
    planner: Planning = field(compare=False, repr=False)
    tried: ClassVar[bool] = True
    needs = "the graph without its hubs"

    def unsuited(self, facts: Facts) -> str:
        """Return why not: where a device counts in less time than the host removes hubs."""
        return super().unsuited(facts) or too_quick(self.cost, facts, "to remove the hubs")

    def to_dict(self) -> dict[str, Any]:
        """The number of hubs."""
        return {"hubs": self.hubs}

    def describe(self) -> str:
        """The plan as text."""
        return (
            f"hubs         or, if that is less work, by what is mapped to the {self.hubs} vertices of the highest\n"
            "             degree, in the graph without them"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        pattern = Pattern(self.pattern.num_vertices, self.pattern.edges)
        (found,) = mappings_around_hubs((pattern,), env, self.hubs, self.cost, self.planner, induced=self.induced)
        return embeddings_of(found, self.automorphisms)


class HubRemoval(Rewrite):
    """Counts around hubs, of patterns without labels."""

    name: ClassVar[str] = "hub-removal"
    plain: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning, best: CountPlan) -> CountPlan | Refusal:
        """Propose the count around hubs, if the graph has some and the count takes long."""
        pattern = query.pattern
        if ends_early(query, best):
            return Refusal("a count that ends at a limit uses the whole graph")
        if pattern.is_clique or not 3 < pattern.num_vertices <= MAX_VERTICES:
            return Refusal(f"the pattern is a clique, or has not 4 to {MAX_VERTICES} vertices")
        hubs = 0 if facts.graph is None else hubs_worth(best.cost, facts.graph)
        if not hubs:
            return Refusal("the count is short, or the graph has no hubs")
        return HubRemovalPlan(pattern, best.cost, query.induced, hubs, planner, method=self.name)


def mappings_around_hubs(
    patterns: Sequence[Pattern],
    env: Coordinator,
    hubs: int,
    most: float,
    planner: Planning,
    *,
    induced: bool = False,
    each: float = 0.0,
) -> list[int]:
    """Count the mappings of unlabelled patterns by which of their vertices are mapped to hubs.

    Parameters
    ----------
    patterns
        The patterns.
    env
        The run.
    hubs
        The number of hubs.
    most
        Steps of the alternative to this count.
    planner
        Plans the counts of the parts.
    induced
        Whether non-edges of a pattern must be non-edges of the graph.
    each
        Steps added for each count of a part, besides its own.

    Raises
    ------
    TooExpensive
        If this count is not much less work than the alternative.
    NotEnoughMemory
        If a budget has no room for the graph without its hubs.
    """
    left = _left(env, hubs)
    kinds = tuple(kind for kind, number in enumerate(left.found.kinds) if number)
    try:
        terms = [hub_terms(pattern, left.found.joined, kinds, induced=induced) for pattern in patterns]
    except TooManyParts:
        raise TooExpensive from None
    in_parts = planner.but(*_NOT_IN_PARTS)

    def plan_part(pattern: Pattern, graph: Graph) -> CountPlan:
        return in_parts.plan(Query(pattern, induced), Facts.of(graph))

    counts = plan_parts(terms, left, plan_part)
    if counts is None or counts.cost + each * counts.number > _GAIN * most:
        raise TooExpensive
    assert left.env is None or isinstance(left.env, Coordinator)
    return counts.mappings(left.env)


def _left(env: Coordinator, hubs: int) -> DerivedGraph[HubFree]:
    began = time.perf_counter()
    left = derived(env, WithoutHubs(hubs))
    number = 0 if left.env is None else left.env.graph.num_vertices
    env.metrics.record("without hubs", 0, env.graph.num_vertices, number, time.perf_counter() - began)
    return left


def hubs_worth(cost: float, graph: Graph) -> int:
    """Return the number of hubs to count around, if a count takes `cost` steps otherwise; 0: none."""
    if isinstance(graph, StoredGraph):  # removing hubs reads the rows of the graph in memory
        return 0
    return count_hubs(graph) if worth_making(cost, graph) else 0
