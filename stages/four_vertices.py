"""The counting stages for 4-cycles and diamonds: pairs of wedges with the same ends, and of triangles with an edge."""

from __future__ import annotations

from dataclasses import dataclass

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kernels import Kernels
from longwall.kernels.interface.local_counts import ArcDiamondCounter, ColumnCycleCounter
from longwall.kernels.interface.pages import NeighbourRange
from longwall.stages.range_counting import BlockCounter, Counter, CountingContext, CountSubgraphs, SubgraphCounter
from longwall.stages.source import ALL_ARCS, Scan


class _Diamonds(BlockCounter):
    _kernel: ArcDiamondCounter

    def add_blocks(self, first: int, last: int, context: CountingContext) -> None:
        kernel = self._kernel
        with context.counts_in_turn(first, last, kernel) as pieces:
            if pieces is None:
                self._sum += sum(kernel.count(*piece) for piece in context.arc_pieces(first, last, kernel.arc_capacity))
            else:
                self._sum += kernel.count_pieces(pieces)


@dataclass(frozen=True)
class CountDiamondsOfArcs(CountSubgraphs):
    """Count the diamonds, non-induced: an edge of t triangles is the middle one of t (t - 1) / 2."""

    method = "triangles per edge"
    estimated = True
    name = "diamonds by triangles per edge"
    how = "triangles of every edge: t of them at the same edge are t (t - 1) / 2 diamonds"
    source = Scan("arcs", NeighbourRange.SMALLER, copies=True, arcs=ALL_ARCS, share=0.65)
    streams = False

    kernels = (Kernels.arc_diamond_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return _Diamonds(engine.kernels.arc_diamond_counter(engine.device, graph, memory))


class _ByColumns(BlockCounter):
    _kernel: ColumnCycleCounter

    def add_blocks(self, first: int, last: int, context: CountingContext) -> None:
        self._sum += sum(
            self._kernel.count(*piece) for piece in context.columns(first, last, self._kernel.arc_capacity)
        )


@dataclass(frozen=True)
class CountFourCycles(CountSubgraphs):
    """Count the cycles of 4 vertices by their wedges (Chiba and Nishizeki)."""

    method = "wedge aggregation"
    estimated = True
    name = "wedge aggregation of 4 vertices"
    how = "wedge aggregation: wedges grouped by their ends; c with the same ends are c (c - 1) / 2 cycles"
    source = Scan("vertices", streams=True, share=0.75)

    kernels = (Kernels.four_cycle_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        if graph.pages is not None and graph.pages.staged:
            return _ByColumns(engine.kernels.column_cycle_counter(engine.device, graph, memory))
        return SubgraphCounter(engine.kernels.four_cycle_counter(engine.device, graph, memory))
