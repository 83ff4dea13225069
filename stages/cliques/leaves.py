"""Counting stages for cliques of one or of all sizes, by the leaves of pivot trees: one stands for many cliques."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longwall.kernels.interface.engine import Call, Engine, WorkspaceTooLarge, call
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import ALL_SIZES, LeafCounter, add_limbs, cliques_of_leaves
from longwall.kernels.interface.kernels import Kernels
from longwall.kernels.interface.pages import NeighbourRange
from longwall.kernels.interface.workspaces import ArrayCounter
from longwall.stages.base import Aggregation
from longwall.stages.cliques.maximal import add_sizes
from longwall.stages.range_counting import (
    Counter,
    CountOfVertices,
    CountRanges,
    CountSubgraphs,
    KernelCounter,
    SubgraphCounter,
    VertexCounts,
)
from longwall.stages.source import Scan

PIVOTS = (
    "bitmaps of the common out-neighbours of both ends of every arc; below each, pivots where they leave few branches, "
    "else edges and triangles one by one"
)
"""What the search does, as text."""
PIVOTS_FROM, PIVOT_WIDTH = 6, 80
"""Vertices of the smallest cliques of one size that are counted so, and the most out-neighbours of a vertex with which
they are: bitmaps alone do for smaller ones, and where vertices have more out-neighbours."""
PIVOTS_ALWAYS_FROM = 8
"""Vertices from which that holds for every graph.

Bitmaps count the last four vertices by the pairs that are not adjacent. Processor seconds of 6-cliques by pivots and by
bitmaps, one core: ca-AstroPh, with 65 out-neighbours at most, 0.065 and 0.045, R-MAT 14 0.33 and 0.17, R-MAT 16 3.66
and 2.26; of 7-cliques 0.053 and 0.073, 0.77 and 0.30, 11.6 and 4.2; of 8-cliques, R-MAT 13 0.34 and 0.52. One H200,
milliseconds: 6-cliques of ca-AstroPh 0.49 and 1.09, R-MAT 13 0.87 and 1.00, R-MAT 16 22 and 26, R-MAT 18 625 and 198;
7-cliques 0.49 and 2.70, 2.8 and 2.0, 104 and 33, 1,414 and 368.
"""
MOST_ENUMERATED = 16
"""Vertices of the largest cliques that are counted one by one where there is no room for pivots."""
_SOURCE = Scan("arcs", NeighbourRange.SMALLER, copies=True, lists_tasks=True)


def suits_pivots(k: int, max_out_degree: int) -> bool:
    """Return whether cliques of one size are counted by pivots."""
    return k >= (PIVOTS_FROM if max_out_degree <= PIVOT_WIDTH else PIVOTS_ALWAYS_FROM)


class _OneSize(KernelCounter[LeafCounter]):
    def __init__(self, kernel: LeafCounter, k: int):
        super().__init__(kernel)
        self._k = k

    def take(self) -> int:
        return cliques_of_leaves(self.kernel.take(), self._k)[self._k]


class _AllSizes(KernelCounter[LeafCounter]):
    def take(self) -> list[int]:
        return cliques_of_leaves(self.kernel.take())


@dataclass(frozen=True)
class CountCliquesByPivots(CountSubgraphs):
    """Count the cliques of `k` vertices (k >= 4)."""

    k: int

    method = "clique pivots"
    interruptible = True
    how = f"clique pivots: {PIVOTS}"
    source = _SOURCE

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"{self.method} of {self.k} vertices"

    @property
    def smallest(self) -> int:
        """See `CountRanges`."""
        return self.k

    kernels = (Kernels.clique_leaf_counter,)
    overlaps = True

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`; where there is no room for pivots, small cliques are counted one by one."""
        kernels, device = engine.kernels, engine.device
        try:
            return _OneSize(kernels.clique_leaf_counter(device, graph, self.k, memory), self.k)
        except WorkspaceTooLarge:
            if self.k > MOST_ENUMERATED:
                raise
        return SubgraphCounter(kernels.clique_counter(device, graph, self.k, memory))


@dataclass(frozen=True)
class CountLargeCliques(CountCliquesByPivots):
    """Count the cliques of `k` vertices where there is no other way to do it: patterns have fewer vertices."""

    optional = False


@dataclass(frozen=True)
class CountCliqueSizes(CountRanges):
    """Count the cliques of every size: place s of the result has those of s vertices, from 3 on."""

    method = name = "cliques by size"
    interruptible = True
    how = f"cliques of every size: {PIVOTS}"
    source = _SOURCE
    aggregation = Aggregation(_AllSizes.take, add_sizes, list)

    kernels = (Kernels.clique_leaf_counter,)
    overlaps = True

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return _AllSizes(engine.kernels.clique_leaf_counter(engine.device, graph, ALL_SIZES, memory))

    def found(self, partial: list[int]) -> int:
        """See `CountRanges`."""
        return sum(partial[3:])


@dataclass(frozen=True)
class CountCliquesOfVertices(CountOfVertices):
    """Count the cliques of `k` vertices (k >= 3) that every vertex is in, in `limbs` words of 64 bits each."""

    k: int
    limbs: int

    method = "cliques per vertex"
    how = f"cliques of every vertex: {PIVOTS}"
    source = _SOURCE
    wraps = True

    @property
    def rows(self) -> int:
        """See `CountOfVertices`."""
        return self.limbs

    def counts_shape(self, num_vertices: int) -> tuple[int, ...]:
        """See `CountOfVertices`."""
        return self.limbs, num_vertices

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"{self.method}, of {self.k} vertices"

    @property
    def smallest(self) -> int:
        """See `CountRanges`."""
        return self.k

    @property
    def kernels(self) -> tuple[Callable[..., Any] | Call, ...]:
        """See `CountRanges`."""
        return (call(Kernels.clique_vertex_counter, limbs=self.limbs),)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> ArrayCounter:
        """See `CountRanges`."""
        return engine.kernels.clique_vertex_counter(engine.device, graph, self.k, self.limbs, memory)

    def _add(self, total: VertexCounts, other: VertexCounts) -> None:
        add_limbs(total, other)
