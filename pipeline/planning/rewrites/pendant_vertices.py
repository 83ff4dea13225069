"""Counts in the 2-core, in which the leaves of the pattern are weights of vertices: see `planning/leaves`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import TooExpensive
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.cores.leaf_count import LeafCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts, pass_costs
from longwall.pipeline.planning.homomorphisms.sums import MAX_VERTICES, denser
from longwall.pipeline.planning.leaves.leaf_sums import plan_leaf_sums
from longwall.pipeline.planning.method import LABELS, Rewrite
from longwall.pipeline.planning.methods.homomorphisms import induced_by_denser
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal, embeddings_of
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.rewrites.k_core import LEAF_CORE, find_core, least_neighbours, no_core
from longwall.pipeline.planning.worth import too_quick

_GAIN = 0.5  # of the steps in the whole graph, that counting with leaves may take: tables are made for each modulus


@dataclass(frozen=True)
class PendantVerticesPlan(CountPlan):
    """A count in the 2-core with leaves as weights; its cost is that of the count in the whole graph.

    Attributes
    ----------
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    """

    induced: bool
    tried: ClassVar[bool] = True
    needs = f"the {LEAF_CORE}-core of the graph"

    def unsuited(self, facts: Facts) -> str:
        """Return why not: where the graph lies in its store, or a device counts in less time than the host peels."""
        return super().unsuited(facts) or too_quick(self.cost, facts, "to make the core")

    def to_dict(self) -> dict[str, Any]:
        """The core."""
        return {"core": LEAF_CORE}

    def describe(self) -> str:
        """The plan as text."""
        return "core         or, if that is less work, in the 2-core of the graph, with the pattern's leaves as weights"

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        more = denser(self.pattern) if self.induced else ((Pattern(self.pattern.num_vertices, self.pattern.edges), 1),)
        core = find_core(env, LEAF_CORE)
        found = count_with_leaves(tuple(pattern for pattern, _ in more), env, core, self.cost)
        mappings = sum(sign * number for (_, sign), number in zip(more, found, strict=True))
        return embeddings_of(mappings, self.automorphisms)


class PendantVertices(Rewrite):
    """Counts of patterns with leaves in the 2-core."""

    name: ClassVar[str] = "pendant-vertices"
    family: ClassVar[str] = "sums"

    def propose(self, query: Query, facts: Facts, planner: Planning, best: CountPlan) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the count with leaves as weights, if the 2-core is probably a small part of the graph."""
        pattern = query.pattern
        if least_neighbours(pattern) > 1:
            return Refusal("the pattern has no leaf")
        if pattern.labels is not None:
            return LABELS
        if pattern.num_vertices > MAX_VERTICES:
            return Refusal(f"the pattern has more than {MAX_VERTICES} vertices")
        if query.induced and not induced_by_denser(pattern):
            return Refusal("too many patterns have more edges")
        if (refusal := no_core(query, facts, best, 1)) is not None:
            return refusal
        return PendantVerticesPlan(pattern, best.cost, query.induced, method=self.name)


def count_with_leaves(
    patterns: tuple[Pattern, ...], env: Coordinator, core: Coordinator | None, most: float
) -> list[int]:
    """Count the mappings of unlabelled patterns in the 2-core.

    Raises
    ------
    TooExpensive
        If that is not much less than `most` steps.
    NotEnoughMemory
        If there is no room for it.
    """
    costs = PassCosts(0.0, 0.0, 0.0) if core is None else pass_costs(core.graph.stats)
    sums = plan_leaf_sums(patterns, costs)
    if sums is None or sums.cost + len(env.graph.indices) * sums.whole.vertex_tables > _GAIN * most:
        raise TooExpensive
    return LeafCount(sums).mappings(env, core)
