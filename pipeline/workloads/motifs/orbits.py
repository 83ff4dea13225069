"""Graphlet degree vectors: how often every vertex stands in each orbit of the connected induced subgraphs around it.

By the same enumeration as in :mod:`longwall.pipeline.workloads.motifs.by_enumeration`: a subgraph is found once for
each vertex without which it stays connected, and then counted for the others.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import VertexCounter
from longwall.kernels.patterns.orbit_tables import Orbits, orbits
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.workloads.motifs.by_enumeration import plan_enumeration
from longwall.storage.errors import RunError
from longwall.storage.graph.stats import GraphStats
from longwall.storage.parquet_files import write_parquet


@dataclass(frozen=True)
class OrbitPlan:
    """Orbits of graphlets of 2 to `k` vertices, per vertex.

    Attributes
    ----------
    k
        3 or 4.
    cost
        Estimated number of elementary steps.
    """

    k: int
    cost: float

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "graphlet orbits", "k": self.k, "estimated_cost": self.cost}

    def describe(self) -> str:
        """The plan as text."""
        return (
            f"orbits       0 to {_num_orbits(self.k) - 1}, of the connected induced subgraphs of 2 to {self.k} vertices"
            "\ncount        enumeration, per vertex: connected sets with one vertex less; of the last vertex, how many "
            "there are with each neighbourhood\n"
            f"estimate     {self.cost:.3g} elementary steps"
        )

    def count(self, env: Coordinator) -> list[int]:
        """Write ``vertices.parquet``; return the induced subgraphs of each connected pattern of k vertices."""
        graph = env.graph
        columns = {"vertex": graph.original_ids, "orbit_0": np.diff(graph.indptr)}
        counts: list[int] = []
        size = 8 * (1 + _num_orbits(self.k)) * graph.num_vertices
        with env.resources.host.reserve(size, "the graphlet degree vectors"):
            for vertices in range(3, self.k + 1):
                of = orbits(vertices)
                rows = _count(env, vertices, of, self.cost)
                columns |= {f"orbit_{of.first + i}": row for i, row in enumerate(rows)}
                counts = _patterns(of, rows)
            write_parquet(pa.table(columns), env.results / "vertices.parquet")
        return counts


def plan_orbits(k: int, stats: GraphStats) -> OrbitPlan:
    """Plan the counts of orbits of graphlets of 2 to `k` vertices, 3 or 4."""
    return OrbitPlan(k, plan_enumeration(k, stats).cost)


@dataclass(frozen=True)
class OrbitCounts(CountPerVertex):
    """Count how often every vertex stands in each orbit of the induced subgraphs of a size.

    Attributes
    ----------
    vertices
        Of the subgraphs.
    """

    vertices: int

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"orbits of {self.vertices} vertices"

    @property
    def rows(self) -> int:
        """Number of orbits."""
        return len(orbits(self.vertices).ways)

    def counter(self, env: Environment, graph: GraphArrays, memory: int) -> VertexCounter:
        """See `CountPerVertex`."""
        table = orbits(self.vertices).table
        return env.engine.kernels.orbit_counter(env.engine.device, graph, self.vertices, table, memory)


def _count(env: Coordinator, vertices: int, of: Orbits, cost: float) -> NDArray[np.int64]:
    """Count the orbits of one size: int64[orbits, num_vertices], owned by the caller."""
    began = time.perf_counter()
    with OrbitCounts(cost, vertices).run(env) as found:
        rows = found
        for row, ways in zip(rows, of.ways, strict=True):
            if any((block % ways).any() for block in np.array_split(row, -(-len(row) >> 20) or 1)):
                raise RunError(
                    f"internal fault: subgraphs of {vertices} vertices were not found as often as they should"
                )
            row //= ways
    env.metrics.record("orbits", 0, 2 * env.graph.num_edges, len(rows[0]), time.perf_counter() - began)
    return rows


def _patterns(of: Orbits, rows: NDArray[np.int64]) -> list[int]:
    """Return the number of subgraphs of every pattern, from the vertices' counts of one of its orbits."""
    counts = [0] * (int(of.classes.max()) + 1)
    for row, size, number in zip(rows, of.sizes.tolist(), of.classes.tolist(), strict=True):
        counts[number] = int(row.sum()) // size
    return counts


def _num_orbits(k: int) -> int:
    last = orbits(k)
    return last.first + len(last.ways)
