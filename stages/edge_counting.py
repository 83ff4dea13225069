"""A counting stage for what contains each edge: triangles, cliques of 4 vertices, or cycles of 4 vertices."""

from __future__ import annotations

from dataclasses import dataclass

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kernels import Kernels
from longwall.kernels.interface.local_counts import EdgeGraph, EdgeShape
from longwall.kernels.interface.workspaces import ArrayCounter
from longwall.stages.range_counting import CountOfVertices
from longwall.stages.source import Scan

SHAPES: dict[EdgeShape, tuple[str, int, str]] = {
    "triangle": ("triangles", 3, "the common out-neighbours of both ends"),
    "clique-4": ("cliques", 6, "bitmap tables of the out-neighbours of each vertex; AND, population count"),
    "cycle-4": ("cycles", 4, "wedges grouped by their ends; each is in a cycle with every other of the same ends"),
}
"""Of each shape: its column in the results, its number of edges, and how it is counted."""


@dataclass(frozen=True)
class CountOfEdges(CountOfVertices):
    """Count the subgraphs of a shape that contain each edge of a range of edges.

    Attributes
    ----------
    shape
        The subgraphs.
    first, number
        The edges are those from `first` to `first` + `number` - 1, as numbered by `EdgeGraph`.
    """

    shape: EdgeShape
    first: int
    number: int

    method = "edges"
    source = Scan("vertices")

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"{self.shape} of edges {self.first} to {self.first + self.number - 1}"

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        column, _, how = SHAPES[self.shape]
        return f"{column} of every edge: {how}"

    def places(self, num_vertices: int) -> int:  # noqa: ARG002 - edges have places, not vertices
        """See `CountOfVertices`."""
        return self.number

    kernels = (Kernels.edge_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> ArrayCounter:
        """See `CountRanges`; the graph is an `EdgeGraph`."""
        assert isinstance(graph, EdgeGraph)
        return engine.kernels.edge_counter(engine.device, graph, self.shape, self.first, self.number, memory)
