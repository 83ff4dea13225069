"""Count the maps of connected parts of patterns into the graph without its hubs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.phases.derived_graph import DerivedGraph
from longwall.pipeline.planning.hubs.parts import Part, Parts
from longwall.pipeline.planning.plan import CountPlan
from longwall.storage.graph.derived.hubs import HubFree
from longwall.storage.graph.graph import Graph

Terms = Sequence[tuple[Parts, int]]
"""Terms of a sum: connected parts of a pattern, whose numbers of maps are multiplied, and a coefficient."""
Planner = Callable[[Pattern, Graph], CountPlan]
"""Plans the count of a pattern in a graph."""
_MOST_PLANS = 200  # a count of nothing takes milliseconds
_LABEL_STEPS = 10.0  # of an arc, to lay the graph out for a pattern with labels


@dataclass(frozen=True)
class PartCounts:
    """Combines the counts of parts to the counts of patterns.

    Attributes
    ----------
    terms
        The terms of each pattern.
    plans
        The plans that count the maps of each part; no plan if the part has no map.
    vertices
        The number of maps of each part of one vertex.
    arcs
        Arcs of the graph without its hubs.
    """

    terms: tuple[Terms, ...]
    plans: dict[Part, list[CountPlan]]
    vertices: dict[Part, int]
    arcs: int

    @property
    def number(self) -> int:
        """The number of counts."""
        return sum(map(len, self.plans.values()))

    @property
    def cost(self) -> float:
        """Estimated number of elementary steps."""
        plans = [plan for plans in self.plans.values() for plan in plans]
        labelled = sum(1 for plan in plans if plan.pattern.labels is not None)
        return sum(plan.cost for plan in plans) + _LABEL_STEPS * self.arcs * labelled

    def mappings(self, env: Coordinator | None) -> list[int]:
        """Count the maps of each pattern; `env` is that of the graph without its hubs, or None if it has no edge."""
        found = dict(self.vertices)
        for part, plans in self.plans.items():
            assert env is not None
            found[part] = sum(plan.count(env) * plan.automorphisms for plan in plans)
        return [sum(times * prod(found[part] for part in parts) for parts, times in terms) for terms in self.terms]


def plan_parts(terms: Sequence[Terms], left: DerivedGraph[HubFree], planner: Planner) -> PartCounts | None:
    """Plan the counts of all parts that the terms of some pattern need; None if they are too many."""
    found, graph = left.found, None if left.env is None else left.env.graph
    parts = {part for one in terms for some, _ in one for part in some}
    vertices = {
        part: sum(number for kind, number in enumerate(found.kinds) if part.needs[0] >> kind & 1)
        for part in parts
        if part.size == 1
    }
    patterns = {part: [] if graph is None else list(_patterns(part, graph)) for part in parts if part.size > 1}
    kept = tuple(
        tuple((some, number) for some, number in one if all(part.size == 1 or patterns[part] for part in some))
        for one in terms
    )
    needed = {part for one in kept for some, _ in one for part in some if part.size > 1}
    if sum(len(patterns[part]) for part in needed) > _MOST_PLANS:
        return None
    plans: dict[Part, list[CountPlan]] = {}
    for part in sorted(needed):
        assert graph is not None
        plans[part] = [planner(pattern, graph) for pattern in patterns[part]]
    return PartCounts(kept, plans, vertices, 0 if graph is None else len(graph.indices))


def _patterns(part: Part, graph: Graph) -> Iterable[Pattern]:
    """Yield the patterns whose maps add up to those of a part; none where the graph has no vertices for one."""
    bare = Pattern(part.size, part.edges)
    if max(map(len, bare.neighbours)) > graph.stats.max_degree:
        return
    there = sum(1 << kind for kind in graph.stats.label_counts)
    choices = []
    for need in part.needs:
        kinds = [kind for kind in graph.stats.label_counts if need >> kind & 1]
        choices.append([ANY_LABEL] if need & there == there else kinds)
    if np.prod([float(len(one)) for one in choices]) > _MOST_PLANS:
        yield from [bare] * (_MOST_PLANS + 1)
        return
    for labels in product(*choices):
        yield bare if set(labels) == {ANY_LABEL} else Pattern(part.size, part.edges, labels)
