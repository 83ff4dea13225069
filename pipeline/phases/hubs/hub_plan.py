"""Plans that count around a few hubs, which have most of the work of other plans, and in the graph without them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from longwall.pipeline.execution.derived import derived
from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.cores.core_plan import pays_on_engine, plan_in_core, worth_making
from longwall.pipeline.phases.count_plans import CountPlan, embeddings_of
from longwall.pipeline.phases.derived_graph import DerivedGraph
from longwall.pipeline.phases.hubs.hub_free import WithoutHubs
from longwall.pipeline.phases.hubs.part_counts import plan_parts
from longwall.pipeline.planning.hubs.hub_terms import MAX_VERTICES, hub_terms
from longwall.pipeline.planning.hubs.parts import TooManyParts
from longwall.storage.graph.derived.hubs import HubFree, count_hubs
from longwall.storage.graph.graph import Graph
from longwall.storage.streaming.stored_graph import StoredGraph

_GAIN = 0.5  # of the steps of the whole count, that counts around hubs may take


@dataclass(frozen=True)
class CountAroundHubs(CountPlan):
    """A sum over which vertices of the pattern are mapped to hubs: the others are mapped to what is left.

    Attributes
    ----------
    whole
        How the pattern is counted otherwise.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    hubs
        The number of hubs.
    """

    whole: CountPlan
    induced: bool
    hubs: int

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.whole.to_dict() | {"hubs": self.hubs}

    def describe(self) -> str:
        """The plan as text."""
        return (
            f"{self.whole.describe()}\n"
            f"hubs         or, if that is less work, by what is mapped to the {self.hubs} vertices of the highest\n"
            "             degree, in the graph without them"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        if not pays_on_engine(self.whole.cost, env):
            return self.whole.count(env)
        try:
            found = self._around(env)
        except DoesNotFit:
            env.observer.note("the budget has no room for the graph without its hubs: counting with them")
            found = None
        return self.whole.count(env) if found is None else found

    def _around(self, env: Coordinator) -> int | None:
        """Count the embeddings; None if that is not much less work than the plan for the whole graph."""
        pattern = Pattern(self.pattern.num_vertices, self.pattern.edges)
        found = mappings_around_hubs((pattern,), env, self.hubs, self.whole.cost, induced=self.induced)
        return None if found is None else embeddings_of(found[0], self.automorphisms)


def mappings_around_hubs(
    patterns: Sequence[Pattern], env: Coordinator, hubs: int, most: float, *, induced: bool = False, each: float = 0.0
) -> list[int] | None:
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
    induced
        Whether non-edges of a pattern must be non-edges of the graph.
    each
        Steps added for each count of a part, besides its own.

    Returns
    -------
    list of int or None
        None if this count is not much less work than the alternative.

    Raises
    ------
    DoesNotFit
        If a budget has no room for the graph without its hubs.
    """
    left = _left(env, hubs)
    kinds = tuple(kind for kind, number in enumerate(left.found.kinds) if number)
    try:
        terms = [hub_terms(pattern, left.found.joined, kinds, induced=induced) for pattern in patterns]
    except TooManyParts:
        return None
    counts = plan_parts(terms, left, partial(plan_in_core, induced=induced))
    if counts is None or counts.cost + each * counts.number > _GAIN * most:
        return None
    assert left.env is None or isinstance(left.env, Coordinator)
    return counts.mappings(left.env)


def _left(env: Coordinator, hubs: int) -> DerivedGraph[HubFree]:
    began = time.perf_counter()
    left = derived(env, WithoutHubs(hubs))
    number = 0 if left.env is None else left.env.graph.num_vertices
    env.metrics.record("without hubs", 0, env.graph.num_vertices, number, time.perf_counter() - began)
    return left


def plan_around_hubs(pattern: Pattern, graph: Graph, *, induced: bool = False) -> CountPlan:
    """Plan how to count a pattern's embeddings, around hubs or in a core where that probably is much less work.

    Parameters as of `plan_count`.
    """
    whole = plan_in_core(pattern, graph, induced=induced)
    if pattern.labels is not None or not 3 < pattern.num_vertices <= MAX_VERTICES or pattern.is_clique:
        return whole
    hubs = hubs_worth(whole.cost, graph)
    return CountAroundHubs(pattern, whole.cost, whole, induced, hubs) if hubs else whole


def hubs_worth(cost: float, graph: Graph) -> int:
    """Return the number of hubs to count around, if a count takes `cost` steps otherwise; 0: none."""
    if isinstance(graph, StoredGraph):  # removing hubs reads the rows of the graph in memory
        return 0
    return count_hubs(graph) if worth_making(cost, graph) else 0
