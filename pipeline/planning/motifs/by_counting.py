"""Motifs by counting: every connected pattern is counted by the plan that suits it, and the rest is linear algebra.

A non-induced embedding of a pattern is a spanning subgraph of exactly one induced subgraph, so the non-induced count of
a pattern is the sum of the induced counts of all patterns, each times the number of its spanning subgraphs that are
this one. The denser patterns' counts are known first, so each induced count follows by subtraction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from longwall.kernels.host.patterns.pattern_codes import spanning_subgraphs
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import NotEnoughMemory, TooExpensive
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.motifs.census import CensusPlan
from longwall.pipeline.planning.plan import CountPlan, Planning
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.rewrites.hub_removal import mappings_around_hubs
from longwall.pipeline.planning.rewrites.k_core import LEAF_CORE, find_core
from longwall.pipeline.planning.rewrites.pendant_vertices import count_with_leaves
from longwall.pipeline.planning.worth import pays_on_engine
from longwall.storage.errors import RunError

_PART = 1e6  # steps in which a part of a pattern is counted that has no embeddings


@dataclass(frozen=True)
class CountingPlan(CensusPlan):
    """Motifs of `k` vertices, pattern by pattern.

    Attributes
    ----------
    patterns
        All connected patterns, in the order of the pattern codes.
    together
        Counts all non-induced patterns at once that are sums of homomorphism counts; None if no pattern is.
    alone
        Plans for the others, non-induced.
    in_core
        Whether the patterns of `together` are counted in the 2-core, if that fits and is less work.
    hubs
        The number of hubs to count all patterns around, if that fits and is less work; 0: never.
    planner
        Plans the counts of single patterns.
    """

    patterns: tuple[Pattern, ...]
    together: HomomorphismCount | None
    alone: tuple[CountPlan, ...]
    in_core: bool = False
    hubs: int = 0
    planner: Planning = field(kw_only=True, compare=False, repr=False)

    @property
    def shared(self) -> tuple[Pattern, ...]:
        """The patterns that are counted together."""
        return self.together.sums.patterns if self.together else ()

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        plans = [plan.to_dict() for plan in self.alone]
        plans += [{"kind": "shared sums", "pattern": pattern.edge_text} for pattern in self.shared]
        return {"kind": "motif counting", "k": self.k, "estimated_cost": self.cost, "patterns": plans}

    def describe(self) -> str:
        """The plan as text."""
        lines = [
            f"motifs       {len(self.patterns):,} connected patterns of {self.k} vertices, induced",
            "count        non-induced; induced counts by subtracting those of denser patterns:",
        ]
        if self.together is not None:
            number = len(self.together.sums.quotients)
            lines += [f"shared       {len(self.shared)} patterns, as sums of {number} homomorphism counts"]
            lines += [self.together.describe()]
            if self.in_core:
                lines += ["core         or, if that is less work, in the 2-core of the graph, with leaves as weights"]
        width = max((len(plan.pattern.edge_text) for plan in self.alone), default=0)
        for plan in self.alone:
            lines.append(
                f"alone        {plan.pattern.edge_text:<{width}}  {plan.to_dict()['kind']}, {plan.cost:.3g} steps"
            )
        if self.hubs:
            lines += [f"hubs         or, if that is less work, all around the {self.hubs} vertices of highest degree"]
        return "\n".join([*lines, f"estimate     {self.cost:.3g} elementary steps"])

    def counts(self, env: Coordinator) -> list[int]:
        """Count the induced subgraphs of every connected pattern, in the order of the pattern codes."""
        within = spanning_subgraphs(self.k).tolist()
        mappings = self._around_hubs(env) or self._mappings(env)
        plans = {plan.pattern: plan for plan in self.alone}
        counts = [0] * len(self.patterns)
        for p in reversed(range(len(self.patterns))):
            pattern = self.patterns[p]
            if pattern in mappings:
                found = mappings[pattern] // automorphism_count(pattern)
            else:
                found = (plans.get(pattern) or self.planner.plan(Query(pattern), Facts.of(env.graph))).count(env)
            counts[p] = found - sum(within[p][q] * counts[q] for q in range(p + 1, len(counts)))
            if counts[p] < 0:
                raise RunError(f"internal fault: {counts[p]} induced subgraphs {pattern.edge_text}")
        return counts

    def _around_hubs(self, env: Coordinator) -> dict[Pattern, int]:
        """Count the mappings of all patterns around hubs; none if that does not fit or is more work."""
        if not self.hubs or not pays_on_engine(self.cost, Facts.there(env)):
            return {}

        def count() -> list[int]:
            return mappings_around_hubs(self.patterns, env, self.hubs, self.cost, self.planner, each=_PART)

        return _counted(self.patterns, count, env, "the graph without its hubs: counting with them")

    def _mappings(self, env: Coordinator) -> dict[Pattern, int]:
        """Count the mappings of the patterns that are counted together; none if there is no room for that."""
        if self.together is None:
            return {}
        sums, found = self.together.sums, dict[Pattern, int]()
        if self.in_core and pays_on_engine(sums.cost, Facts.there(env)):

            def count() -> list[int]:
                return count_with_leaves(self.shared, env, find_core(env, LEAF_CORE), sums.cost)

            found = _counted(self.shared, count, env, "the 2-core of the graph: counting without it")
        all_at_once = partial(self.together.mappings, env)
        return found or _counted(
            self.shared, all_at_once, env, "the tables of all patterns: counting one after the other"
        )


def _counted(
    patterns: Sequence[Pattern], count: Callable[[], list[int]], env: Coordinator, otherwise: str
) -> dict[Pattern, int]:
    """Return the counts of patterns together; none if that is more work or, with a note, if it does not fit."""
    try:
        return dict(zip(patterns, count(), strict=True))
    except NotEnoughMemory:
        env.observer.note(f"the budget has no room for {otherwise}")
    except TooExpensive:
        pass
    return {}
