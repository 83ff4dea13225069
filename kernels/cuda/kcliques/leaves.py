"""Cliques by the leaves of pivot trees on the device: tables and levels, and launches of ``leaves.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import WARP, Device, fetch, units_that_fit
from longwall.kernels.cuda.kcliques.heavy_tasks import LIGHT, SMALL_PARTS, WARPS, heavy_tasks
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.constants import (
    EACH_LEVELS,
    LEVEL_NUMBERS,
    PIVOT_LEVELS,
    SHARED_HELD,
    SHARED_PIVOTS,
    TABLE_QUEUE,
)
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.cuda.runtime.sources import Source, compiles
from longwall.kernels.exact_numbers import two_words
from longwall.kernels.interface.engine import EngineLost, ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import leaf_shape, leaf_weights, weight_bytes
from longwall.kernels.interface.workspaces import NARROW

Array = Any  # a CuPy array

_STATE_BYTES = 8 * NARROW + 28 * PIVOT_LEVELS + 4 * NARROW + 4 * TABLE_QUEUE  # of NarrowState
_SHARED_LEAVES = SHARED_HELD * SHARED_PIVOTS
_THREADS, _BLOCKS = 512, 2  # of a block, and blocks per multiprocessor
_PARTS = SMALL_PARTS._replace(least=_THREADS // WARP)  # each warp searches rows of its own
_SINGLES = 2  # words of the sum of leaves that are counted one by one
_LARGEST_SIGNED = (1 << 63) - 1


def leaf_header(limbs: int) -> str:
    """Write the ``generated.cuh`` that ``leaves.cu`` includes."""
    return constants({"kLimbs": limbs, "kLight": LIGHT, "kStateBytes": _STATE_BYTES} | _PARTS.constants())


def _sources(limbs: int) -> list[Source]:
    return [("kcliques/leaves.cu", leaf_header(limbs)), ("kcliques/heavy_tasks.cu", "")]


class _Search:
    """Tables and levels, and launches of the kernels."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, k: int, limbs: int, memory: int):
        xp, most = device.xp, graph.max_out_degree
        self._device, self._graph, self._k = device, graph, k
        self._generated = leaf_header(limbs)
        self._heavy_from = max(LIGHT, k - 2)
        self._width = (most + 31) // 32
        self._levels = max(most - NARROW, 0) // 2 + 2 + EACH_LEVELS
        self._own_words = (2 * self._levels * self._width + 32 * self._width + self._levels * LEVEL_NUMBERS) + (
            2 * (32 * self._width + 2) if limbs else 0
        )
        warps = _THREADS // WARP
        group, rest = divmod(most, 32)
        table = (16 * group + rest) * (group + 1)
        fixed = 16 + (0 if limbs else 8 * _SHARED_LEAVES) + warps * _STATE_BYTES
        self._table_words = min(table, max((device.shared_memory // _BLOCKS - 2048 - fixed) // 4, 0))
        self._heavy_shared = fixed + 4 * self._table_words
        light_words = (LIGHT + 31) // 32
        light_table = 16 * light_words * (light_words + 1) + 2 * (LIGHT + 2)
        self._light_shared = (0 if limbs else 8 * _SHARED_LEAVES) + WARPS * (_STATE_BYTES + 4 * light_table)
        self._store_words = warps * self._own_words + (table if table > self._table_words else 0)
        shape = (1, 1) if limbs else leaf_shape(k, most)
        self._shape = shape
        results = 8 * shape[0] * shape[1] + 8 * limbs * graph.num_vertices
        results += weight_bytes(k, most, limbs) if limbs else 0
        if results >= memory:
            raise WorkspaceTooLarge(results + 4 * self._store_words)
        wanted = device.multiprocessors * _BLOCKS
        self._blocks = units_that_fit(wanted, self._store_words * 4, memory - results)
        self._store = xp.empty(self._blocks * self._store_words, xp.uint32)
        self._sums = device.result(_SINGLES + shape[0] * shape[1])  # single leaves, then those of each shape
        self._counts: Any = xp.zeros((limbs, graph.num_vertices), np.int64) if limbs else None
        self._weights = xp.asarray(leaf_weights(k, most, limbs)) if limbs else None

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the arcs `first` to `last` - 1."""
        work = self._work(first, last)  # all that is allocated: what fails before anything is added is tried again
        try:
            with self._device.faults():
                self._start(first, last, work)
                self._device.synchronize()
        except ShortOfMemory as error:
            raise EngineLost(f"cliques of a range were added in part: {error}") from error

    def start(self, first: int, last: int) -> None:
        """Launch the kernels, and do not wait for them."""
        self._start(first, last, self._work(first, last))

    def _work(self, first: int, last: int) -> tuple[Array, tuple[Any, Any, Any]]:
        device = self._device
        num_tasks = device.counters(3)
        counters = num_tasks, num_tasks + 8, num_tasks + 16
        return heavy_tasks(device, self._graph, (first, last), self._heavy_from, _PARTS, num_tasks), counters

    def _start(self, first: int, last: int, work: tuple[Array, tuple[Any, Any, Any]]) -> None:
        device, graph = self._device, self._graph
        tasks, (num_tasks, heavy_task, light_root) = work
        arrays = (*graph.rows, places_of(graph), graph.num_vertices)
        out = (self._sums.data + 8 * _SINGLES, self._shape[1], self._counts, self._weights)
        stores = (self._table_words, self._store, self._store_words, self._own_words, self._width, self._levels)
        device.launch(
            "kcliques/leaves.cu",
            "count_light",
            (*arrays, first, last, self._k, *out, light_root, device.stop_flag, self._sums),
            blocks=device.multiprocessors * 3,
            threads=WARPS * WARP,
            shared=self._light_shared,
            generated=self._generated,
        )
        device.launch(
            "kcliques/leaves.cu",
            "count_heavy",
            (
                *arrays,
                tasks,
                num_tasks,
                first,
                last,
                self._k,
                *stores,
                *out,
                heavy_task,
                device.stop_flag,
                self._sums,
            ),
            blocks=min(self._blocks, len(tasks)),
            threads=_THREADS,
            shared=self._heavy_shared,
            generated=self._generated,
        )


@compiles(lambda: _sources(0))
class CudaCliqueLeaves(_Search):
    """Counts leaves by held vertices and pivots."""

    def __init__(self, device: Device, graph: GraphArrays, k: int, memory: int):
        super().__init__(device, graph, k, 0, memory)
        self.workspace_bytes = self._sums.nbytes

    def take(self) -> NDArray[np.int64]:
        """Leaves since the last call."""
        host = fetch(self._sums)
        self._sums.data.memset_async(0, self._sums.nbytes)
        singles = two_words(*host[:_SINGLES].tolist())
        leaves: NDArray[np.int64] = host[_SINGLES:].view(np.int64).reshape(self._shape)
        if singles > _LARGEST_SIGNED - int(leaves[-1, 0]):
            leaves = leaves.astype(object)
        leaves[self._k, 0] += singles
        return leaves


@compiles(_sources)
class CudaCliquesOfVertices(_Search):
    """Counts the k-cliques of every vertex."""

    def counts(self) -> NDArray[np.int64]:
        """Cliques of every vertex so far."""
        host: NDArray[np.int64] = self._counts.get()
        return host
