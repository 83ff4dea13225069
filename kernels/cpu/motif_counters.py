"""Scratch around the motif kernels."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu import motifs
from longwall.kernels.interface.engine import GraphArrays, WorkspaceTooLarge

_EXACT_BELOW = 2.0**62


class _Scratch:
    """Marks and tables of one worker."""

    def __init__(self, graph: GraphArrays, k: int, results: int, memory: int, stop_flag: NDArray[np.uint8]):
        masks = 1 << (k - 2)
        self.workspace_bytes = graph.num_vertices + 8 * (results + masks * (2 * 256 + k + 2))
        if self.workspace_bytes > memory:
            raise WorkspaceTooLarge(self.workspace_bytes)
        self._graph, self._k = graph, k
        self._marks = np.zeros(graph.num_vertices, np.uint8)
        self._known = np.zeros((k, masks), np.int64)
        self._fresh = np.zeros(masks, np.int64)
        self._found = np.zeros((masks, 2, 256), np.int64)
        self._taken = np.zeros(masks, np.int64)
        self._stop_flag = stop_flag
        self._estimate = 0.0

    def _exact(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._estimate >= _EXACT_BELOW:
            raise OverflowError(f"counts that add up to about {self._estimate:.3g} do not fit 64-bit integers")
        return counts


class CpuMotifCounter(_Scratch):
    """Counts by class and mask."""

    def __init__(
        self,
        graph: GraphArrays,
        k: int,
        entries: NDArray[np.uint32],
        classes: int,
        memory: int,
        stop_flag: NDArray[np.uint8],
    ):
        super().__init__(graph, k, classes << (k - 1), memory, stop_flag)
        self._entries = entries
        self._members = np.zeros(k, np.int64)
        self._cursors = np.zeros((k, 3), np.int64)
        self._totals = np.zeros((classes, 1 << (k - 1)), np.int64)

    def add(self, first: int, last: int) -> None:
        """Count the subgraphs of a range of slots."""
        self._estimate += motifs.count_motifs(
            self._graph.indptr,
            self._graph.indices,
            self._k,
            first,
            last,
            self._entries,
            self._members,
            self._cursors,
            self._marks,
            self._known,
            self._fresh,
            self._found,
            self._taken,
            self._totals,
            self._stop_flag,
        )

    def counts(self) -> NDArray[np.int64]:
        """Counts by class and mask so far."""
        return self._exact(self._totals)


class CpuOrbitCounter(_Scratch):
    """Counts by orbit and vertex."""

    def __init__(
        self,
        graph: GraphArrays,
        k: int,
        orbits: NDArray[np.int64],
        memory: int,
        stop_flag: NDArray[np.uint8],
    ):
        number = int(orbits.max()) + 1
        super().__init__(graph, k, number * graph.num_vertices, memory, stop_flag)
        self._orbits = orbits
        self._counts = np.zeros((number, graph.num_vertices), np.int64)

    def add(self, first: int, last: int) -> None:
        """Count the subgraphs of a range of slots."""
        self._estimate += motifs.add_orbits(
            self._graph.indptr,
            self._graph.indices,
            self._k,
            first,
            last,
            self._orbits,
            self._marks,
            self._known,
            self._fresh,
            self._found,
            self._taken,
            self._counts,
            self._stop_flag,
        )

    def counts(self) -> NDArray[np.int64]:
        """Counts by orbit and vertex so far."""
        return self._exact(self._counts)
