"""The counting stage for diamonds: pairs of triangles that share an edge."""

from __future__ import annotations

from dataclasses import dataclass

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import DiamondCounter
from longwall.stages.range_counting import Counter, CountingBench, CountSubgraphs, SubgraphCounter
from longwall.stages.source import Roots


class _Diamonds(SubgraphCounter):
    _kernel: DiamondCounter

    def add_pieces(self, first: int, last: int, bench: CountingBench) -> None:
        self._sum += sum(self._kernel.count(*piece) for piece in bench.arc_pieces(first, last, self._kernel.arc_room))


@dataclass(frozen=True)
class CountDiamonds(CountSubgraphs):
    """Count the diamonds, non-induced: an edge of t triangles is the middle one of t (t - 1) / 2."""

    method = "triangles per edge"
    name = "diamonds by triangles per edge"
    how = "triangles of every edge: t of them at the same edge are t (t - 1) / 2 diamonds"
    source = Roots("arcs", NeighbourRange.SMALLER, copies=True, beyond=True)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return _Diamonds(engine.kernels.diamond_counter(engine.device, graph, memory))

    def add(self, first: int, last: int, bench: CountingBench) -> None:
        """See `CountRanges`."""
        assert isinstance(bench.counter, _Diamonds)
        bench.counter.add_pieces(first, last, bench)
