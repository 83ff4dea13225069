"""Frequent patterns of one graph, by the images of their vertices, their instances, or the transactions they lie in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.quoting import quote
from longwall.pipeline.workloads.base import Workload
from longwall.pipeline.workloads.frequent.plan import MAX_PATTERN_EDGES, FrequentPlan, Support, plan_frequent

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.planner import Planner
    from longwall.storage.graph.graph import Graph


def _number_or_share(value: object) -> object:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if not whole and not (isinstance(value, float) and 0 < value <= 1):
        raise ValueError(f"expected a number from 1 up, or a share up to 1.0 such as 0.1, not {quote(value)}")
    return value


class Frequent(Workload):
    """``kind = "frequent"``; ``kind = "transactions"`` is the same with ``support = "transactions"``."""

    kind: Literal["frequent", "transactions"] = Field(
        description="patterns that are frequent in one graph or, with `transactions`, in a database of graphs"
    )
    output: Literal["count", "embeddings"] = Field(default="count", description="`count` or `embeddings`")
    support: Support | None = Field(
        default=None,
        description="`mni` (minimum image; the default of `frequent`), `instances` (distinct subgraphs) or "
        "`transactions`",
    )
    min_support: Annotated[int | float, BeforeValidator(_number_or_share)] = Field(
        description="a number, or a share such as `0.1`"
    )
    max_edges: Annotated[int, Field(ge=1, le=MAX_PATTERN_EDGES)] | None = Field(
        default=None,
        description=f"edges of the largest patterns; by default {MAX_PATTERN_EDGES}",
        validate_default=True,
    )
    max_vertices: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="vertices of the largest patterns; by default as `max_edges` allows"
    )
    exact: bool = Field(
        default=True, description="`false` finds out what is frequent by `mni` without counting to the end"
    )

    def _checks(self) -> Iterable[Iterable[tuple[str, str]]]:
        return self._faults(), self._support_faults(), self._size_faults(), self._column_faults(), self._exact_faults()

    def _support_faults(self) -> Iterator[tuple[str, str]]:
        if self.kind == "transactions" and self.support not in (None, "transactions"):
            yield "support", "transactions has no use for it (only frequent); remove it"
        if self.support == "instances" and isinstance(self.min_support, float):
            yield "min_support", "instances have no upper bound to take a share of; give a number"

    def _size_faults(self) -> Iterator[tuple[str, str]]:
        if self.support == "instances" and self.max_edges is None:
            text = (
                'missing; with support = "instances" a pattern may be more frequent than its parts, so all patterns up '
            )
            yield "max_edges", text + "to a size are looked at"

    def _column_faults(self) -> Iterator[tuple[str, str]]:
        if self.output == "embeddings" and self.max_edges is None:
            yield "max_edges", 'missing; output = "embeddings" has a column for every vertex'

    def _exact_faults(self) -> Iterator[tuple[str, str]]:
        if not self.exact and self.counted_by != "mni":
            yield "exact", f'support = "{self.counted_by}" is always exact; remove it'

    @property
    def counted_by(self) -> Support:
        """The support that is counted."""
        return self.support or ("transactions" if self.kind == "transactions" else "mni")

    @property
    def input_format(self) -> str | None:
        """The format of the graph's file: a database of graphs, where transactions are counted."""
        return "transactions" if self.counted_by == "transactions" else None

    @property
    def adds_up(self) -> bool:
        """The answer is a table of patterns."""
        return False

    @property
    def kernels(self) -> tuple[Any, ...]:
        """Those that grow patterns, and tell whether they are minimal."""
        from longwall.kernels.host.patterns.dfs_code_kernel import check
        from longwall.kernels.interface.kernels import Kernels

        return (check, Kernels.grower)

    def plan(self, graph: Graph, planner: Planner | None = None) -> FrequentPlan:  # noqa: ARG002
        """Plan for this support and threshold."""
        return plan_frequent(
            graph,
            self.counted_by,
            self.min_support,
            max_edges=self.max_edges,
            max_vertices=self.max_vertices,
            embeddings=self.output == "embeddings",
            exact=self.exact,
        )

    def execute(self, plan: FrequentPlan, env: Coordinator) -> list[PatternCount]:
        """Mine, and write ``patterns.parquet`` and, if asked for, ``embeddings-*.parquet``."""
        from longwall.pipeline.workloads.frequent.embedding_files import write_empty
        from longwall.pipeline.workloads.frequent.levels import mine_frequent
        from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
        from longwall.pipeline.workloads.frequent.pattern_table import PatternTable

        exported = 0
        with (
            closing(PatternGrower(plan, env)) as grower,
            PatternTable(
                env.results / "patterns.parquet", plan, env.graph, grower.pool.reserve, grower.capacity
            ) as table,
        ):
            env.answer.enter_context(table.reserved)
            for found, embeddings in mine_frequent(plan, env, grower):
                first = len(table.counts)
                table.write(found)
                if plan.embeddings and embeddings is not None:
                    exported += embeddings.export(found, first)
        if plan.embeddings and not exported:
            write_empty(env.results / "embeddings-00001.parquet", plan, env.graph)
        return table.counts
