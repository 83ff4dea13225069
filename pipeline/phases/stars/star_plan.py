"""Plans for induced or labelled stars: choose the leaves among the neighbours of each vertex."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import factorial, prod
from typing import Any

from longwall.kernels.exact_numbers import PRIMES, combine
from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit, host_threads
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.phases.by_label.plans import labels_are_there
from longwall.pipeline.phases.cores.core_plan import least_cost, pays_on_engine, worth_making
from longwall.pipeline.phases.count_plans import CountPlan
from longwall.pipeline.phases.degree_sums import count_stars
from longwall.pipeline.phases.hubs.hub_plan import plan_around_hubs
from longwall.pipeline.phases.limited_count import steps_to
from longwall.pipeline.phases.stars.star_count import Star, StarCount
from longwall.pipeline.planning.search_planner import LEAST_OF_CANDIDATES
from longwall.storage.graph.graph import Graph
from longwall.storage.streaming.stored_graph import StoredGraph

_GAIN = 0.5  # of the steps of the whole count, that independent sets may take
_MOST_STEPS = 3e9  # of a thread: some seconds
_MOST_PRODUCTS = 1 << 16  # of coefficients, when two polynomials are multiplied
_PRIME_BITS = 30  # a prime has more
_LEAST_VERTICES, _LEAST_LABELLED = 4, 3  # of an induced star: smaller ones without labels are counted by triangles
_ANY_STEPS = 1 << 62
_HUGE = 10**300


@dataclass(frozen=True)
class CountStarsByCentre(CountPlan):
    """Choices of leaves among the neighbours of every vertex; for induced stars these are independent sets.

    Attributes
    ----------
    whole
        The plan if a neighbourhood is too large and dense.
    induced
        Whether leaves must not be adjacent.
    """

    whole: CountPlan
    induced: bool

    @property
    def star(self) -> Star:
        """The star to count."""
        return Star.of(self.pattern, induced=self.induced)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.whole.to_dict() | {"stars": self.star.leaves.number}

    def describe(self) -> str:
        """The plan as text."""
        leaves = self.star.leaves.number
        how = f"independent sets of {leaves}" if self.induced else f"choices of {leaves}"
        return (
            f"{self.whole.describe()}\n"
            f"stars        or, if that is less work, by {how} among the neighbours of\n"
            "             every vertex"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        star = self.star
        leaves = star.leaves.number
        most = count_stars(env.graph, leaves) * _orders(self.pattern)
        number = most.bit_length() // _PRIME_BITS + 1
        if most == 0:
            return 0
        if number > len(PRIMES) or (self.induced and not pays_on_engine(self.cost, env)):
            return self.whole.count(env)
        phase = StarCount(star, PRIMES[:number], self._patience(env))
        with suppress(DoesNotFit):  # what had no room is gone before they are counted otherwise
            record = env.run(phase)
            record_levels(env, record.partials, {leaves: "count"})
            found = phase.aggregation.result(record.values)
            return combine({prime: [one] for prime, one in zip(phase.primes, found, strict=True)})[0]
        return self.whole.count(env)

    def _patience(self, env: Coordinator) -> int:
        """Return the steps that a worker may take: at least as many as reading the graph a few times takes."""
        if not self.induced:
            return _ANY_STEPS  # it is read once
        return int(min(max(_GAIN * self.cost / host_threads(env), least_cost(env.graph)), _MOST_STEPS))


def plan_by_degrees(pattern: Pattern, graph: Graph, *, induced: bool = False) -> CountPlan:
    """Plan how to count a pattern's embeddings, looking at how the degrees of the graph are distributed.

    Parameters as of `plan_count`.
    """
    return plan_star(pattern, graph, plan_around_hubs(pattern, graph, induced=induced), induced=induced)


def plan_star(
    pattern: Pattern, graph: Graph, whole: CountPlan, *, induced: bool, limit: int | None = None
) -> CountPlan:
    """Plan how to count a pattern by the choices of leaves, if it is a star and that is less work.

    Parameters
    ----------
    pattern
        The pattern; its edges have no labels.
    graph
        The data graph.
    whole
        The fallback: a plan that counts the pattern in another way.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    limit
        The number of embeddings after which the count may end.
    """
    labelled = pattern.labels is not None
    least = (_LEAST_LABELLED if labelled else _LEAST_VERTICES) if induced else LEAST_OF_CANDIDATES
    if isinstance(graph, StoredGraph) or not _is_star(pattern) or not (labelled or induced):
        return whole
    if pattern.num_vertices < least or not labels_are_there(pattern, graph.stats):
        return whole
    if not induced:
        return CountStarsByCentre(pattern, whole.cost, whole, induced)
    cost = max(whole.cost, _search_cost(pattern, graph)) if labelled else whole.cost
    if Star.of(pattern, induced=True).leaves.products > _MOST_PRODUCTS or not worth_making(cost, graph):
        return whole
    if limit is not None and steps_to(limit, pattern) < cost:
        return whole
    return CountStarsByCentre(pattern, cost, whole, induced)


def _search_cost(pattern: Pattern, graph: Graph) -> float:
    """Estimate the steps of a search for a star if labels were random: the search reads a list for each row."""
    stats, star = graph.stats, Star.of(pattern, induced=True)
    shares = [stats.label_counts[label] / stats.num_vertices for label in star.wanted]
    share = prod(one**number for one, number in zip(shares, star.leaves.named, strict=True))
    return float(min(_orders(pattern) * count_stars(graph, star.leaves.number), _HUGE)) * share


def _orders(pattern: Pattern) -> int:
    """Bound the number of ways to assign the leaves of a star to the same number of vertices."""
    return max(factorial(pattern.num_vertices - 1) // automorphism_count(pattern), 1)


def _is_star(pattern: Pattern) -> bool:
    """Whether a pattern is a star of two leaves at least."""
    first, second, *_ = sorted(map(len, pattern.neighbours), reverse=True)
    return first > second == 1
