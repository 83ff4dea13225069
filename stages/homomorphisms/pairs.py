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
        pairs = "of two vertices" if self.beside.symmetric else "of a vertex and another one"
        return (
            f"vertex pairs: {self._what} at every pair {pairs} with {self.beside.common} common neighbours; bitmap "
            "tables of the neighbours of each vertex"
        )

    @property
    def _what(self) -> str:
        return WHAT[self.beside]

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return SubgraphCounter(engine.kernels.pair_counter(engine.device, graph, self.beside, memory))


WHAT = {
    Beside.CHERRY: "paths of three and a vertex",
    Beside.TRIANGLE: "triangles and a vertex",
    Beside.PATH: "paths of four",
    Beside.PAW: "triangles with a tail",
    Beside.CYCLE: "4-cycles",
    Beside.ENDS: "paths of four that begin and end at both",
    Beside.FORK: "paths of three that begin and end at both, and a vertex",
    Beside.ZIGZAG: "paths of four, all but the second vertex at both",
    Beside.TAIL: "triangles with a tail, all but where it begins at both",
}
"""What is beside a pair, as text."""
