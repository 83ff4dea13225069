"""Induced or labelled stars: choices of the leaves among the neighbours of each vertex."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, prod
from typing import Any, ClassVar

from longwall.kernels.exact_numbers import PRIMES, combine
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import TooExpensive, host_threads
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.phases.by_label.layouts import labels_are_there
from longwall.pipeline.phases.degree_sums import count_stars
from longwall.pipeline.phases.star_count import Star, StarCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Rewrite
from longwall.pipeline.planning.methods.search import steps_to
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.search.search_planner import LEAST_OF_CANDIDATES
from longwall.pipeline.planning.worth import least_cost, pays_on_engine, worth_making
from longwall.storage.graph.graph import Graph

_GAIN = 0.5  # of the steps of another count, that independent sets may take
_MOST_STEPS = 3e9  # of a thread: some seconds
_MOST_PRODUCTS = 1 << 16  # of coefficients, when two polynomials are multiplied
_PRIME_BITS = 30  # a prime has more
_LEAST_VERTICES, _LEAST_LABELLED = 4, 3  # of an induced star: smaller ones without labels are counted by triangles
_ANY_STEPS = 1 << 62
_HUGE = 10**300


@dataclass(frozen=True)
class StarLeavesPlan(CountPlan):
    """Choices of leaves among the neighbours of every vertex; for induced stars these are independent sets.

    Its cost is that of the count that it is tried ahead of.

    Attributes
    ----------
    induced
        Whether leaves must not be adjacent.
    """

    induced: bool
    tried: ClassVar[bool] = True
    needs = "the choices of leaves"

    @property
    def star(self) -> Star:
        """The star to count."""
        return Star.of(self.pattern, induced=self.induced)

    def unsuited(self, facts: Facts) -> str:
        """Return why not: where the graph lies in its store, or another count on a device is as quick."""
        slow = self.induced and not pays_on_engine(self.cost, facts)
        return super().unsuited(facts) or ("other methods take less time on this machine" if slow else "")

    def to_dict(self) -> dict[str, Any]:
        """The number of leaves."""
        return {"stars": self.star.leaves.number}

    def describe(self) -> str:
        """The plan as text."""
        leaves = self.star.leaves.number
        how = f"independent sets of {leaves}" if self.induced else f"choices of {leaves}"
        return f"stars        or, if that is less work, by {how} among the neighbours of\n             every vertex"

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        star = self.star
        leaves = star.leaves.number
        most = count_stars(env.graph, leaves) * _orders(self.pattern)
        number = most.bit_length() // _PRIME_BITS + 1
        if most == 0:
            return 0
        if number > len(PRIMES):
            raise TooExpensive
        phase = StarCount(star, PRIMES[:number], self._patience(env))
        record = env.run(phase)
        record_levels(env, record.partials, {leaves: "count"})
        found = phase.aggregation.result(record.values)
        return combine({prime: [one] for prime, one in zip(phase.primes, found, strict=True)})[0]

    def _patience(self, env: Coordinator) -> int:
        """Return the steps that a worker may take: at least as many as reading the graph a few times takes."""
        if not self.induced:
            return _ANY_STEPS  # it is read once
        return int(min(max(_GAIN * self.cost / host_threads(env), least_cost(env.graph)), _MOST_STEPS))


class StarLeaves(Rewrite):
    """Induced or labelled stars by the choices of leaves at every vertex."""

    name: ClassVar[str] = "star-leaves"

    def propose(self, query: Query, facts: Facts, planner: Planning, best: CountPlan) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the choices of leaves for a star that is induced or has labels."""
        pattern, induced, labelled = query.pattern, query.induced, query.pattern.labels is not None
        least = (_LEAST_LABELLED if labelled else _LEAST_VERTICES) if induced else LEAST_OF_CANDIDATES
        if pattern.edge_labels is not None or query.join == "edges":
            return Refusal("labels of edges and binary joins are for searches")
        if not _is_star(pattern) or not (labelled or induced) or pattern.num_vertices < least:
            return Refusal(f"the pattern is no star of {least} vertices or more that is induced or has labels")
        if facts.graph is None or facts.residency == "stored" or not labels_are_there(pattern, facts.stats):
            return Refusal("the graph is not in memory, or lacks a label")
        if not induced:
            return StarLeavesPlan(pattern, best.cost, induced, method=self.name)
        cost = max(best.cost, _search_cost(pattern, facts.graph)) if labelled else best.cost
        if Star.of(pattern, induced=True).leaves.products > _MOST_PRODUCTS or not worth_making(cost, facts.graph):
            return Refusal("other methods take less time than to look at each pair of neighbours")
        if query.limit is not None and steps_to(query.limit, pattern) < cost:
            return Refusal("a search ends at the limit")
        return StarLeavesPlan(pattern, cost, induced, method=self.name)


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
