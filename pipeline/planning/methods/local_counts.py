"""Counts of embeddings that contain each vertex or each edge, by kernels for a few shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import INDUCED, Method, not_plain
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query, Want


class TrianglesOfVertices(Method):
    """Counts the triangles of each vertex."""

    name: ClassVar[str] = "triangles-of-vertices"
    wants: ClassVar[tuple[Want, ...]] = ("per_vertex",)

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for triangles."""
        from longwall.pipeline.phases.count_per_vertex import plan_triangles_per_vertex

        if not query.plain:
            return not_plain(query)
        if not query.pattern.is_clique or query.pattern.num_vertices != 3:
            return Refusal("the pattern is no triangle")
        return replace(plan_triangles_per_vertex(query.pattern, facts.stats), method=self.name)


class CountsOfEdges(Method):
    """Counts the triangles, 4-cliques or 4-cycles of each edge."""

    name: ClassVar[str] = "counts-of-edges"
    wants: ClassVar[tuple[Want, ...]] = ("per_edge",)

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel of the shape."""
        from longwall.pipeline.phases.count_per_edge import edge_shape, plan_per_edge

        if not query.plain:
            return not_plain(query)
        if query.induced and not query.pattern.is_clique:
            return INDUCED
        if (shape := edge_shape(query.pattern)) is None:
            return Refusal("the pattern is neither a triangle, a 4-clique nor a 4-cycle")
        return replace(plan_per_edge(query.pattern, shape, facts.stats), method=self.name)
