"""Count what contains each edge of a range of edges."""

from __future__ import annotations

from dataclasses import dataclass

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.edge_graph import edge_graph


@dataclass(frozen=True)
class CountPerEdge(CountPerVertex):
    """Count what contains each edge of a range of edges."""

    def arrays(self, env: Environment) -> GraphArrays:
        """See `RangePhase`."""
        return edge_graph(env)
