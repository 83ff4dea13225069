"""Orbits of graphlets: how often each vertex has each place in the connected patterns of up to a size."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.methods.motifs import steps_of_sets
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import MAX_ENUMERATED_ORBITS, MAX_ORBITS, About, Query, Want
from longwall.storage.graph.derived.core import low_vertices
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import GraphStats

# Nanoseconds of a core; docs/decisions.md has the graphs that they were measured on. Enumeration finds each pair of a
# vertex's neighbours, in a quarter of a step to count triangles; sets of 3 are looked at one by one, and the list of an
# end is read for each. Counting reads pairs of neighbours that are no twins, and makes 73 numbers of each vertex.
_PAIR_STEPS, _SET_STEPS = 0.25, 20.0
_COUNTED_PAIR_STEPS, _COUNTED_VERTEX_STEPS = 150.0, 1e4


class _Orbits(Method):
    """Counts of the orbits of every vertex."""

    wants: ClassVar[tuple[Want, ...]] = ("per_vertex",)
    about: ClassVar[About] = "motifs"
    most: ClassVar[int]
    """Vertices of the largest graphlets."""

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the plan, unless graphlets are too large for it."""
        if query.pattern.num_vertices > self.most:
            return Refusal(f"the patterns have more than {self.most} vertices")
        return self.plan(query.pattern, facts)

    @abstractmethod
    def plan(self, pattern: Pattern, facts: Facts) -> CountPlan:
        """Plan for graphlets with as many vertices as a pattern."""


class OrbitEnumeration(_Orbits):
    """Enumerates the connected induced subgraphs of each size, and counts orbits at their vertices."""

    name: ClassVar[str] = "orbit-enumeration"
    family: ClassVar[str] = "enumeration"
    most: ClassVar[int] = MAX_ENUMERATED_ORBITS

    def plan(self, pattern: Pattern, facts: Facts) -> CountPlan:
        """Plan the enumeration."""
        from longwall.pipeline.planning.motifs.orbits import OrbitPlan

        stats = facts.stats
        cost = _PAIR_STEPS * stats.sum_degree_squared
        if pattern.num_vertices > 3:
            cost += _SET_STEPS * stats.sum_degree_squared + _reads_of_sets(stats)
        return OrbitPlan(pattern, cost, method=self.name)


class OrbitCounting(_Orbits):
    """Counts homomorphisms of graphlets around each vertex, of which the orbits follow."""

    name: ClassVar[str] = "orbit-counting"
    most: ClassVar[int] = MAX_ORBITS

    def plan(self, pattern: Pattern, facts: Facts) -> CountPlan:
        """Plan the count of homomorphisms."""
        from longwall.pipeline.planning.motifs.orbits_by_counting import OrbitCountingPlan

        pairs = facts.stats.sum_degree_squared if facts.graph is None else _pairs_without_leaves(facts.graph)
        cost = _COUNTED_PAIR_STEPS * pairs + _COUNTED_VERTEX_STEPS * facts.stats.num_vertices
        return OrbitCountingPlan(pattern, cost, method=self.name)


def _reads_of_sets(stats: GraphStats) -> float:
    """Estimate the neighbours that are read to extend all sets of 3 vertices.

    The ends of a pair are like those of any other edge, but not around the largest hub: its neighbours have few others.
    """
    hub, ends = float(stats.max_degree), 2 * stats.num_edges - stats.max_degree
    others = replace(
        stats,
        num_edges=max(stats.num_edges - stats.max_degree, 0),
        sum_degree_squared=max(stats.sum_degree_squared - stats.max_degree**2, 0),
    )
    return hub * hub / 2 * ends / max(stats.num_vertices - 1, 1) + steps_of_sets(4, others)


def _pairs_without_leaves(graph: Graph) -> float:
    """Estimate the pairs of neighbours of a vertex without a leaf: leaves are twins, of which one is looked at."""
    stats, leaves = graph.stats, low_vertices(graph, 2)
    share = leaves / max(2 * stats.num_edges - leaves, leaves, 1)  # of the neighbours of vertices that are no leaves
    return stats.sum_degree_squared * (1 - share) ** 2
