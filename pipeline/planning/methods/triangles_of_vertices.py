"""The triangles of each vertex, in a table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.kernel_plan import PhasePlan
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query, Want
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.range_counting import CountTrianglesOfVertices


@dataclass(frozen=True)
class TrianglesOfVerticesPlan(PhasePlan):
    """The number of triangles of every vertex."""

    phase: CountPerVertex

    def count(self, env: Coordinator) -> int:
        """Write the number of triangles of every vertex to ``vertices.parquet``; return the number of triangles."""
        import pyarrow as pa

        from longwall.storage.parquet_files import write_parquet
        from longwall.storage.tables.arrow_columns import of_array

        began = time.perf_counter()
        with self.phase.run(env) as counts:
            total = sum(int(part) for part in np.add.reduceat(counts, range(0, len(counts), 1 << 20))) // 3
            env.metrics.record("count", 2, 2 * env.graph.num_edges, total, time.perf_counter() - began)
            table = pa.table({"vertex": env.graph.all_ids(), "triangles": of_array(counts)})
            write_parquet(table, env.results / "vertices.parquet")
        return total


class TrianglesOfVertices(Method):
    """Counts the triangles of each vertex."""

    name: ClassVar[str] = "triangles-of-vertices"
    plain: ClassVar[bool] = True
    wants: ClassVar[tuple[Want, ...]] = ("per_vertex",)

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for triangles."""
        if not query.pattern.is_clique or query.pattern.num_vertices != 3:
            return Refusal("the pattern is no triangle")
        cost = sum(plan_match(query.pattern, facts.stats).rows)
        phase = CountPerVertex(CountTrianglesOfVertices(), cost)
        return TrianglesOfVerticesPlan(query.pattern, cost, phase, method=self.name)
