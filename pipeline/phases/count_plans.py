"""Counting without enumerating: choose between a search and specialised kernels.

Cliques have bitmap tables; a 4-cycle is two wedges with the same ends, so wedges are aggregated by their ends, and two
triangles at the same edge are a diamond; many other patterns are counted through homomorphisms. Induced counts are
signed sums of the non-induced counts of all patterns with more edges, where those are cheaper than a search.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

from longwall.pipeline.execution.device_graph import holds_part
from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.phases.degree_sums import count_reading_less, count_stars, triangle_phase
from longwall.pipeline.phases.range_count import RangeCount, RangePhase
from longwall.pipeline.planning.pattern_core import pass_costs
from longwall.pipeline.planning.search_planner import plan_match
from longwall.stages.cliques.leaves import CountCliquesByPivots, suits_pivots
from longwall.stages.range_counting import (
    CountCliques,
    CountDiamonds,
    CountFiveCycles,
    CountRanges,
)
from longwall.storage.errors import RunError
from longwall.storage.streaming.stored_graph import StoredGraph

if TYPE_CHECKING:
    from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
    from longwall.pipeline.planning.search_plan import MatchPlan
    from longwall.storage.graph.stats import GraphStats

MAX_INDUCED_VERTICES = 5  # a tree on 6 vertices has 1,024 patterns with more edges
FEW_ABSENT_EDGES = 2  # with so few, there are few whatever the vertices
# With so many, counts of arcs take less time on a device than whole rows: diamonds of R-MAT 15, which has 442,076, take
# 0.28 and 0.47 ms so, those of R-MAT 14, with 213,184, take 0.24 and 0.23 (H200).
_MANY_EDGES = 1 << 18


@dataclass(frozen=True)
class CountPlan(ABC):
    """How the embeddings of a pattern are counted."""

    pattern: Pattern
    cost: float
    """Estimated number of elementary steps."""

    @property
    def streamed(self) -> RangePhase | None:
        """The phase that counts a graph that stays in its store; None: the graph must be in memory."""
        return None

    @cached_property
    def automorphisms(self) -> int:
        """Size of the automorphism group: mappings per embedding."""
        return automorphism_count(self.pattern)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data, for the manifest."""

    @abstractmethod
    def describe(self) -> str:
        """The plan as text."""

    @abstractmethod
    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""

    def count_up_to(self, limit: int, env: Coordinator) -> int:  # noqa: ARG002 - a formula finds all at once
        """Count up to `limit` embeddings; a plan that cannot stop early counts all."""
        return self.count(env)

    def _searched(self, env: Coordinator, short: str = "") -> int:
        """Count by a search, where the specialised kernel does not suffice, or there is no room for what it needs."""
        if short:
            env.observer.note(f"the budget has no room for {short}: searching instead")
        return _search(self.pattern, env.graph.stats, induced=False).count(env)

    def _title(self) -> str:
        pattern = self.pattern
        return (
            f"pattern      {pattern.name or pattern.edge_text}  ({pattern.edge_text}), "
            f"{pattern.num_vertices} vertices, {len(pattern.edges)} edges, {self.automorphisms} automorphisms\n"
        )

    def _facts(self, kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "pattern": self.pattern.edge_text,
            "automorphisms": self.automorphisms,
            "estimated_cost": self.cost,
        }


