"""Graphlet degree vectors: how often every vertex stands in each orbit of the connected induced subgraphs around it.

By the same enumeration as motifs (:mod:`longwall.stages.motif_counting`): a subgraph is found once for each vertex
without which it stays connected, and then counted for the others.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longwall.kernels.host.patterns.orbit_tables import Orbits, orbits
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.planning.motifs.census import CensusPlan
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.stages.motif_counting import CountOrbits
from longwall.storage.parquet_files import write_parquet
from longwall.storage.tables.arrow_columns import of_array


@dataclass(frozen=True)
class OrbitPlan(CensusPlan):
    """Orbits of graphlets of 2 to `k` vertices, per vertex."""

    @property
    def phases(self) -> tuple[CountPerVertex, ...]:
        """What counts them: one phase for each size from 3 on."""
        return tuple(CountPerVertex(CountOrbits(size), self.cost) for size in range(3, self.k + 1))

    @property
    def kernels(self) -> tuple[Any, ...]:
        """What counts them."""
        return CountOrbits.kernels

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "graphlet orbits", "k": self.k, "estimated_cost": self.cost}

    def describe(self) -> str:
        """The plan as text."""
        last = _num_orbits(self.k) - 1
        lines = [
            f"orbits       0 to {last}, of the connected induced subgraphs of 2 to {self.k} vertices",
            *(phase.describe() for phase in self.phases),
            f"estimate     {self.cost:.3g} elementary steps",
        ]
        return "\n".join(lines)

    def counts(self, env: Coordinator) -> list[int]:
        """Write ``vertices.parquet``; return the induced subgraphs of each connected pattern of k vertices."""
        graph = env.graph
        columns = {"vertex": graph.all_ids(), "orbit_0": of_array(np.diff(graph.indptr))}
        counts: list[int] = []
        size = 8 * (1 + _num_orbits(self.k)) * graph.num_vertices
        with env.resources.host.reserve(size, "the graphlet degree vectors"):
            counted = [_counted(env, phase) for phase in self.phases]
            for vertices, (phase, record, seconds) in enumerate(counted, 3):
                of = orbits(vertices)
                with phase.run(env, record) as rows:  # their memory is reserved above, too
                    env.metrics.record("orbits", 0, 2 * env.graph.num_edges, len(rows[0]), seconds)
                columns |= {f"orbit_{of.first + i}": of_array(row) for i, row in enumerate(rows)}
                counts = _patterns(of, rows)
            write_parquet(pa.table(columns), env.results / "vertices.parquet")
        return counts


def _counted(env: Coordinator, phase: CountPerVertex) -> tuple[CountPerVertex, PhaseRecord, float]:
    """Count the orbits of one size; return its commits and seconds, too."""
    began = time.perf_counter()
    record = phase.counted(env)
    return phase, record, time.perf_counter() - began


def _patterns(of: Orbits, rows: NDArray[np.int64]) -> list[int]:
    """Return the number of subgraphs of every pattern, from the vertices' counts of one of its orbits."""
    counts = [0] * (int(of.classes.max()) + 1)
    for row, size, number in zip(rows, of.sizes.tolist(), of.classes.tolist(), strict=True):
        counts[number] = int(row.sum()) // size
    return counts


def _num_orbits(k: int) -> int:
    last = orbits(k)
    return last.first + len(last.ways)
