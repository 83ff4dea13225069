"""Counting stages for motifs: connected sets of k - 1 vertices are enumerated, and of the last vertex only counted.

Each connected set of k - 1 vertices is found once, and how many vertices have each adjacency to it is counted
(:mod:`longwall.kernels.cpu.local_counts.motifs`): so every subgraph is found once for each vertex without which it
stays connected, a number that its pattern knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longwall.kernels.host.patterns.orbit_tables import orbits
from longwall.kernels.host.patterns.pattern_codes import dictionary, growth
from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kernels import Kernels
from longwall.kernels.interface.workspaces import ArrayCounter
from longwall.stages.base import Aggregation
from longwall.stages.range_counting import Counter, CountOfVertices, CountRanges, KernelCounter, VertexCounts
from longwall.stages.source import Scan
from longwall.storage.errors import FinalError, RunError

_EXACT_BELOW = 2.0**62
_COPIES = 3  # of a worker's counts: its own, those that were taken, and what is new
_BLOCK = 1 << 20  # vertices that are checked at once
ClassCounts = tuple[list[int], list[int]]
"""The places of the counts that are not 0, and these counts."""


def _sets(k: int) -> str:
    return f"every connected set of {k - 1} vertices; of the last vertex, how many there are with each neighbourhood"


class _ClassCounter(KernelCounter[ArrayCounter]):
    def __init__(self, kernel: ArrayCounter, size: int):
        super().__init__(kernel)
        self._before = np.zeros(size, np.int64)

    def take(self) -> ClassCounts:
        counts = self.kernel.counts().reshape(-1)
        new = counts - self._before
        np.copyto(self._before, counts)
        places = np.flatnonzero(new)
        return places.tolist(), new[places].tolist()


def _add_classes(found: Sequence[ClassCounts]) -> ClassCounts:
    if not found:
        return [], []
    places, where = np.unique(np.concatenate([np.array(places, np.int64) for places, _ in found]), return_inverse=True)
    counts = np.concatenate([np.array(counts, np.int64) for _, counts in found])
    size = float(np.sum(counts, dtype=np.float64))
    if size >= _EXACT_BELOW:
        raise FinalError(f"about {size:.3g} motifs do not fit 64-bit integers: count motifs of fewer vertices")
    totals = np.zeros(places.size, np.int64)
    np.add.at(totals, where, counts)
    return places.tolist(), totals.tolist()


@dataclass(frozen=True)
class CountMotifClasses(CountRanges):
    """Count sets of `k` - 1 vertices by class, and by the neighbours of a further vertex.

    Attributes
    ----------
    k
        Number of vertices of the motifs, 3 to 8.
    """

    k: int

    method = "motifs"

    @cached_property
    def source(self) -> Scan:
        """See `CountRanges`."""
        return Scan("arcs", growth=self.k - 2)

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"motifs of {self.k} vertices"

    @property
    def shape(self) -> tuple[int, int]:
        """Classes, and sets of neighbours."""
        return len(dictionary(self.k - 1).codes), 1 << (self.k - 1)

    @property
    def aggregation(self) -> Aggregation[ClassCounts, list[int]]:
        """Sparse counts by class and neighbours; the result is a count for every pattern, by its code."""
        return Aggregation(_ClassCounter.take, _add_classes, self._by_pattern)

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        return f"enumeration: {_sets(self.k)}"

    kernels = (Kernels.motif_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        entries, (classes, sets) = dictionary(self.k - 1).entries, self.shape
        kernel = engine.kernels.motif_counter(engine.device, graph, self.k, entries, classes, memory)
        return _ClassCounter(kernel, classes * sets)

    def found(self, partial: ClassCounts) -> int:
        """See `CountRanges`."""
        return sum(partial[1])

    def host_bytes(self, workers: int) -> int:
        """See `CountRanges`."""
        classes, sets = self.shape
        return 8 * classes * sets * _COPIES * workers + dictionary(self.k - 1).entries.nbytes

    def _by_pattern(self, found: ClassCounts) -> list[int]:
        places, numbers = found
        by_class = np.zeros(self.shape, np.int64)
        by_class.reshape(-1)[places] = numbers
        grown = growth(self.k - 1)
        counts = np.zeros(len(grown.codes), np.int64)
        np.add.at(counts, grown.classes[:, 1:].reshape(-1), by_class[:, 1:].reshape(-1))
        counts, rest = np.divmod(counts, grown.ways)
        if rest.any() or by_class[:, 0].any():
            raise RunError(f"internal fault: motifs of {self.k} vertices were not found once per removable vertex")
        return [int(count) for count in counts]


@dataclass(frozen=True)
class CountOrbits(CountOfVertices):
    """Count how often every vertex stands in each orbit of the induced subgraphs of a size.

    Attributes
    ----------
    vertices
        Of the subgraphs, 3 or 4.
    """

    vertices: int

    method = "orbits"
    source = Scan("arcs")

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"orbits of {self.vertices} vertices"

    @property
    def rows(self) -> int:
        """Number of orbits."""
        return len(orbits(self.vertices).ways)

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        return f"{self.name}, per vertex: {_sets(self.vertices)}"

    kernels = (Kernels.orbit_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> ArrayCounter:
        """See `CountRanges`."""
        table = orbits(self.vertices).table
        return engine.kernels.orbit_counter(engine.device, graph, self.vertices, table, memory)

    def _finished(self, counts: VertexCounts) -> VertexCounts:
        """Divide by how often each subgraph is found for one of its vertices."""
        for row, ways in zip(counts, orbits(self.vertices).ways, strict=True):
            if any((block % ways).any() for block in np.array_split(row, -(-len(row) // _BLOCK) or 1)):
                raise RunError(
                    f"internal fault: subgraphs of {self.vertices} vertices were not found as often as they should"
                )
            row //= ways
        return counts
