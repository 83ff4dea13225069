"""Triangles, cliques and cycles of every edge: tables for every block, and launches of ``edges.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import THREADS, Device, units_that_fit
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.local_counts import EdgeGraph, EdgeShape

Array = Any  # a CuPy array

_BLOCKS = 8  # per multiprocessor
_SHARED = 64  # bytes of a block
_FUNCTIONS = {"triangle": "add_triangles", "clique-4": "add_cliques", "cycle-4": "add_cycles"}


class CudaEdgeCounter:
    """Counts on the device, and a table for every block."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: EdgeGraph, shape: EdgeShape, first: int, number: int, memory: int):
        xp, out = device.xp, graph.max_out_degree
        if shape == "clique-4":
            require_fits(out**2, 32, "the number of adjacent pairs among smaller neighbours")
        self._device, self._graph, self._function, self._first = device, graph, _FUNCTIONS[shape], first
        # Words of 4 bytes of a block: sums and bitmaps of the out-neighbours, or wedges by vertex.
        words = {"triangle": 0, "clique-4": out * (1 + (out + 31) // 32), "cycle-4": graph.num_vertices}[shape]
        self._blocks = units_that_fit(device.multiprocessors * _BLOCKS, 4 * words, memory - 8 * number)
        self._words = words
        self._counts = xp.zeros(number, xp.int64)
        self._store = xp.zeros(max(self._blocks * words, 1), xp.uint32)
        self._next = xp.zeros(1, xp.uint32)

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the vertices first to last - 1."""
        device, graph = self._device, self._graph
        self._next.fill(0)
        work = (self._store, self._words, self._next, device.stop_flag, self._first, self._counts.size, self._counts)
        device.launch(
            "local_counts/edges.cu",
            self._function,
            (*graph.rows, graph.edges, first, last, *work),
            blocks=self._blocks,
            threads=THREADS,
            shared=_SHARED,
        )
        device.synchronize()

    def counts(self) -> NDArray[np.int64]:
        """Counts of the edges so far."""
        host: NDArray[np.int64] = self._counts.get()
        return host
