"""The workspaces of one worker that counts cliques by the leaves of pivot trees."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.cpu.kcliques.narrow import LEVELS, Found, Narrow
from longwall.kernels.cpu.kcliques.search import Wide, find_leaves
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import leaf_shape, leaf_weights, weight_bytes
from longwall.kernels.interface.workspaces import NARROW


class _Search:
    """Bitmaps and stacks of one worker, and where it leaves what it finds."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, k: int, limbs: int, memory: int):
        n, most = graph.num_vertices, graph.max_out_degree
        words = (most + 63) // 64
        wide = most if most > NARROW else 0
        levels = max(most - NARROW, 0) // 2 + 2
        shape = (1, 1) if limbs else leaf_shape(k, most)
        sizes = {
            "local": 4 * n,
            "tables": 8 * words * (most + wide) + 4 * most,
            "levels": 16 * words * levels + 24 * levels + 12 * NARROW + 40 * LEVELS,
            "path": 8 * (most + 2),
            "leaves": 16 * shape[0] * shape[1],
            "counts": 8 * limbs * n + (weight_bytes(k, most, limbs) if limbs else 0),
        }
        self.workspace_bytes = fitting(sum(sizes.values()), memory)
        self._graph, self._stop_flag = graph, device.stop_flag
        self._local = np.zeros(n, np.int32)
        self._wide = Wide(
            np.empty((most, words), np.uint64),
            np.empty((wide, words), np.uint64),
            np.empty(most, np.int32),
            np.empty((levels, words), np.uint64),
            np.empty((levels, words), np.uint64),
            *np.empty((3, levels), np.int64),
        )
        self._narrow = Narrow(
            np.empty(NARROW, np.uint32),
            np.empty(NARROW, np.uint64),
            np.empty(LEVELS, np.uint64),
            np.empty(LEVELS, np.uint64),
            *np.empty((3, LEVELS), np.int64),
        )
        held, pivots = np.empty((2, most + 2), np.uint32)
        self._found = Found(
            k,
            np.zeros(shape, np.int64),
            held,
            pivots,
            leaf_weights(k, most, limbs) if limbs else np.empty((0, 0, 0), np.uint64),
            np.zeros((limbs, n), np.uint64) if limbs else np.empty((0, 0), np.uint64),
        )

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the arcs `first` to `last` - 1."""
        g = self._graph
        find_leaves(*g.rows, first, last, self._local, self._wide, self._narrow, self._found, self._stop_flag)


class CpuCliqueLeaves(_Search):
    """Counts leaves by held vertices and pivots."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, k: int, memory: int):
        super().__init__(device, graph, k, 0, memory)

    def take(self) -> NDArray[np.int64]:
        """Leaves since the last call."""
        leaves = self._found.leaves.copy()
        self._found.leaves[:] = 0
        return leaves


class CpuCliquesOfVertices(_Search):
    """Counts the k-cliques of every vertex."""

    def counts(self) -> NDArray[np.int64]:
        """Cliques of every vertex so far."""
        return self._found.counts.view(np.int64)
