"""Graphlet degree vectors of 5 vertices, without enumerating what they count.

A kernel counts homomorphisms of graphlets around every vertex; the vectors of other orbits, and the orbits themselves,
are linear algebra (:mod:`longwall.pipeline.workloads.motifs.orbit_vectors`).
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.patterns.graphlets import graphlet_orbits, graphlets
from longwall.kernels.patterns.pattern_codes import dictionary
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.workloads.motifs.arc_triangles import triangle_graph
from longwall.pipeline.workloads.motifs.orbit_vectors import (
    ARC_BYTES,
    homomorphism_vectors,
    orbits_of_homomorphisms,
    require_orbits_fit,
)
from longwall.stages.orbit_counting import CountOrbitHomomorphisms
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import GraphStats
from longwall.storage.parquet_files import ParquetSink

_SIZE = 5  # vertices of the largest graphlets
_VERTICES_AT_ONCE = 1 << 14  # whose orbits are computed and written together
_COPIES = 3  # of their numbers


@dataclass(frozen=True)
class CountHomomorphismsOfVertices(CountPerVertex):
    """Count the homomorphisms around every vertex."""

    def arrays(self, env: Environment) -> GraphArrays:
        """See `RangePhase`."""
        return triangle_graph(env)


@dataclass(frozen=True)
class OrbitCountingPlan:
    """Orbits of graphlets of 2 to 5 vertices, per vertex.

    Attributes
    ----------
    cost
        Estimated number of elementary steps.
    """

    cost: float

    @property
    def phase(self) -> CountHomomorphismsOfVertices:
        """What counts them."""
        return CountHomomorphismsOfVertices(CountOrbitHomomorphisms(), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "graphlet orbits by counting", "k": _SIZE, "estimated_cost": self.cost}

    def describe(self) -> str:
        """The plan as text."""
        last = len(graphlet_orbits()) - 1
        return (
            f"orbits       0 to {last}, of the connected induced subgraphs of 2 to {_SIZE} vertices\n"
            f"{self.phase.describe()}\n"
            "             of them the orbits: a linear map, exact in 64-bit integers\n"
            f"estimate     {self.cost:.3g} elementary steps"
        )

    def count(self, env: Coordinator) -> list[int]:
        """Write ``vertices.parquet``; return the induced subgraphs of each connected pattern of 5 vertices."""
        graph, number = env.graph, len(graphlet_orbits())
        size = 8 * number * (graph.num_vertices + _COPIES * _VERTICES_AT_ONCE)
        size += ARC_BYTES * max(graph.stats.max_degree, 1 << 18)
        with env.resources.host.reserve(size, "the graphlet degree vectors"):
            require_orbits_fit(graph)
            began = time.perf_counter()
            with self.phase.run(env) as rows:
                vectors = homomorphism_vectors(graph, rows)
            sums = _write(env, graph, vectors)
            seconds = time.perf_counter() - began
            env.metrics.record("orbits", 0, 2 * graph.num_edges, graph.num_vertices, seconds)
        return _patterns(sums)


def plan_orbit_counting(stats: GraphStats) -> OrbitCountingPlan:
    """Plan the counts of orbits of graphlets of 2 to 5 vertices."""
    neighbour_degree = stats.sum_degree_squared / max(2 * stats.num_edges, 1)
    return OrbitCountingPlan(stats.sum_degree_squared * max(neighbour_degree, 1.0))


def _write(env: Coordinator, graph: Graph, vectors: NDArray[np.int64]) -> list[int]:
    """Write the orbits of every vertex; return the sum of each."""
    ids = graph.all_ids()
    names = [f"orbit_{orbit}" for orbit in range(len(vectors))]
    schema = pa.schema([("vertex", ids.type), *((name, pa.int64()) for name in names)])
    sums = [0] * len(vectors)
    with ParquetSink(env.results / "vertices.parquet", schema) as sink:
        for first in range(0, graph.num_vertices, _VERTICES_AT_ONCE):
            counts = orbits_of_homomorphisms(np.ascontiguousarray(vectors[:, first : first + _VERTICES_AT_ONCE]))
            for orbit, row in enumerate(counts):
                sums[orbit] += exact_sum(row)
            columns = [ids.slice(first, counts.shape[1]), *(pa.array(row) for row in counts)]
            sink.write(pa.table(columns, schema=schema))
    return sums


def exact_sum(counts: NDArray[np.int64]) -> int:
    """Add counts up, however large their sum is."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())


def _patterns(sums: list[int]) -> list[int]:
    """Return the number of induced subgraphs of every connected pattern of 5 vertices, by the order of their codes."""
    book = dictionary(_SIZE)
    counts = [0] * len(book.codes)
    for orbit, total in zip(graphlet_orbits(), sums, strict=True):
        graphlet = graphlets()[orbit.graphlet]
        if graphlet.size == _SIZE:
            code = sum(1 << v * (v - 1) // 2 + u for u, v in graphlet.edges)
            counts[int(book.entries[code]) & 1023] = total // orbit.size
    return counts
