"""Triangles: their number, the triangles themselves, or how many each vertex is part of."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.workloads.base import Workload, count_or_list, plan_pattern

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator
    from longwall.pipeline.phases.count_plans import CountPlan
    from longwall.pipeline.planning.search_plan import MatchPlan
    from longwall.storage.graph.graph import Graph


class Triangles(Workload):
    """``kind = "triangles"``."""

    kind: Literal["triangles"] = Field(description="three vertices, every two joined by an edge")
    output: Literal["count", "embeddings", "vertices"] = Field(
        default="count", description="`count`, `embeddings`, or `vertices`: the number of triangles of each vertex"
    )

    @property
    def num_columns(self) -> int:
        """Number of columns of the embeddings."""
        return 3

    def plan(self, graph: Graph) -> CountPlan | MatchPlan:
        """Plan for triangles."""
        return plan_pattern(parse_pattern("triangle"), graph, self.output)

    def execute(self, plan: CountPlan | MatchPlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the triangles, in all or per vertex."""
        if self.output == "vertices":
            return [PatternCount(plan.pattern.edge_text, None, _count_per_vertex(env))]
        return [count_or_list(plan, env)]


def _count_per_vertex(env: Coordinator) -> int:
    """Write the number of triangles of every vertex to ``vertices.parquet``; return the number of triangles."""
    import numpy as np
    import pyarrow as pa

    from longwall.pipeline.phases.triangles_per_vertex import TrianglesPerVertex
    from longwall.storage.parquet_files import write_parquet

    began = time.perf_counter()
    with TrianglesPerVertex(cost=0.0).run(env) as counts:
        total = sum(int(part) for part in np.add.reduceat(counts, range(0, len(counts), 1 << 20))) // 3
        env.metrics.record("count", 2, len(env.graph.indices), total, time.perf_counter() - began)
        table = pa.table({"vertex": env.graph.original_ids, "triangles": counts})
        write_parquet(table, env.results / "vertices.parquet")
    return total
