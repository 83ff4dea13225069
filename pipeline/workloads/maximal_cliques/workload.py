"""Maximal cliques: how many there are of each size, which ones, or in how many each vertex is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.workloads.base import Output, Workload

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.planner import Planner
    from longwall.storage.graph.graph import Graph

_MOST_VERTICES = 1 << 32  # of a graph


@dataclass(frozen=True)
class MaximalCliquePlan:
    """A search below every vertex.

    Attributes
    ----------
    min_size
        Vertices of the smallest cliques that are wanted.
    output
        What is wanted of them.
    limit
        How many are wanted; None: all.
    """

    min_size: int
    output: Output
    limit: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        limit = {} if self.limit is None else {"limit": self.limit}
        return {"kind": "maximal cliques", "min_size": self.min_size, "output": self.output} | limit

    def describe(self) -> str:
        """The plan as text: the stages that run."""
        from longwall.pipeline.workloads.maximal_cliques.results import stages_of

        return "\n".join(stage.describe() for stage in stages_of(self.output, self.min_size, self.limit))


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

    def plan(self, graph: Graph, planner: Planner | None = None) -> MaximalCliquePlan:  # noqa: ARG002 - every graph has the same plan
        """Plan the search."""
        return MaximalCliquePlan(self.min_size, self.output, self.limit)

    def execute(self, plan: MaximalCliquePlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the cliques; without a list there is a count for each size, in ``sizes.parquet``, too."""
        from longwall.pipeline.workloads.maximal_cliques.results import count_by_size, count_per_vertex, list_cliques

        if plan.output == "embeddings":
            return [list_cliques(plan.min_size, env)]
        return (count_by_size if plan.output == "count" else count_per_vertex)(plan.min_size, env)
