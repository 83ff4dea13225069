"""Counting without enumerating: choose between a search and specialised kernels.

Cliques have bitmap tables; a 4-cycle is two wedges with the same ends, so wedges are aggregated by their ends;
many other patterns are counted through homomorphisms. Induced counts are signed sums of the non-induced counts
of all patterns with more edges, where those are cheaper than a search.
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np

from longwall.kernels.interface.homomorphism_program import RowProgram
from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, isomorphic
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.phases.search_count import count_matches
from longwall.pipeline.planning.homomorphisms import HomomorphismSum, plan_homomorphisms
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.planning.search_planner import plan_match
from longwall.stages.clique_leaves import PIVOTS_FROM, CountCliquesByPivots
from longwall.stages.range_counting import (
    CountCliques,
    CountFourCycles,
    CountHomomorphisms,
    CountRanges,
    CountTrianglesOfVertices,
    Totals,
)
from longwall.storage.errors import FinalError, RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import GraphStats

MAX_INDUCED_VERTICES = 5  # a tree on 6 vertices has 1,024 patterns with more edges
FEW_ABSENT_EDGES = 2  # with so few, there are few whatever the vertices
_EXACT_BELOW = 2.0**62
_ARCS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class CountPlan(ABC):
    """How the embeddings of a pattern are counted."""

    pattern: Pattern
    cost: float
    """Estimated number of elementary steps."""

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

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.search.to_dict()

    def describe(self) -> str:
        """The plan as text."""
        return self.search.describe()

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        return count_matches(self.search, env)


@dataclass(frozen=True)
class CountByKernel(CountPlan):
    """A count that a kernel of its own takes."""

    phase: RangeCount

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts(self.phase.count.method)

    def describe(self) -> str:
        """The plan as text."""
        return self._title() + self.phase.describe()

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        try:
            found: int = self.phase.run(env)
        except DoesNotFit:
            return self._searched(env, self.phase.count.method)
        return found


@dataclass(frozen=True)
class CountTrianglesPerVertex(CountPlan):
    """The number of triangles of every vertex."""

    @property
    def phase(self) -> CountPerVertex:
        """What counts them."""
        return CountPerVertex(CountTrianglesOfVertices(), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts(self.phase.count.method)

    def describe(self) -> str:
        """The plan as text."""
        return self._title() + self.phase.describe()

    def count(self, env: Coordinator) -> int:
        """Write the number of triangles of every vertex to ``vertices.parquet``; return the number of triangles."""
        import pyarrow as pa

        from longwall.storage.parquet_files import write_parquet

        began = time.perf_counter()
        with self.phase.run(env) as counts:
            total = sum(int(part) for part in np.add.reduceat(counts, range(0, len(counts), 1 << 20))) // 3
            env.metrics.record("count", 2, len(env.graph.indices), total, time.perf_counter() - began)
            table = pa.table({"vertex": env.graph.all_ids(), "triangles": counts})
            write_parquet(table, env.results / "vertices.parquet")
        return total


@dataclass(frozen=True)
class CountByHomomorphisms(CountPlan):
    """A signed sum of homomorphism counts, all taken by one row program."""

    parts: HomomorphismSum

    @property
    def program(self) -> RowProgram:
        """The row program."""
        return self.parts.program

    def phase(self, *, exact: bool) -> RangeCount:
        """Return what runs the program, for integers or in floating point alone."""
        return RangeCount(CountHomomorphisms(self.program, self.pattern.edge_text, exact), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        terms = [{"coefficient": c, "pattern": q.edge_text} for c, q in self.parts.quotients]
        return self._facts("homomorphisms") | {
            "passes": self.program.passes,
            "wide_passes": self.program.wide_passes,
            "terms": terms,
        }

    def describe(self) -> str:
        """The plan as text."""
        terms = "\n".join(f"             {c:+d} x hom({q.edge_text})" for c, q in self.parts.quotients)
        return (
            f"{self._title()}{self.phase(exact=True).describe()}\n"
            f"sum          of homomorphism counts, divided by {self.automorphisms}\n"
            f"{terms}\nestimate     {self.cost:.3g} elementary steps"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        try:
            totals: Totals = self.phase(exact=True).run(env)
            counts, magnitudes = totals
            if _largest_scalar(self.pattern.num_vertices, env.graph) >= _EXACT_BELOW:
                # Scalars may have wrapped around, and their floating-point twins with them.
                _, magnitudes = self.phase(exact=False).run(env)
        except DoesNotFit:
            return self._searched(env, CountHomomorphisms.method)
        coefficients = [c for c, _ in self.parts.quotients]
        size = sum(c * m for c, m in zip(coefficients, magnitudes, strict=True))
        error = sum(abs(c) * m for c, m in zip(coefficients, magnitudes, strict=True)) * 1e-9
        if size - error >= _EXACT_BELOW:
            raise FinalError(f"about {size:.3g} mappings of {self.pattern.edge_text} do not fit 64-bit integers")
        if size + error >= _EXACT_BELOW:
            # Large parts cancel to something that floating point cannot tell; a search can.
            return self._searched(env)
        mappings = sum(c * n for c, n in zip(coefficients, counts, strict=True)) % 2**64
        embeddings, rest = divmod(mappings, self.automorphisms)
        if rest:
            raise RunError(f"internal fault: {mappings} mappings, {self.automorphisms} automorphisms")
        return embeddings


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


def plan_count(pattern: Pattern, graph: Graph, *, induced: bool = False) -> CountPlan:
    """Plan how to count a pattern's embeddings.

    Parameters
    ----------
    pattern
        What to count.
    graph
        The data graph; its statistics decide.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.

    Returns
    -------
    CountPlan
        The plan with the smallest estimated cost.
    """
    stats = graph.stats
    if pattern.labels is None and pattern.num_vertices >= 3:
        if pattern.is_clique:
            return _clique(pattern, stats)
        if not induced:
            return _non_induced(pattern, stats)
        absent = comb(pattern.num_vertices, 2) - len(pattern.edges)
        if pattern.num_vertices <= MAX_INDUCED_VERTICES or absent <= FEW_ABSENT_EDGES:
            search = _search(pattern, stats, induced=True)
            parts = tuple((c, _non_induced(q, stats)) for c, q in _denser(pattern))
            cost = sum(plan.cost for _, plan in parts)
            return CountByInclusionExclusion(pattern, cost, parts) if cost < search.cost else search
    return _search(pattern, stats, induced=induced)


def plan_triangles_per_vertex(pattern: Pattern, graph: Graph) -> CountTrianglesPerVertex:
    """Plan how to count the triangles of every vertex; `pattern` is a triangle."""
    return CountTrianglesPerVertex(pattern, plan_count(pattern, graph).cost)


def _search(pattern: Pattern, stats: GraphStats, *, induced: bool) -> CountBySearch:
    search = plan_match(pattern, stats, induced=induced)
    return CountBySearch(pattern, search.cost, search)


def _clique(pattern: Pattern, stats: GraphStats) -> CountByKernel:
    k = pattern.num_vertices
    count = CountCliques(k) if k < PIVOTS_FROM else CountCliquesByPivots(k)
    return _by_kernel(pattern, sum(plan_match(pattern, stats).rows), count)


def _by_kernel(pattern: Pattern, cost: float, count: CountRanges) -> CountByKernel:
    return CountByKernel(pattern, cost, RangeCount(count, cost))


def _non_induced(pattern: Pattern, stats: GraphStats) -> CountPlan:
    """The cheapest way to count an unlabelled pattern, non-induced."""
    if pattern.is_clique:
        return _clique(pattern, stats)
    if pattern.num_vertices == 4 and all(len(near) == 2 for near in pattern.neighbours):
        return _by_kernel(pattern, float(stats.sum_degree_squared) / 4, CountFourCycles())
    search = _search(pattern, stats, induced=False)
    parts = plan_homomorphisms(Pattern(pattern.num_vertices, pattern.edges))
    if parts is None:
        return search
    program = parts.program
    cost = float(program.passes) * stats.sum_degree_squared + 4.0 * stats.num_edges
    cost += 2.0 * program.wide_passes * stats.num_vertices * stats.num_edges
    return CountByHomomorphisms(pattern, cost, parts) if cost < search.cost else search


def _largest_scalar(vertices: int, graph: Graph) -> float:
    """A bound on the scalars of a row program: homomorphisms of a tree of `vertices`, one of which is fixed."""
    degree = float(graph.stats.max_degree)
    if degree ** (vertices - 1) < _EXACT_BELOW or vertices < 3:
        return degree ** (vertices - 1)
    # The fixed vertex, one below it and one below that are a walk of two steps.
    degrees, walks = np.diff(graph.indptr), 0
    cuts = np.searchsorted(graph.indptr, range(0, len(graph.indices), _ARCS_AT_ONCE), side="right") - 1
    for first, last in pairwise(np.unique([*cuts, graph.num_vertices]).tolist()):
        rows = graph.indptr[first : last + 1]
        sums = np.add.reduceat(degrees[graph.indices[rows[0] : rows[-1]]], rows[:-1] - rows[0])
        walks = max(walks, int(sums.max()))
    return walks * degree ** (vertices - 3)


def _denser(pattern: Pattern) -> list[tuple[int, Pattern]]:
    """Patterns with the same vertices and more edges, with the signs of inclusion-exclusion."""
    pairs = set(combinations(range(pattern.num_vertices), 2)) - set(pattern.edges)
    found: list[tuple[int, Pattern]] = []
    for size in range(len(pairs) + 1):
        for added in combinations(sorted(pairs), size):
            denser = Pattern(pattern.num_vertices, tuple(sorted({*pattern.edges, *added})))
            for i, (coefficient, known) in enumerate(found):
                if isomorphic(known, denser):
                    found[i] = coefficient + (-1) ** size, known
                    break
            else:
                found.append(((-1) ** size, denser))
    return [(c, q) for c, q in found if c]
