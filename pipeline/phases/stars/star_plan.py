"""Plans for induced stars, which are independent sets among the neighbours of a vertex."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from longwall.kernels.exact_numbers import PRIMES, combine
from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit, host_threads
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.cores.core_plan import pays_on_engine, worth_making
from longwall.pipeline.phases.count_plans import CountPlan
from longwall.pipeline.phases.degree_sums import count_stars
from longwall.pipeline.phases.hubs.hub_plan import plan_around_hubs
from longwall.pipeline.phases.stars.star_count import InducedStarCount
from longwall.storage.graph.graph import Graph

_GAIN = 0.5  # of the steps of the whole count, that independent sets may take
_MOST_STEPS = 3e9  # of a thread: some seconds
_PRIME_BITS = 30  # a prime has more


@dataclass(frozen=True)
class CountInducedStars(CountPlan):
    """Independent sets, as many vertices as leaves, among the neighbours of every vertex.

    Attributes
    ----------
    whole
        How the stars are counted where a neighbourhood is too large and dense.
    """

    whole: CountPlan

    @property
    def leaves(self) -> int:
        """Leaves of a star."""
        return self.pattern.num_vertices - 1

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.whole.to_dict() | {"stars": self.leaves}

    def describe(self) -> str:
        """The plan as text."""
        return (
            f"{self.whole.describe()}\n"
            f"stars        or, if that is less work, by independent sets of {self.leaves} among the neighbours of\n"
            "             every vertex"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        most = count_stars(env.graph, self.leaves)
        number = most.bit_length() // _PRIME_BITS + 1
        if most == 0:
            return 0
        if number > len(PRIMES) or not pays_on_engine(self.whole.cost, env):
            return self.whole.count(env)
        patience = int(min(_GAIN * self.whole.cost / host_threads(env), _MOST_STEPS))
        phase = InducedStarCount(self.leaves, PRIMES[:number], patience)
        with suppress(DoesNotFit):  # what had no room is gone before they are counted otherwise
            record = env.run(phase)
            record_levels(env, record.partials, {self.leaves: "count"})
            found = phase.aggregation.result(record.values)
            return combine({prime: [one] for prime, one in zip(phase.primes, found, strict=True)})[0]
        return self.whole.count(env)


def plan_by_degrees(pattern: Pattern, graph: Graph, *, induced: bool = False) -> CountPlan:
    """Plan how to count a pattern's embeddings, looking at how the degrees of the graph are distributed.

    Parameters as of `plan_count`.
    """
    whole = plan_around_hubs(pattern, graph, induced=induced)
    if not induced or not _is_star(pattern) or not worth_making(whole.cost, graph):
        return whole
    return CountInducedStars(pattern, whole.cost, whole)


def _is_star(pattern: Pattern) -> bool:
    """Whether a pattern without labels is a star of three leaves at least."""
    degrees = sorted(map(len, pattern.neighbours))
    return pattern.labels is None and pattern.num_vertices > 3 and degrees[-2] == 1
