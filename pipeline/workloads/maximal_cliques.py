"""Maximal cliques: how many there are of each size, which ones, or in how many each vertex is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.workloads.base import WANTS, Workload, answer_several

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.plan import Choice
    from longwall.pipeline.planning.planner import Planner
    from longwall.storage.graph.graph import Graph

_MOST_VERTICES = 1 << 32  # of a graph


class MaximalCliques(Workload):
    """``kind = "maximal-cliques"``: cliques that no other vertex can join."""

    rows_are_lists: ClassVar[bool] = True

    kind: Literal["maximal-cliques"] = Field(description="cliques that no other vertex is adjacent to as a whole")
    output: Literal["count", "embeddings", "vertices"] = Field(
        default="count",
        description="`count`: how many there are of each size, `embeddings`: the vertices of each as a list, or "
        "`vertices`: in how many each vertex is, and the size of its largest one",
    )
    min_size: Annotated[int, Field(ge=2, le=_MOST_VERTICES)] = Field(
        default=2, description="vertices of the smallest ones that are wanted, 2 or more"
    )

    limit: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="stop after this many; by default all are counted or listed"
    )

    def _faults(self) -> Iterator[tuple[str, str]]:
        yield from super()._faults()
        if self.output == "vertices" and self.limit is not None:
            yield "limit", "counts per vertex are whole; remove it"

    @property
    def most_embeddings(self) -> int | None:
        """See `Workload`."""
        return self.limit

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of the order, of the search, and of a listing."""
        from longwall.kernels.host.sorted_lists import sort_lists
        from longwall.kernels.interface.kernels import Kernels

        if self.output == "vertices":
            return (Kernels.degeneracy_order, Kernels.maximal_clique_vertex_counter)
        if self.output == "embeddings":
            return (Kernels.degeneracy_order, Kernels.maximal_clique_lister, sort_lists)
        counted = self.limit is None
        return (Kernels.degeneracy_order, Kernels.maximal_clique_counter if counted else Kernels.maximal_clique_lister)

    def plan(self, graph: Graph, planner: Planner | None = None) -> Choice:
        """Plan the search."""
        from longwall.pipeline.planning.facts import Facts
        from longwall.pipeline.planning.planner import PLANNER
        from longwall.pipeline.planning.query import Query

        query = Query.of_maximal_cliques(self.min_size, WANTS[self.output], self.limit)
        return (planner or PLANNER).plan(query, Facts.of(graph))

    def execute(self, plan: Choice, env: Coordinator) -> list[PatternCount]:
        """Count or list the cliques; counts are by size, and ``sizes.parquet`` has them, too."""
        counts, method = answer_several(plan, env)
        limit = env.spec.limit
        ended = limit is not None and sum(counts) >= limit
        name = "maximal clique"
        if self.output == "embeddings":
            return [PatternCount(name, None, sum(counts), lower_bound=ended, method=method)]
        return [
            PatternCount(f"{name} of {size} vertices", None, count, lower_bound=ended, method=method)
            for size, count in enumerate(counts)
            if count
        ]
