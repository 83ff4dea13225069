"""Motifs on the device: marks for every block, and launches of ``motifs.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import WARP, Device, exact, units_that_fit
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.constants import MOTIF_CONTROL_WORDS, MOTIF_SLOT_WORDS, NO_ROOT
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

_WARPS = 32  # per multiprocessor
_MOST_WARPS = 8  # per block, as in the kernel's launch bounds
_MARKS = 64 << 20  # bytes of all blocks' marks that the caches can hold more or less
_SHARED_TOTALS = 1024  # counters that a block may have of its own
# Candidates of a job in a chunk: each is a vertex if k is at most 4, a subtree if k is 5. Subtrees of
# larger k are large, so a chunk has one: then more blocks have sets to donate.
_LAST_CHUNK, _CHUNK, _FIRST_CHUNK = 1024, 16, 1
_NO_JOB = np.uint64(NO_ROOT << 32)
_MOST_ARCS = 1 << 32


def motif_header(k: int, classes: int, *, per_vertex: bool) -> str:
    """Write the ``generated.cuh`` that ``motifs.cu`` includes."""
    return constants(
        {
            "kSize": k,
            "kClasses": classes,
            "kPerVertex": int(per_vertex),
            "kChunk": _LAST_CHUNK if k < 5 else _CHUNK if k < 6 else _FIRST_CHUNK,
            "kSharedTotals": int(not per_vertex and classes << (k - 1) <= _SHARED_TOTALS),
        }
    )


class _Enumerator:
    """Blocks with marks, and the counts on the device.

    Parameters
    ----------
    device, graph
        The graph is on the device.
    k
        Vertices of a motif.
    classes
        Classes of k - 1 vertices; 0 where orbits are counted.
    entries : uint32[...]
        What codes mean, on the host.
    results
        Number of counters.
    memory
        The most bytes.
    """

    workspace_bytes = 0

    def __init__(
        self,
        device: Device,
        graph: GraphArrays,
        k: int,
        classes: int,
        entries: NDArray[np.uint32],
        results: int,
        memory: int,
    ):
        if graph.num_arcs >= _MOST_ARCS:
            raise OverflowError(f"motifs on the device are for graphs of fewer than {_MOST_ARCS // 2:,} edges")
        xp, masks = device.xp, 1 << (k - 2)
        self._device, self._graph = device, graph
        self._generated = motif_header(k, max(classes, 1), per_vertex=not classes)
        own = classes << (k - 1)
        self._shared = 8 * (2 * masks + (own if own <= _SHARED_TOTALS else 0) + 1) + 160 + 4 * masks * (masks + 2) + 80
        left = memory - 8 * results - entries.nbytes
        # A block per warp: none waits for others. Fewer and larger blocks where marks take too much, and where their
        # tables do not fit the multiprocessors.
        most = min(left // 2, _MARKS) // max(graph.num_vertices * device.multiprocessors, 1)
        most = min(most, device.shared_memory // self._shared)
        warps = 1
        while warps < _MOST_WARPS and _WARPS // warps > most:
            warps *= 2
        self._threads = warps * WARP
        each = graph.num_vertices + 12 + 4 * MOTIF_SLOT_WORDS
        self._blocks = units_that_fit(device.multiprocessors * _WARPS // warps, each, left)
        self._entries = xp.asarray(entries)
        self._marks = xp.zeros(self._blocks * graph.num_vertices, xp.uint8)
        self._sizes = xp.zeros(self._blocks, xp.uint32)
        self._jobs = xp.zeros(self._blocks, xp.uint64)
        self._slots = xp.zeros(self._blocks * MOTIF_SLOT_WORDS, xp.uint32)
        self._control = xp.zeros(MOTIF_CONTROL_WORDS, xp.uint32)
        self._counts = xp.zeros(results, xp.int64)
        self._result = device.result()

    def add(self, first: int, last: int) -> None:
        """Count the subgraphs of a range of arcs."""
        device, graph = self._device, self._graph
        self._jobs[:] = _NO_JOB
        self._slots.fill(0)
        self._control.fill(0)
        work = (self._marks, self._jobs, self._sizes, self._slots, self._control)
        out = (device.stop_flag, self._counts, self._result)
        device.launch(
            "local_counts/motifs.cu",
            "count_motifs",
            (*graph.rows, graph.num_vertices, self._entries, first, last, *work, *out),
            blocks=self._blocks,
            threads=self._threads,
            shared=self._shared,
            generated=self._generated,
        )
        device.synchronize()

    def _exact(self) -> NDArray[np.int64]:
        """All counters, on the host."""
        exact(self._result)
        host: NDArray[np.int64] = self._counts.get()
        return host


class CudaMotifCounter(_Enumerator):
    """Counts by class and mask."""

    def __init__(
        self, device: Device, graph: GraphArrays, k: int, entries: NDArray[np.uint32], classes: int, memory: int
    ):
        super().__init__(device, graph, k, classes, entries, classes << (k - 1), memory)
        self._shape = classes, 1 << (k - 1)

    def counts(self) -> NDArray[np.int64]:
        """Counts by class and mask so far."""
        return self._exact().reshape(self._shape)


class CudaOrbitCounter(_Enumerator):
    """Counts by orbit and vertex."""

    def __init__(self, device: Device, graph: GraphArrays, k: int, orbits: NDArray[np.int64], memory: int):
        number = int(orbits.max()) + 1
        super().__init__(device, graph, k, 0, orbits.astype(np.uint32).reshape(-1), number * graph.num_vertices, memory)
        self._shape = number, graph.num_vertices

    def counts(self) -> NDArray[np.int64]:
        """Counts by orbit and vertex so far."""
        return self._exact().reshape(self._shape)
