"""Motifs: how often every connected pattern of k vertices occurs as an induced subgraph, in all or per vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.workloads.base import Workload

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator
    from longwall.pipeline.planning.planner import Planner
    from longwall.pipeline.workloads.motifs.by_counting import CountingPlan
    from longwall.pipeline.workloads.motifs.by_enumeration import EnumerationPlan
    from longwall.pipeline.workloads.motifs.of_three import ThreePlan
    from longwall.pipeline.workloads.motifs.orbits import OrbitPlan
    from longwall.pipeline.workloads.motifs.orbits_by_counting import OrbitCountingPlan
    from longwall.storage.graph.graph import Graph

    Plan = EnumerationPlan | ThreePlan | CountingPlan | OrbitPlan | OrbitCountingPlan

_MAX_VERTICES, _MAX_COUNTED_VERTICES, _MAX_ORBIT_VERTICES = 8, 6, 5  # of all, by pattern-aware counting, per vertex
_MAX_ENUMERATED_ORBITS = 4  # vertices of subgraphs that are enumerated to count per vertex
_BY_TRIANGLES = 3  # vertices of motifs that follow from triangles and degrees
_QUICK = 1e8  # steps: planning the count of every pattern takes longer than an enumeration that is so short


class Motifs(Workload):
    """``kind = "motifs"``: all connected patterns of `k` vertices."""

    kind: Literal["motifs"] = Field(description="the induced embeddings of all connected patterns of a size")
    output: Literal["count", "vertices"] = Field(
        default="count", description="`count`, or `vertices`: the orbits of each vertex"
    )
    k: Annotated[int, Field(ge=3, le=_MAX_VERTICES)] = Field(description=f"number of vertices, 3 to {_MAX_VERTICES}")
    method: Literal["auto", "enumeration", "counting"] = Field(
        default="auto",
        description=f"`enumeration`, `counting` (k up to {_MAX_COUNTED_VERTICES}) or `auto`, the cheaper one",
    )

    @field_validator("k")
    @classmethod
    def _orbits_are_small(cls, k: int, info: ValidationInfo) -> int:
        if info.data.get("output") == "vertices" and k > _MAX_ORBIT_VERTICES:
            raise ValueError(f"counts per vertex are given for at most {_MAX_ORBIT_VERTICES} vertices, not {k}")
        return k

    @field_validator("method")
    @classmethod
    def _method_suits(cls, method: str, info: ValidationInfo) -> str:
        if method != "auto" and info.data.get("output") == "vertices" and "k" in info.data:
            k = info.data["k"]
            only = "enumeration" if k <= _MAX_ENUMERATED_ORBITS else "counting"
            if method != only:
                raise ValueError(f'counts per vertex for {k} vertices are taken by {only}; use "auto", or remove it')
        if method == "counting" and info.data.get("k", 0) > _MAX_COUNTED_VERTICES:
            raise ValueError(f'"counting" is for at most {_MAX_COUNTED_VERTICES} vertices; use "enumeration"')
        return method

    @property
    def adds_up(self) -> bool:
        """The answer is a table of patterns."""
        return False

    def plan(self, graph: Graph, planner: Planner | None = None) -> Plan:
        """Plan for this size and method; the cheaper method where `method` leaves the choice."""
        from longwall.pipeline.workloads.motifs.by_counting import plan_counting
        from longwall.pipeline.workloads.motifs.by_enumeration import plan_enumeration
        from longwall.pipeline.workloads.motifs.of_three import plan_three
        from longwall.pipeline.workloads.motifs.orbits import plan_orbits
        from longwall.pipeline.workloads.motifs.orbits_by_counting import has_hub, plan_orbit_counting
        from longwall.storage.streaming.stored_graph import StoredGraph

        if self.output == "vertices":
            counted = self.k > _MAX_ENUMERATED_ORBITS or (self.method == "auto" and has_hub(graph.stats))
            if counted:
                return plan_orbit_counting(self.k, graph.stats)
            return plan_orbits(self.k, graph.stats)
        if self.k == _BY_TRIANGLES and isinstance(graph, StoredGraph):
            return plan_three(graph, planner)
        if self.method == "counting":
            return plan_three(graph, planner) if self.k == _BY_TRIANGLES else plan_counting(self.k, graph, planner)
        enumeration = plan_enumeration(self.k, graph.stats)
        if self.method == "enumeration" or self.k > _MAX_COUNTED_VERTICES or enumeration.cost < _QUICK:
            return enumeration
        if self.k == _BY_TRIANGLES:
            return plan_three(graph, planner)
        counting = plan_counting(self.k, graph, planner)
        return counting if counting.cost < enumeration.cost else enumeration

    def execute(self, plan: Plan, env: Coordinator) -> list[PatternCount]:
        """Count the motifs; every connected pattern is in the result, those that do not occur as well."""
        from longwall.kernels.host.patterns.pattern_codes import code_edges, connected_codes, edges_text

        texts = [edges_text(code_edges(code, self.k)) for code in connected_codes(self.k).tolist()]
        counts = plan.count(env)
        return [PatternCount(text, None, count) for text, count in zip(texts, counts, strict=True)]