@dataclass(frozen=True)
class CountBySearch(CountPlan):
    """Depth-first search by a matching order."""

    search: MatchPlan

    @property
    def streamed(self) -> RangePhase | None:
        """See `CountPlan`."""
        return None if self.search.induced or self.search.joined else triangle_phase(self.pattern, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.search.to_dict()

    def describe(self) -> str:
        """The plan as text."""
        return self.search.describe()

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        from longwall.pipeline.phases.search_count import count_matches

        known = None if self.search.induced else count_reading_less(self.pattern, env)
        return count_matches(self.search, env) if known is None else known

    def count_up_to(self, limit: int, env: Coordinator) -> int:
        """Count at most `limit` embeddings."""
        from longwall.pipeline.phases.search_count import count_matches

        return self.count(env) if isinstance(env.graph, StoredGraph) else count_matches(self.search, env, limit)


@dataclass(frozen=True)
class CountByKernel(CountPlan):
    """A count that a kernel of its own takes."""

    phase: RangeCount
    otherwise: RangeCount | None = None
    """What counts them where that is faster, if it is something else: see `_prefers_order`."""

    @property
    def streamed(self) -> RangePhase | None:
        """See `CountPlan`."""
        return self.phase if self.phase.count.streams else None

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts(self.phase.count.method)

    def describe(self) -> str:
        """The plan as text."""
        return self._title() + self.phase.describe()

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        phases = [self.phase] if self.otherwise is None else [self.phase, self.otherwise]
        for phase in reversed(phases) if _prefers_order(env) else phases:
            with suppress(DoesNotFit):
                found: int = phase.run(env)
                return found
        return self._searched(env, self.phase.count.method)


@dataclass(frozen=True)
class CountStars(CountPlan):
    """Stars of three leaves or more: every vertex of degree d has as many as there are choices of its neighbours."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts("degrees")

    def describe(self) -> str:
        """The plan as text."""
        leaves = self.pattern.num_vertices - 1
        return f"{self._title()}count        degrees: a vertex of degree d is the centre of (d choose {leaves}) stars"

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        began = time.perf_counter()
        total = count_stars(env.graph, self.pattern.num_vertices - 1)
        env.metrics.record("degrees", 0, env.graph.num_vertices, total, time.perf_counter() - began)
        return total


@dataclass(frozen=True)
class CountByHomomorphisms(CountPlan):
    """Signed sums of homomorphism counts, all taken by one table program.

    Attributes
    ----------
    counted
        Counts the mappings of patterns: of this one or, where its induced embeddings are counted, of all patterns with
        the same vertices and more edges, too.
    signs
        What the mappings of each are multiplied by.
    """

    counted: HomomorphismCount
    signs: tuple[int, ...]

    @property
    def streamed(self) -> RangePhase | None:
        """See `CountPlan`."""
        return triangle_phase(self.pattern, 0.0) if len(self.signs) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        sums = self.counted.sums
        coefficients: Counter[tuple[str, int]] = Counter()
        for sign, terms in zip(self.signs, sums.terms, strict=True):
            for term in terms:
                coefficients[term.kind, term.number] += sign * term.coefficient
        terms_ = [
            {"coefficient": c, "pattern": sums.counted_text(kind, n)} for (kind, n), c in coefficients.items() if c
        ]
        rows = (sums.program.vertices, sums.program.arcs, sums.program.common, *sums.program.rows)
        return self._facts("homomorphisms") | {
            "passes": sum(program.passes for program in rows),
            "wide_passes": sum(program.wide_passes for program in rows),
            "terms": terms_,
        }

    def describe(self) -> str:
        """The plan as text."""
        terms = "\n".join(
            f"             {one['coefficient']:+d} x hom({one['pattern']})" for one in self.to_dict()["terms"]
        )
        induced = "matching     induced, by the patterns with more edges\n" if len(self.signs) > 1 else ""
        return (
            f"{self._title()}{induced}{self.counted.describe()}\n"
            f"sum          of homomorphism counts, divided by {self.automorphisms}\n"
            f"{terms}\nestimate     {self.cost:.3g} elementary steps"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        if len(self.signs) == 1 and (known := count_reading_less(self.pattern, env)) is not None:
            return known
        with suppress(DoesNotFit):  # what had no room is gone before they are counted otherwise
            found = self.counted.mappings(env)
            mappings = sum(sign * number for sign, number in zip(self.signs, found, strict=True))
            return embeddings_of(mappings, self.automorphisms)
        return self._otherwise(env)

    def _otherwise(self, env: Coordinator) -> int:
        """Count without lists of common neighbours or, where that needs too much as well, by a search."""
        from longwall.pipeline.planning.homomorphisms import plan_homomorphisms

        sums = self.counted.sums
        shorter = plan_homomorphisms(sums.patterns, replace(sums.costs, lists=False)) if sums.costs.lists else None
        if shorter is not None:
            env.observer.note("the budget has no room for the common neighbours of every edge: counting without them")
            return replace(self, counted=replace(self.counted, sums=shorter)).count(env)
        env.observer.note("the budget has no room for rows: searching instead")
        return _search(self.pattern, env.graph.stats, induced=len(self.signs) > 1).count(env)


@dataclass(frozen=True)
class CountByInclusionExclusion(CountPlan):
    """An induced count as a signed sum of non-induced counts of the patterns with more edges."""

    terms: tuple[tuple[int, CountPlan], ...]
    """(coefficient, plan); coefficients apply to numbers of injective homomorphisms (mappings)."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts("induced sum") | {
            "terms": [{"coefficient": c, "plan": plan.to_dict()} for c, plan in self.terms]
        }

    def describe(self) -> str:
        """The plan as text."""
        terms = "\n".join(
            f"{c:+d} x mappings of\n" + "\n".join("    " + line for line in plan.describe().splitlines())
            for c, plan in self.terms
        )
        return (
            f"{self._title()}matching     induced, as a signed sum of non-induced counts divided by "
            f"{self.automorphisms}:\n{terms}"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        mappings = sum(c * plan.automorphisms * plan.count(env) for c, plan in self.terms)
        return mappings // self.automorphisms


def embeddings_of(mappings: int, automorphisms: int) -> int:
    """Return the number of embeddings, given the number of mappings."""
    embeddings, rest = divmod(mappings, automorphisms)
    if rest or embeddings < 0:
        raise RunError(f"internal fault: {mappings} mappings, {automorphisms} automorphisms")
    return embeddings


def induced_by_denser(pattern: Pattern) -> bool:
    """Whether an unlabelled pattern is counted, induced, by means of the patterns with more edges."""
    absent = comb(pattern.num_vertices, 2) - len(pattern.edges)
    return pattern.num_vertices <= MAX_INDUCED_VERTICES or absent <= FEW_ABSENT_EDGES


def plan_unlabelled(pattern: Pattern, stats: GraphStats, *, induced: bool) -> CountPlan:
    """Plan how to count the embeddings of a pattern without labels; parameters as of `plan_count`."""
    if pattern.num_vertices >= 3:
        if pattern.is_clique:
            return plan_cliques(pattern, stats)
        if not induced:
            return _non_induced(pattern, stats)
        if induced_by_denser(pattern):
            return _induced(pattern, stats)
    return _search(pattern, stats, induced=induced)


def _search(pattern: Pattern, stats: GraphStats, *, induced: bool) -> CountBySearch:
    search = plan_match(pattern, stats, induced=induced)
    return CountBySearch(pattern, search.cost, search)


def plan_cliques(pattern: Pattern, stats: GraphStats) -> CountByKernel:
    """Plan how to count cliques, in a graph with such statistics."""
    k = pattern.num_vertices
    count = CountCliquesByPivots(k) if suits_pivots(k, stats.max_out_degree) else CountCliques(k)
    return _by_kernel(pattern, sum(plan_match(pattern, stats).rows), count)


def _prefers_order(env: Coordinator) -> bool:
    """Return whether the lists of smaller neighbours, read in order, take less time than all rows, looked up."""
    return holds_part(env) or (env.resources.on_device and env.graph.num_edges >= _MANY_EDGES)


def _by_kernel(
    pattern: Pattern, cost: float, count: CountRanges, otherwise: CountRanges | None = None
) -> CountByKernel:
    other = None if otherwise is None else RangeCount(otherwise, cost)
    return CountByKernel(pattern, cost, RangeCount(count, cost), other)


def _induced(pattern: Pattern, stats: GraphStats) -> CountPlan:
    """The cheapest way to count an unlabelled pattern, induced."""
    from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
    from longwall.pipeline.planning.homomorphisms import denser, plan_homomorphisms

    search = _search(pattern, stats, induced=True)
    more = denser(pattern)
    sums = plan_homomorphisms(tuple(q for q, _ in more), pass_costs(stats))
    best: CountPlan = search
    if sums is not None and sums.cost < search.cost:
        best = CountByHomomorphisms(pattern, sums.cost, HomomorphismCount(sums), tuple(c for _, c in more))
    parts = tuple((c, _non_induced(q, stats)) for q, c in more)
    cost = sum(plan.cost for _, plan in parts)
    return CountByInclusionExclusion(pattern, cost, parts) if cost < best.cost else best


def _non_induced(pattern: Pattern, stats: GraphStats) -> CountPlan:
    """The cheapest way to count an unlabelled pattern, non-induced."""
    if pattern.is_clique:
        return plan_cliques(pattern, stats)
    from longwall.stages.four_vertices import CountDiamondsOfArcs, CountFourCycles

    degrees = sorted(map(len, pattern.neighbours))
    if pattern.num_vertices == 4 and degrees == [2] * 4:
        return _by_kernel(pattern, float(stats.sum_degree_squared) / 4, CountFourCycles())
    if degrees == [2, 2, 3, 3]:
        return _by_kernel(pattern, float(stats.sum_degree_squared) / 4, CountDiamonds(), CountDiamondsOfArcs())
    if pattern.num_vertices == 5 and degrees == [2] * 5:
        return _by_kernel(pattern, float(stats.sum_degree_squared) * 4, CountFiveCycles())
    if pattern.num_vertices > 3 and degrees[-2] == 1:
        return CountStars(pattern, float(stats.num_vertices))
    from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
    from longwall.pipeline.planning.homomorphisms import plan_homomorphisms

    search = _search(pattern, stats, induced=False)
    sums = plan_homomorphisms((Pattern(pattern.num_vertices, pattern.edges),), pass_costs(stats))
    if sums is None or sums.cost >= search.cost:
        return search
    return CountByHomomorphisms(pattern, sums.cost, HomomorphismCount(sums), (1,))
