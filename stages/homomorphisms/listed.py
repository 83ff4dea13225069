"""Count patterns of five vertices inside the neighbourhoods of vertices and edges, by lists of common neighbours."""

from dataclasses import dataclass
from typing import ClassVar

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import WORD
from longwall.kernels.interface.kernels import Kernels
from longwall.stages.homomorphisms.rows import TabledGraph
from longwall.stages.range_counting import Counter, CountSubgraphs, SubgraphCounter
from longwall.stages.source import Scan


@dataclass(frozen=True)
class CountListed(CountSubgraphs):
    """Count a pattern with the lists of a `TabledGraph`."""

    modulus: ClassVar[int] = WORD
    """The modulus of the tables that it reads; none of these has numbers."""


@dataclass(frozen=True)
class CountWheels(CountListed):
    """Count wheels of four spokes: 4-cycles among the neighbours of every vertex."""

    method = "wheels"
    estimated = True
    name = "wheels of 5 vertices"
    how = "wheels: walks of two steps among the neighbours of every vertex, grouped by their ends"
    source = Scan("arcs")

    kernels = (Kernels.wheel_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        assert isinstance(graph, TabledGraph)
        return SubgraphCounter(engine.kernels.wheel_counter(engine.device, graph, graph.tables, memory))


@dataclass(frozen=True)
class CountAlmostCliques(CountListed):
    """Count 5-cliques less an edge: pairs of common neighbours of every triangle."""

    method = "pairs at triangles"
    estimated = True
    name = "almost-cliques of 5 vertices"
    how = "almost-cliques: pairs of common neighbours of every triangle; bitmap tables of the neighbours of each vertex"
    source = Scan("vertices")

    kernels = (Kernels.almost_clique_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        assert isinstance(graph, TabledGraph)
        return SubgraphCounter(engine.kernels.almost_clique_counter(engine.device, graph, graph.tables, memory))
