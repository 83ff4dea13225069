"""Homomorphisms around every vertex: tables for every block, and launches of ``orbits.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import Device, units_that_fit
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.interface.local_counts import COUNTED, TriangleGraph

Array = Any  # a CuPy array

_THREADS = 128
_BLOCKS = 8  # per multiprocessor
_SHARED = 64  # bytes of a block


def orbit_header(*, residues: bool) -> str:
    """Write the ``generated.cuh`` that ``orbits.cu`` includes: rows of orbits, and whether numbers are residues."""
    return constants({f"k{orbit}": row for row, orbit in enumerate(COUNTED)} | {"kResidues": int(residues)})


class CudaOrbitHomomorphismCounter:
    """Counts on the device, and tables around a vertex for every block."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: TriangleGraph, prime: int, memory: int):
        xp, n, degree = device.xp, graph.num_vertices, graph.max_degree
        self._device, self._graph, self._prime = device, graph, prime
        out = graph.max_out_degree
        # In words of 8 bytes, then of 4: diamonds, near; wedges, marks, seen, reached, pairs, slots, inner lists, bits.
        self._long_words = n + degree + 1
        self._words = 4 * n + 2 * degree + 2 * graph.most_triangles + out * ((out + 31) // 32)
        each = 8 * self._long_words + 4 * self._words
        size = 8 * len(COUNTED) * n
        self._blocks = units_that_fit(device.multiprocessors * _BLOCKS, each, memory - size)
        self._counts = xp.zeros((len(COUNTED), n), xp.int64)
        self._long = xp.zeros(self._blocks * self._long_words, xp.int64)
        self._short = xp.zeros(self._blocks * self._words, xp.uint32)
        self._next = xp.zeros(1, xp.uint32)

    def add(self, first: int, last: int) -> None:
        """Add what is found around the vertices first to last - 1."""
        device, graph = self._device, self._graph
        self._next.fill(0)
        arrays = (graph.indptr, graph.indices, graph.triangles, graph.twins)
        sizes = (graph.num_vertices, graph.max_degree, graph.max_out_degree, graph.most_triangles)
        work = (self._long, self._long_words, self._short, self._words, self._next)
        device.launch(
            "local_counts/orbits.cu",
            "add_orbit_homomorphisms",
            (*arrays, *sizes, first, last, *work, device.stop_flag, self._prime, self._counts),
            blocks=self._blocks,
            threads=_THREADS,
            shared=_SHARED,
            generated=orbit_header(residues=bool(self._prime)),
        )
        device.synchronize()

    def counts(self) -> NDArray[np.int64]:
        """Homomorphisms by row and vertex so far, modulo 2**64 or the prime."""
        host: NDArray[np.int64] = self._counts.get()
        return host
