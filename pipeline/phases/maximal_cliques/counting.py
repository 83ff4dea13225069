"""Count maximal cliques by size, or per vertex."""

from __future__ import annotations

from dataclasses import dataclass

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.maximal_cliques.order import ordered_graph
from longwall.pipeline.phases.range_count import RangeCount


@dataclass(frozen=True)
class CliqueSizes(RangeCount):
    """Count maximal cliques by size."""

    def arrays(self, env: Environment) -> GraphArrays:
        """See `RangePhase`."""
        return ordered_graph(env)


@dataclass(frozen=True)
class CliquesPerVertex(CountPerVertex):
    """Count the maximal cliques of every vertex."""

    def arrays(self, env: Environment) -> GraphArrays:
        """See `RangePhase`."""
        return ordered_graph(env)
