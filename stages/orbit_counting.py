"""A counting stage for the orbits of graphlets of 5 vertices: homomorphisms are counted, of which orbits are made."""

from __future__ import annotations

from dataclasses import dataclass

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kernels import Kernels
from longwall.kernels.interface.local_counts import COUNTED, TriangleGraph
from longwall.kernels.interface.workspaces import ArrayCounter
from longwall.stages.range_counting import CountOfVertices
from longwall.stages.source import Scan


@dataclass(frozen=True)
class CountOrbitHomomorphisms(CountOfVertices):
    """Count the homomorphisms of graphlets of up to 5 vertices that send a vertex of an orbit to a vertex.

    Attributes
    ----------
    prime
        What they are modulo; 0 for 2**64.
    """

    prime: int = 0

    method = "orbits"
    how = "homomorphisms of graphlets of up to 5 vertices, per vertex: sums over its wedges, triangles and cliques"
    source = Scan("vertices")
    rows = len(COUNTED)
    wraps = True

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return "homomorphisms for orbits of 5 vertices" + (f", modulo {self.prime}" if self.prime else "")

    kernels = (Kernels.orbit_homomorphism_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> ArrayCounter:
        """See `CountRanges`; the graph is a `TriangleGraph`."""
        assert isinstance(graph, TriangleGraph)
        return engine.kernels.orbit_homomorphism_counter(engine.device, graph, self.prime, memory)
