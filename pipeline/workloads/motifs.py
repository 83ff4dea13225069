"""Motifs: how often every connected pattern of k vertices occurs as an induced subgraph, in all or per vertex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.planning.query import MAX_COUNTED, MAX_ENUMERATED, MAX_ENUMERATED_ORBITS, MAX_ORBITS
from longwall.pipeline.workloads.base import Workload, answer_several

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.plan import Choice
    from longwall.pipeline.planning.planner import Planner
    from longwall.storage.graph.graph import Graph

_OTHERS = {
    "auto": (),
    "enumeration": ("motifs-of-three", "motif-counting", "orbit-counting"),
    "counting": ("motif-enumeration", "orbit-enumeration"),
}
"""Methods that a choice of the config leaves out."""


class Motifs(Workload):
    """``kind = "motifs"``: all connected patterns of `k` vertices."""

    kind: Literal["motifs"] = Field(description="the induced embeddings of all connected patterns of a size")
    output: Literal["count", "vertices"] = Field(
        default="count", description="`count`, or `vertices`: the orbits of each vertex"
    )
    k: Annotated[int, Field(ge=3, le=MAX_ENUMERATED)] = Field(description=f"number of vertices, 3 to {MAX_ENUMERATED}")
    method: Literal["auto", "enumeration", "counting"] = Field(
        default="auto",
        description=f"`enumeration`, `counting` (k up to {MAX_COUNTED}) or `auto`, the cheaper one",
    )

    def _faults(self) -> Iterator[tuple[str, str]]:
        yield from super()._faults()
        if self.output == "vertices" and self.k > MAX_ORBITS:
            yield "k", f"counts per vertex are given for at most {MAX_ORBITS} vertices, not {self.k}"
        only = "enumeration" if self.k <= MAX_ENUMERATED_ORBITS else "counting"
        if self.output == "vertices" and self.method not in ("auto", only):
            text = f'counts per vertex for {self.k} vertices are taken by {only}; use "auto", or remove it'
            yield "method", text
        if self.method == "counting" and self.k > MAX_COUNTED:
            yield "method", f'"counting" is for at most {MAX_COUNTED} vertices; use "enumeration"'

    @property
    def adds_up(self) -> bool:
        """The answer is a table of patterns."""
        return False

    @property
    def kernels(self) -> tuple[Any, ...]:
        """Those that list the connected patterns."""
        from longwall.kernels.host.patterns.canonical_kernel import canonical_codes, count_removable

        return (canonical_codes, count_removable) if self.k > 3 else ()

    def plan(self, graph: Graph, planner: Planner | None = None) -> Choice:
        """Plan for this size and method; the cheaper method where `method` leaves the choice."""
        from longwall.pipeline.planning.facts import Facts
        from longwall.pipeline.planning.planner import PLANNER
        from longwall.pipeline.planning.query import Query

        query = Query.of_motifs(self.k, "per_vertex" if self.output == "vertices" else "count")
        return (planner or PLANNER).but(*_OTHERS[self.method]).plan(query, Facts.of(graph))

    def execute(self, plan: Choice, env: Coordinator) -> list[PatternCount]:
        """Count the motifs; every connected pattern is in the result, those that do not occur as well."""
        from longwall.kernels.host.patterns.pattern_codes import code_edges, connected_codes, edges_text

        texts = [edges_text(code_edges(code, self.k)) for code in connected_codes(self.k).tolist()]
        counts, method = answer_several(plan, env)
        return [PatternCount(text, None, count, method=method) for text, count in zip(texts, counts, strict=True)]
