"""Counting stages for maximal cliques, which follow the degeneracy order of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kernels import Kernels
from longwall.kernels.interface.maximal_cliques import OrderedGraph
from longwall.kernels.interface.workspaces import ArrayCounter
from longwall.stages.base import Aggregation
from longwall.stages.range_counting import (
    Counter,
    CountOfVertices,
    CountRanges,
    KernelCounter,
    VertexCounts,
)
from longwall.stages.source import Scan

SEARCH = "Bron-Kerbosch with pivots, over bitmaps of the later neighbours of each vertex in degeneracy order"
"""What all stages for maximal cliques do, as text."""


class _Sizes(KernelCounter[ArrayCounter]):
    _before: NDArray[np.int64] | None = None

    def take(self) -> list[int]:
        counts, before = self.kernel.counts(), self._before
        self._before = counts.copy()
        found: list[int] = np.trim_zeros(counts if before is None else counts - before, "b").tolist()
        return found


def add_sizes(sizes: Sequence[list[int]]) -> list[int]:
    """Add up counts by size."""
    return [sum(counts) for counts in zip_longest(*sizes, fillvalue=0)]


@dataclass(frozen=True)
class CountMaximalCliques(CountRanges):
    """Count maximal cliques of at least `min_size` vertices by size: place s of the result has those of s vertices."""

    min_size: int

    name = method = "maximal cliques"
    source = Scan("vertices")
    aggregation = Aggregation(_Sizes.take, add_sizes, list)

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        return f"maximal cliques of at least {self.min_size} vertices, by size: {SEARCH}"

    kernels = (Kernels.degeneracy_order, Kernels.maximal_clique_counter)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`; the graph is an `OrderedGraph`."""
        assert isinstance(graph, OrderedGraph)
        return _Sizes(engine.kernels.maximal_clique_counter(engine.device, graph, graph.order, self.min_size, memory))

    def found(self, partial: list[int]) -> int:
        """See `CountRanges`."""
        return sum(partial)


@dataclass(frozen=True)
class CountMaximalCliquesOfVertices(CountOfVertices):
    """Count the maximal cliques of every vertex, of at least `min_size` vertices, and find the size of its largest one.

    The result has three rows: the cliques of each vertex, the size of its largest one, and at place s - 1 of the last
    row all cliques of s vertices.
    """

    min_size: int

    name = method = "maximal cliques per vertex"
    source = Scan("vertices")
    rows = 3

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        return f"maximal cliques of at least {self.min_size} vertices, by vertex and by size: {SEARCH}"

    kernels = (Kernels.degeneracy_order, Kernels.maximal_clique_vertex_counter)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> ArrayCounter:
        """See `CountRanges`; the graph is an `OrderedGraph`."""
        assert isinstance(graph, OrderedGraph)
        kernels = engine.kernels
        return kernels.maximal_clique_vertex_counter(engine.device, graph, graph.order, self.min_size, memory)

    def _add(self, total: VertexCounts, other: VertexCounts) -> None:
        """Add counts up; of the largest sizes, the larger one stays."""
        np.maximum(total[1], other[1], out=total[1])
        total[0] += other[0]
        total[2] += other[2]
