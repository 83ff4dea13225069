"""Count the triangles of every vertex, into a table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.count_plans import CountPlan, plan_count
from longwall.stages.range_counting import CountTrianglesOfVertices
from longwall.storage.graph.graph import Graph
from longwall.storage.parquet_files import write_parquet


@dataclass(frozen=True)
class CountTrianglesPerVertex(CountPlan):
    """The number of triangles of every vertex."""

    @property
    def phase(self) -> CountPerVertex:
        """What counts them."""
        return CountPerVertex(CountTrianglesOfVertices(), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts(self.phase.count.method)

    def describe(self) -> str:
        """The plan as text."""
        return self._title() + self.phase.describe()

    def count(self, env: Coordinator) -> int:
        """Write the number of triangles of every vertex to ``vertices.parquet``; return the number of triangles."""
        began = time.perf_counter()
        with self.phase.run(env) as counts:
            total = sum(int(part) for part in np.add.reduceat(counts, range(0, len(counts), 1 << 20))) // 3
            env.metrics.record("count", 2, len(env.graph.indices), total, time.perf_counter() - began)
            table = pa.table({"vertex": env.graph.original_ids, "triangles": counts})
            write_parquet(table, env.results / "vertices.parquet")
        return total


def plan_triangles_per_vertex(pattern: Pattern, graph: Graph) -> CountTrianglesPerVertex:
    """Plan how to count the triangles of every vertex; `pattern` is a triangle."""
    return CountTrianglesPerVertex(pattern, plan_count(pattern, graph).cost)
