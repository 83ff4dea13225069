"""Plans that count in a core of the graph, where that is probably much smaller than the graph."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.by_label.plans import CountByLabel, plan_count
from longwall.pipeline.phases.cores.in_core import core_environment
from longwall.pipeline.phases.cores.leaf_count import LeafCount
from longwall.pipeline.phases.count_plans import (
    CountPlan,
    CountStars,
    embeddings_of,
    induced_by_denser,
)
from longwall.pipeline.phases.range_count import RangePhase
from longwall.pipeline.planning.homomorphisms import MAX_VERTICES, denser
from longwall.pipeline.planning.leaves.leaf_sums import plan_leaf_sums
from longwall.pipeline.planning.pattern_core import PassCosts, pass_costs
from longwall.storage.graph.derived.core import low_vertices
from longwall.storage.graph.graph import Graph
from longwall.storage.streaming.stored_graph import StoredGraph

_LEAF_CORE = 2
_GAIN = 0.5  # of the steps in the whole graph, that counting with leaves may take: tables are made for each modulus
_LONG = 1e7  # steps of a count that is worth looking for a core
_STEPS_PER_ARC = 50.0  # and for each arc: to peel a graph takes about two of them, to make its core four more
_DEVICE = 100.0  # how much faster a device counts than the core of the host that peels
_FEW_LOW = 1 / 16  # of the vertices, or edges, that are peeled at once: with fewer, the core is most of the graph


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
        """Neighbours that every vertex of the core has there."""
        return least_neighbours(self.pattern)

    @property
    def streamed(self) -> RangePhase | None:
        """See `CountPlan`."""
        return self.whole.streamed

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
        if isinstance(env.graph, StoredGraph) or not pays_on_engine(self.whole.cost, env):
            return self.whole.count(env)
        with suppress(DoesNotFit):  # what had no room is gone before they are counted without it
            return self._count(env, find_core(env, self.least))
        env.observer.note(f"the budget has no room for the {self.least}-core of the graph: counting without it")
        return self.whole.count(env)

    def _count(self, env: Coordinator, core: Coordinator | None) -> int:  # noqa: ARG002
        if core is None:
            return 0
        return plan_count(self.pattern, core.graph, induced=self.induced).count(core)


@dataclass(frozen=True)
class CountWithLeaves(CountInCore):
    """A count in the 2-core, in which leaves of the pattern are weights: see `planning/leaves`."""

    @property
    def least(self) -> int:
        """Neighbours that every vertex of the core has there."""
        return _LEAF_CORE

    def describe(self) -> str:
        """The plan as text."""
        return (
            f"{self.whole.describe()}\n"
            "core         or, if that is less work, in the 2-core of the graph, with the pattern's leaves as weights"
        )

    def _count(self, env: Coordinator, core: Coordinator | None) -> int:
        more = denser(self.pattern) if self.induced else ((Pattern(self.pattern.num_vertices, self.pattern.edges), 1),)
        found = count_with_leaves(tuple(pattern for pattern, _ in more), env, core, self.whole.cost)
        if found is None:
            return self.whole.count(env)
        mappings = sum(sign * number for (_, sign), number in zip(more, found, strict=True))
        return embeddings_of(mappings, self.automorphisms)


def count_with_leaves(
    patterns: tuple[Pattern, ...], env: Coordinator, core: Coordinator | None, most: float
) -> list[int] | None:
    """Count the mappings of unlabelled patterns in the 2-core; None if that is not much less than `most` steps.

    Raises
    ------
    DoesNotFit
        If there is no room for it.
    """
    costs = PassCosts(0.0, 0.0, 0.0) if core is None else pass_costs(core.graph.stats)
    sums = plan_leaf_sums(patterns, costs)
    if sums is None or sums.cost + len(env.graph.indices) * sums.whole.vertex_tables > _GAIN * most:
        return None
    return LeafCount(sums).mappings(env, core)


def least_neighbours(pattern: Pattern) -> int:
    """Return the fewest neighbours of a vertex of a pattern."""
    return min(map(len, pattern.neighbours))


def plan_in_core(pattern: Pattern, graph: Graph, *, induced: bool = False) -> CountPlan:
    """Plan how to count a pattern's embeddings, in a core of the graph if that is probably much smaller.

    Parameters as of `plan_count`.
    """
    whole, least = plan_count(pattern, graph, induced=induced), least_neighbours(pattern)
    if (
        pattern.is_clique
        or isinstance(whole, CountStars)
        or not worth_a_core(whole.cost, graph, max(least, _LEAF_CORE))
        or (isinstance(whole, CountByLabel) and not peels_many_edges(graph, least))
    ):
        return whole
    if least > 1:
        return CountInCore(pattern, whole.cost, whole, induced)
    if (
        pattern.labels is not None
        or pattern.num_vertices > MAX_VERTICES
        or (induced and not induced_by_denser(pattern))
    ):
        return whole
    return CountWithLeaves(pattern, whole.cost, whole, induced)


def worth_a_core(cost: float, graph: Graph, least: int) -> bool:
    """Return whether a count of so many steps is worth looking for a core, which is probably a part of the graph."""
    return worth_making(cost, graph) and low_vertices(graph, least) >= _FEW_LOW * graph.num_vertices


def peels_many_edges(graph: Graph, least: int) -> bool:
    """Return whether vertices that are peeled at once take a good part of the edges with them.

    A layout by label has only the edges that a pattern can match, and tests the degrees of vertices there.
    """
    return low_vertices(graph, least) * (least - 1) >= _FEW_LOW * graph.num_edges


def worth_making(cost: float, graph: Graph) -> bool:
    """Return whether a count of so many steps takes much longer than to make a part of the graph on the host."""
    return cost >= least_cost(graph)


def pays_on_engine(cost: float, env: Coordinator) -> bool:
    """Return whether a count of so many steps, which is worth looking for a core on the host, is where it is counted.

    R-MAT 16 on an H200: its 5-cycles take 7 ms, its core 35.
    """
    return not env.whole and (not env.resources.on_device or cost >= _DEVICE * least_cost(env.graph))


def least_cost(graph: Graph) -> float:
    """Return the steps above which a count takes much longer than making a part of the graph on the host."""
    return max(_LONG, _STEPS_PER_ARC * 2 * graph.num_edges)


def find_core(env: Coordinator, least: int) -> Coordinator | None:
    """Return the environment with a core, None where that is empty; put what it took into the metrics.

    Raises
    ------
    DoesNotFit
        If there is no room for it.
    """
    began = time.perf_counter()
    core = core_environment(env, least)
    left = 0 if core is None else core.graph.num_vertices
    env.metrics.record("core", 0, env.graph.num_vertices, left, time.perf_counter() - began)
    return core
