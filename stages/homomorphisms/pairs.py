"""Count patterns of six vertices by what is beside pairs of vertices."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longwall.kernels.interface.engine import Call, Engine, call
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import CodegreePattern
from longwall.kernels.interface.kernels import Kernels
from longwall.stages.range_counting import Counter, CountSubgraphs, SubgraphCounter
from longwall.stages.source import Scan


@dataclass(frozen=True)
class CountPairs(CountSubgraphs):
    """Count the maps of four vertices beside pairs of vertices; see `CodegreePattern`.

    Attributes
    ----------
    beside
        What the four are beside the two.
    """

    codegree: CodegreePattern

    method = "vertex pairs"
    estimated = True
    source = Scan("vertices")

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"vertex pairs with {self._what}"

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        return (
            f"vertex pairs: {self._what} of every two vertices with {self.codegree.common} common neighbours or more; "
            "bitmap tables of the neighbours of each vertex"
        )

    @property
    def _what(self) -> str:
        return WHAT[self.codegree]

    @property
    def kernels(self) -> tuple[Callable[..., Any] | Call, ...]:
        """See `CountRanges`."""
        return (call(Kernels.pair_counter, codegree=self.codegree),)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return SubgraphCounter(engine.kernels.pair_counter(engine.device, graph, self.codegree, memory))


WHAT = {
    CodegreePattern.CHERRY: "paths of three and a vertex, all common neighbours",
    CodegreePattern.TRIANGLE: "triangles and a vertex, all common neighbours",
    CodegreePattern.PATH: "paths of four common neighbours",
    CodegreePattern.PAW: "triangles with a tail, all common neighbours",
    CodegreePattern.CYCLE: "4-cycles of common neighbours",
    CodegreePattern.ENDS: "paths of four, the ends common neighbours",
    CodegreePattern.FORK: "paths of three, the ends common neighbours, and another one",
    CodegreePattern.ZIGZAG: "paths of four, all but the second common neighbours",
    CodegreePattern.TAIL: "triangles with a tail, all but where it begins common neighbours",
    CodegreePattern.STAR: "three common neighbours that a third vertex has, too",
    CodegreePattern.CROSS: "three common neighbours, and a vertex with two of these",
    CodegreePattern.SPLIT: "walks from one common neighbour to the ends of an edge from another one",
}
"""What is beside a pair, as text."""
