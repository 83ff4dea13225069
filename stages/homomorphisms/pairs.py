"""Count patterns of six vertices by what is beside pairs of vertices."""

from dataclasses import dataclass

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import Beside
from longwall.stages.range_counting import Counter, CountSubgraphs, SubgraphCounter
from longwall.stages.source import Roots


@dataclass(frozen=True)
class CountPairs(CountSubgraphs):
    """Count the maps of four vertices beside pairs of vertices; see `Beside`.

    Attributes
    ----------
    beside
        What the four are beside the two.
    """

    beside: Beside

    method = "vertex pairs"
    source = Roots("vertices")

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"vertex pairs with {self._what}"

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        return (
            f"vertex pairs: {self._what} of every two vertices with {self.beside.common} common neighbours or more; "
            "bitmap tables of the neighbours of each vertex"
        )

    @property
    def _what(self) -> str:
        return WHAT[self.beside]

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return SubgraphCounter(engine.kernels.pair_counter(engine.device, graph, self.beside, memory))


WHAT = {
    Beside.CHERRY: "paths of three and a vertex, all common neighbours",
    Beside.TRIANGLE: "triangles and a vertex, all common neighbours",
    Beside.PATH: "paths of four common neighbours",
    Beside.PAW: "triangles with a tail, all common neighbours",
    Beside.CYCLE: "4-cycles of common neighbours",
    Beside.ENDS: "paths of four, the ends common neighbours",
    Beside.FORK: "paths of three, the ends common neighbours, and another one",
    Beside.ZIGZAG: "paths of four, all but the second common neighbours",
    Beside.TAIL: "triangles with a tail, all but where it begins common neighbours",
    Beside.STAR: "three common neighbours that a third vertex has, too",
    Beside.CROSS: "three common neighbours, and a vertex with two of these",
    Beside.SPLIT: "walks from one common neighbour to the ends of an edge from another one",
}
"""What is beside a pair, as text."""
