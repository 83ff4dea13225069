"""Plans for patterns whose vertices all have several neighbours: they are counted in a core, where that is smaller."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.cores.in_core import CoreCoordinator, core_coordinator
from longwall.pipeline.phases.count_plans import CountPlan, plan_count
from longwall.storage.graph.core import low_vertices
from longwall.storage.graph.graph import Graph

_LONG = 1e7  # steps of a count that is worth looking for a core
_STEPS_PER_ARC = 50.0  # and for each arc: to peel a graph takes about two of them, to make its core four more
_FEW_LOW = 1 / 16  # of the vertices that are peeled at once: with fewer, the core is most of the graph


@dataclass(frozen=True)
class CountInCore(CountPlan):
    """A count in the core of as many neighbours as every vertex of the pattern has.

    Attributes
    ----------
    whole
        How the pattern is counted in the whole graph, where there is no room for the core.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    """

    whole: CountPlan
    induced: bool

    @property
    def least(self) -> int:
        """The fewest neighbours of a vertex of the pattern."""
        return least_neighbours(self.pattern)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.whole.to_dict() | {"core": self.least}

    def describe(self) -> str:
        """The plan as text."""
        return (
            f"{self.whole.describe()}\n"
            f"core         all of this in the {self.least}-core of the graph, planned anew there, if there is room"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        try:
            core = _core(env, self.least)
            if core is None:
                return 0
            return plan_count(self.pattern, core.graph, induced=self.induced).count(core)
        except DoesNotFit:
            env.observer.note(f"the budget has no room for the {self.least}-core of the graph: counting without it")
            return self.whole.count(env)


def least_neighbours(pattern: Pattern) -> int:
    """Return the fewest neighbours of a vertex of a pattern."""
    return min(map(len, pattern.neighbours))


def plan_in_core(pattern: Pattern, graph: Graph, *, induced: bool = False) -> CountPlan:
    """Plan how to count a pattern's embeddings, in a core of the graph if that is probably much smaller.

    Parameters as of `plan_count`.
    """
    whole, least = plan_count(pattern, graph, induced=induced), least_neighbours(pattern)
    if least < 2 or pattern.is_clique or whole.cost < max(_LONG, _STEPS_PER_ARC * len(graph.indices)):
        return whole
    if low_vertices(graph, least) < _FEW_LOW * graph.num_vertices:
        return whole
    return CountInCore(pattern, whole.cost, whole, induced)


def _core(env: Coordinator, least: int) -> CoreCoordinator | None:
    """Return the environment with the core, and put what it took into the metrics."""
    began = time.perf_counter()
    core = core_coordinator(env, least)
    left = 0 if core is None else core.graph.num_vertices
    env.metrics.record("core", 0, env.graph.num_vertices, left, time.perf_counter() - began)
    return core
