"""Counts of all connected patterns of a size, in all (motifs) or per vertex (orbits of graphlets)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import MAX_COUNTED, MAX_ENUMERATED_ORBITS, MAX_ORBITS, Query, Want

_QUICK = 1e8  # steps: planning the count of every pattern takes longer than an enumeration that is so short
_STORED = Refusal("the graph stays in its store")


class MotifEnumeration(Method):
    """Enumerates the connected induced subgraphs of a size, and counts them by pattern."""

    name: ClassVar[str] = "motif-enumeration"
    family: ClassVar[str] = "enumeration"
    census: ClassVar[bool] = True

    def is_sure(self, plan: CountPlan) -> bool:
        """Return whether the enumeration is short."""
        return plan.cost < _QUICK or plan.pattern.num_vertices > MAX_COUNTED

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the enumeration."""
        from longwall.pipeline.planning.motifs.by_enumeration import plan_enumeration

        if facts.residency == "stored":
            return _STORED
        return replace(plan_enumeration(query.pattern.num_vertices, facts.stats), method=self.name)


class MotifsOfThree(Method):
    """Counts triangles, and wedges by the degrees of their centres."""

    name: ClassVar[str] = "motifs-of-three"
    census: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:
        """Propose the count of triangles."""
        from longwall.pipeline.planning.motifs.of_three import plan_three

        if query.pattern.num_vertices != 3:
            return Refusal("the patterns have more than 3 vertices")
        return replace(plan_three(facts, planner), method=self.name)


class MotifCounting(Method):
    """Counts every pattern, most of them together, and subtracts the counts of denser ones."""

    name: ClassVar[str] = "motif-counting"
    census: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:
        """Propose the count pattern by pattern."""
        from longwall.pipeline.planning.motifs.by_counting import plan_counting

        k = query.pattern.num_vertices
        if not 3 < k <= MAX_COUNTED:
            return Refusal(f"the patterns have 3 vertices, or more than {MAX_COUNTED}")
        if facts.residency == "stored" or facts.graph is None:
            return _STORED
        return replace(plan_counting(k, facts.graph, planner), method=self.name)


class OrbitEnumeration(Method):
    """Enumerates the connected induced subgraphs of each size, and counts orbits at their vertices."""

    name: ClassVar[str] = "orbit-enumeration"
    family: ClassVar[str] = "enumeration"
    wants: ClassVar[tuple[Want, ...]] = ("per_vertex",)
    census: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the enumeration; if there is a hub, it takes longer than counting, and more than its estimate."""
        from longwall.pipeline.planning.motifs.orbits import plan_orbits
        from longwall.pipeline.planning.motifs.orbits_by_counting import has_hub, plan_orbit_counting

        k = query.pattern.num_vertices
        if k > MAX_ENUMERATED_ORBITS:
            return Refusal(f"the patterns have more than {MAX_ENUMERATED_ORBITS} vertices")
        plan, counted = plan_orbits(k, facts.stats), plan_orbit_counting(k, facts.stats).cost
        longer = has_hub(facts.stats)
        return replace(plan, cost=max(plan.cost, 2 * counted) if longer else min(plan.cost, counted), method=self.name)


class OrbitCounting(Method):
    """Counts homomorphisms of graphlets around each vertex, of which the orbits follow."""

    name: ClassVar[str] = "orbit-counting"
    wants: ClassVar[tuple[Want, ...]] = ("per_vertex",)
    census: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the count of homomorphisms."""
        from longwall.pipeline.planning.motifs.orbits_by_counting import plan_orbit_counting

        k = query.pattern.num_vertices
        if k > MAX_ORBITS:
            return Refusal(f"the patterns have more than {MAX_ORBITS} vertices")
        return replace(plan_orbit_counting(k, facts.stats), method=self.name)
