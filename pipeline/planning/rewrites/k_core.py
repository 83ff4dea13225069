"""Counts in the core of the graph in which every vertex has as many neighbours as each vertex of the pattern."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.cores.in_core import core_environment
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import ON_PARTS, Rewrite
from longwall.pipeline.planning.methods.degrees import DegreesPlan
from longwall.pipeline.planning.methods.search import ends_early
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.worth import too_quick, worth_a_core

LEAF_CORE = 2


@dataclass(frozen=True)
class InCorePlan(CountPlan):
    """A count in a core, planned anew there; its cost is that of the count in the whole graph.

    Attributes
    ----------
    query
        The query.
    least
        Neighbours that every vertex of the core has there.
    planner
        Plans the count in the core.
    """

    query: Query
    least: int
    planner: Planning = field(compare=False, repr=False)
    tried: ClassVar[bool] = True

    @property
    def needs(self) -> str:
        """The core."""
        return f"the {self.least}-core of the graph"

    def unsuited(self, facts: Facts) -> str:
        """Return why not: where the graph lies in its store, or a device counts in less time than the host peels."""
        return super().unsuited(facts) or too_quick(self.cost, facts, "to make the core")

    def to_dict(self) -> dict[str, Any]:
        """The core."""
        return {"core": self.least}

    def describe(self) -> str:
        """The plan as text."""
        return f"core         all of this in the {self.least}-core of the graph, planned anew there, if there is room"

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        core = find_core(env, self.least)
        return 0 if core is None else self.planner.plan(self.query, Facts.there(core)).count(core)


class KCore(Rewrite):
    """Counts in a core, for patterns in which each vertex has two neighbours or more."""

    name: ClassVar[str] = "k-core"

    def propose(self, query: Query, facts: Facts, planner: Planning, best: CountPlan) -> CountPlan | Refusal:
        """Propose the count in the core, if that is probably a small part of the graph."""
        least = least_neighbours(query.pattern)
        if least < LEAF_CORE:
            return Refusal("a vertex of the pattern has a single neighbour")
        if (refusal := no_core(query, facts, best, least)) is not None:
            return refusal
        inside = planner.but(*ON_PARTS, "candidates")
        return InCorePlan(query.pattern, best.cost, query.counted(None), least, inside, method=self.name)


def no_core(query: Query, facts: Facts, best: CountPlan, least: int) -> Refusal | None:
    """Return why no count is made in a core with `least` neighbours of each vertex."""
    if ends_early(query, best) or query.pattern.edge_labels is not None or query.join == "edges":
        return Refusal("searches that end at a limit, know labels of edges or join edges use the whole graph")
    if query.pattern.is_clique:
        return Refusal("cliques are counted by smaller neighbours, of which a core has as many")
    if isinstance(best, DegreesPlan):
        return Refusal("degrees are read once")
    if facts.graph is None:
        return Refusal("the graph is not made yet")
    if not worth_a_core(best.cost, facts.graph, max(least, LEAF_CORE)):
        return Refusal("the count is short, or the core probably has most of the edges")
    return None


def least_neighbours(pattern: Pattern) -> int:
    """Return the fewest neighbours of a vertex of a pattern."""
    return min(map(len, pattern.neighbours))


def find_core(env: Coordinator, least: int) -> Coordinator | None:
    """Return the environment with a core, None where that is empty; put what it took into the metrics.

    Raises
    ------
    NotEnoughMemory
        If there is no room for it.
    """
    began = time.perf_counter()
    core = core_environment(env, least)
    left = 0 if core is None else core.graph.num_vertices
    env.metrics.record("core", 0, env.graph.num_vertices, left, time.perf_counter() - began)
    return core
