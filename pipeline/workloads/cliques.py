"""k-cliques, or cliques of every size: counted in all, per vertex or per edge, or listed by extension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import MAX_FAMILY
from longwall.pipeline.quoting import quote
from longwall.pipeline.workloads.base import Workload, answer_pattern, answer_several, plan_pattern

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.plan import Choice
    from longwall.pipeline.planning.planner import Planner
    from longwall.storage.graph.graph import Graph

_LEAST, _ALL = 3, "all"
_MAX_EDGE_CLIQUE = 4  # vertices of the cliques that are counted at every edge


def _size(value: object) -> object:
    if value == _ALL:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f'expected a whole number from {_LEAST} up, or "{_ALL}", not {quote(value)}')
    if value < _LEAST:
        raise ValueError(f"must be at least {_LEAST}, not {value}")
    return value


class Cliques(Workload):
    """``kind = "cliques"``: sets of `k` vertices in which every two are joined by an edge."""

    kind: Literal["cliques"] = Field(description="sets of vertices, every two joined by an edge")
    output: Literal["count", "embeddings", "vertices", "edges"] = Field(
        default="count",
        description=f"`count`, `embeddings` (k up to {MAX_FAMILY}), or `vertices`, `edges` (k up to "
        f"{_MAX_EDGE_CLIQUE}): the number of cliques of each vertex or edge",
    )
    k: Annotated[int | str, BeforeValidator(_size)] = Field(
        description='number of vertices, 3 or more, or `"all"`: cliques of every size'
    )

    def _faults(self) -> Iterator[tuple[str, str]]:
        yield from super()._faults()
        most = {"embeddings": MAX_FAMILY, "edges": _MAX_EDGE_CLIQUE}.get(self.output)
        if most is None or (isinstance(self.k, int) and self.k <= most):
            return
        if self.output == "edges":
            yield "k", f"counts per edge are given for at most {most} vertices, not {quote(self.k)}"
        else:
            what = f"cliques are listed for one size of at most {most} vertices, not {quote(self.k)}"
            yield "k", f'{what}; use output = "count" or "vertices"'

    @property
    def num_columns(self) -> int | None:
        """Number of columns of the embeddings."""
        return self.k if isinstance(self.k, int) else None

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernel of small cliques, which are always counted one by one."""
        from longwall.kernels.interface.kcliques import ROOTED_FROM
        from longwall.kernels.interface.kernels import Kernels

        small = isinstance(self.k, int) and 3 < self.k < ROOTED_FROM
        return (Kernels.clique_counter,) if small and self.output == "count" else ()

    def plan(self, graph: Graph, planner: Planner | None = None) -> Choice:
        """Plan for this size, or for every size."""
        if isinstance(self.k, int) and self.k <= MAX_FAMILY and self.output != "vertices":
            return plan_pattern(parse_pattern(f"clique-{self.k}"), graph, self.output, planner)
        from longwall.pipeline.planning.facts import Facts
        from longwall.pipeline.planning.planner import PLANNER
        from longwall.pipeline.planning.query import Query

        size = self.k if isinstance(self.k, int) else None
        query = Query.of_cliques(size, "per_vertex" if self.output == "vertices" else "count")
        return (planner or PLANNER).plan(query, Facts.of(graph))

    def execute(self, plan: Choice, env: Coordinator) -> list[PatternCount]:
        """Count or list the cliques; with `k = "all"`, return a count for each size."""
        if plan.query.about == "pattern":
            return [answer_pattern(plan, env)]
        counts, method = answer_several(plan, env)
        sizes = [self.k] if isinstance(self.k, int) else range(3, 3 + len(counts))
        names = (f"clique-{size}" for size in sizes)
        return [PatternCount(name, None, count, method=method) for name, count in zip(names, counts, strict=True)]
