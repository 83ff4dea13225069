"""Maximal cliques by Bron-Kerbosch: counts by size and per vertex, and lists."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.rows.row_sink import row_sink
from longwall.pipeline.phases.clique_tables import write_sizes
from longwall.pipeline.phases.maximal_cliques.counting import CliqueSizes, CliquesPerVertex
from longwall.pipeline.phases.maximal_cliques.limited import CliquesUpTo
from longwall.pipeline.phases.maximal_cliques.listing import CliqueList, clique_schema
from longwall.pipeline.phases.search_list import rows_left
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import About, Query, Want
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.pipeline.result_tables import TOO_LARGE
from longwall.stages.base import Stage
from longwall.stages.cliques.maximal import CountMaximalCliques, CountMaximalCliquesOfVertices
from longwall.stages.export import WriterMemory
from longwall.storage.errors import FinalError
from longwall.storage.parquet_files import write_parquet
from longwall.storage.tables.arrow_columns import of_array

_STAGE = "maximal cliques"


@dataclass(frozen=True)
class MaximalCliquesPlan(CountPlan):
    """A search for the maximal cliques at every vertex.

    Attributes
    ----------
    query
        The query; a limit of the run ends counts and listings.
    """

    query: Query
    stops: ClassVar[bool] = True

    @property
    def min_size(self) -> int:
        """Vertices of the smallest cliques that are wanted."""
        return self.query.size or 0

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that ranges of vertices go through."""
        if self.query.want == "rows":
            return CliqueList(self.min_size, None).stages
        if self.query.want == "per_vertex":
            return self._per_vertex.stages
        return self._sizes.stages if self.query.limit is None else CliquesUpTo(self.min_size, self.query.limit).stages

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "maximal cliques", "estimated_cost": self.cost} | self.query.to_dict()

    def describe(self) -> str:
        """The plan as text: the stages that run."""
        return "\n".join(stage.describe() for stage in self.stages)

    def count(self, env: Coordinator) -> int:
        """Count the cliques of all sizes together."""
        return sum(self.counts(env))

    def counts(self, env: Coordinator) -> list[int]:
        """Write the tables, and return the number of cliques of s vertices at place s; of a listing, that of all.

        Raises
        ------
        FinalError
            If a number does not fit 64-bit integers.
        """
        if self.query.want == "rows":
            return [self._list(env)]
        counts = self._of_vertices(env) if self.query.want == "per_vertex" else self._by_size(env)
        for size, count in enumerate(counts):
            if count >= TOO_LARGE:
                raise FinalError(f"about {count:.3g} maximal cliques of {size} vertices do not fit 64-bit integers")
        write_sizes([(size, count) for size, count in enumerate(counts) if count], env)
        return counts

    @property
    def _sizes(self) -> CliqueSizes:
        return CliqueSizes(CountMaximalCliques(self.min_size), 0.0)

    @property
    def _per_vertex(self) -> CliquesPerVertex:
        return CliquesPerVertex(CountMaximalCliquesOfVertices(self.min_size), 0.0)

    def _by_size(self, env: Coordinator) -> list[int]:
        if self.query.limit is None:
            found: list[int] = self._sizes.run(env)
            return found
        began = time.perf_counter()
        counts = CliquesUpTo(self.min_size, self.query.limit).run(env)
        env.metrics.record(_STAGE, 0, env.graph.num_vertices, sum(counts), time.perf_counter() - began)
        return counts

    def _of_vertices(self, env: Coordinator) -> list[int]:
        """Write the number of cliques of each vertex, and the size of its largest one."""
        began = time.perf_counter()
        with self._per_vertex.run(env) as (cliques, largest, sizes):
            counts: list[int] = [0, *sizes[: int(largest.max(initial=0))].tolist()]
            env.metrics.record(_STAGE, 0, len(cliques), sum(counts), time.perf_counter() - began)
            columns = {"maximal_cliques": of_array(cliques), "largest": of_array(largest)}
            table = pa.table({"vertex": env.graph.all_ids()} | columns)
            write_parquet(table, env.results / "vertices.parquet")
        return counts

    def _list(self, env: Coordinator) -> int:
        """Write the cliques, up to the limit of the run."""
        began = time.perf_counter()
        phase = CliqueList(self.min_size, None)
        record = env.run(CliqueList(self.min_size, rows_left(env, phase.name, 0)))
        rows: int = sum(record.values)
        env.metrics.record(_STAGE, 0, record.total, rows, time.perf_counter() - began, 0, record.ranges)
        if not rows:
            row_sink(env, clique_schema(env.graph), WriterMemory.within(0, 1, 1)).write_empty()
        return rows


class MaximalCliques(Method):
    """Counts or lists maximal cliques, which no other method does."""

    name: ClassVar[str] = "maximal-cliques"
    about: ClassVar[About] = "maximal cliques"
    wants: ClassVar[tuple[Want, ...]] = ("count", "per_vertex", "rows")

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the search; its cost is that of enumerating the cliques of one size."""
        cost = float(sum(plan_match(query.pattern, facts.stats).rows))
        return MaximalCliquesPlan(query.pattern, cost, query, method=self.name)
