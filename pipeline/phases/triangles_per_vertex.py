"""Count the triangles of every vertex."""

from __future__ import annotations

from dataclasses import dataclass

from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import VertexCounter
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.phases.count_per_vertex import CountPerVertex


@dataclass(frozen=True)
class TrianglesPerVertex(CountPerVertex):
    """Count the triangles of every vertex."""

    reads = NeighbourRange.SMALLER
    copies = True

    @property
    def name(self) -> str:
        """See `Phase`."""
        return "triangles per vertex"

    def counter(self, env: Environment, graph: GraphArrays, memory: int) -> VertexCounter:
        """See `CountPerVertex`."""
        return env.engine.kernels.triangle_vertex_counter(env.engine.device, graph, memory)
