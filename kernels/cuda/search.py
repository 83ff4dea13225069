"""Search programs on the device: scratch and launches around ``count_rows.cu`` and ``extend_rows.cu``."""

from typing import Any

import numpy as np

from longwall.kernels.cuda.launch import WARP, Device, exact, units_that_fit
from longwall.kernels.cuda.program_header import program_header, stored_sets
from longwall.kernels.engine import Extension, GraphArrays
from longwall.kernels.program import SearchProgram

Array = Any  # a CuPy array

WARPS_PER_BLOCK = 8
BLOCKS_PER_MULTIPROCESSOR = 4  # as in the kernels' launch bounds
RING_SLOTS = 4096  # kRingSlots
RING_SLOT_WORDS = 8
PATIENCE = 1 << 18  # cycles: about 0.15 ms, long enough to hide the look at who is idle
_FIRST_WINDOW = 1 << 12


class CudaSearcher:
    """Scratch for one search program."""

    host_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, program: SearchProgram, memory: int):
        self._device, self._graph, self._program = device, graph, program
        self._room, self._oriented_room = graph.max_degree, graph.max_out_degree
        plain, oriented = stored_sets(program)
        words = plain * self._room + oriented * self._oriented_room
        wanted = device.multiprocessors * BLOCKS_PER_MULTIPROCESSOR * WARPS_PER_BLOCK
        warps = units_that_fit(wanted, words * 4, memory)
        self._warps_per_block = min(warps, WARPS_PER_BLOCK)
        self._blocks = warps // self._warps_per_block
        xp = device.xp
        self._store = xp.empty(max(self._blocks * self._warps_per_block * words, 1), xp.uint32)
        self._ring = xp.zeros((RING_SLOTS, RING_SLOT_WORDS), xp.uint32)
        self._ring[:, 0] = xp.arange(RING_SLOTS, dtype=xp.uint32)
        self._control = xp.zeros(6, xp.uint32)
        self._window = _FIRST_WINDOW

    def count_rows(self, rows: Array) -> int:
        """Count the embeddings below `rows` (uint32[columns, n])."""
        return exact(self.start(rows)) if rows.shape[1] else 0

    def start(self, rows: Array) -> Array:
        """Launch the count of `rows`, of which there are some; gives what ``launch.exact`` fetches."""
        columns, n = rows.shape
        rows = self._device.xp.ascontiguousarray(rows)
        result = self._device.result()
        self._control[0] = 0
        self._launch(
            "count_rows",
            columns,
            rows,
            (n,),
            (self._ring, self._control, self._device.stop_flag, result),
        )
        return result

    def extend_rows(self, rows: Array, capacity: int) -> Extension:
        """Extend `rows` (uint32[columns, n]) by one level, writing at most `capacity` new vertices."""
        xp = self._device.xp
        n = rows.shape[1]
        rows = xp.ascontiguousarray(rows)
        counts, total, done = xp.zeros(n, xp.int64), 0, 0
        # Rows are counted in windows, so that few are counted in vain where the capacity ends early.
        while done < n:
            width = min(self._window, n - done)
            window = counts[done : done + width]
            self._extend(rows, done, width, window, None, None)
            self._device.synchronize()  # as in launch.exact
            ends = xp.cumsum(window)
            fitting = int(xp.count_nonzero(ends <= capacity - total))
            if fitting:
                total += int(ends[fitting - 1])
            done += fitting
            if fitting < width:
                self._window = max(done, _FIRST_WINDOW)
                break
            self._window = width * 2 if width == self._window else self._window
        counts = counts[:done]
        values = xp.empty(total, xp.uint32)
        if total:
            self._extend(rows, 0, done, counts, xp.cumsum(counts), values)
            self._device.synchronize()
        return Extension(done, values, counts)

    def _extend(
        self, rows: Array, begin: int, width: int, counts: Array, ends: Array | None, out: Array | None
    ) -> None:
        columns, n = rows.shape
        # Neighbouring rows share a prefix, whose sets a warp computes once; but every warp should have rows.
        at_once = min(max(width // (self._blocks * self._warps_per_block * 4), 1), 32)
        null = np.uintp(0)
        self._launch(
            "extend_rows",
            columns,
            rows.reshape(-1)[begin:],
            (n, width),
            (
                at_once,
                self._device.xp.zeros(1, np.uint32),
                self._device.stop_flag,
                counts,
                null if ends is None else ends,
                null if out is None else out,
            ),
        )

    def _launch(self, function: str, columns: int, rows: Array, sizes: tuple[int, ...], rest: tuple[Any, ...]) -> None:
        graph = self._graph
        self._device.launch(
            f"{function}.cu",
            function,
            (
                graph.indptr,
                graph.indices,
                graph.split,
                graph.labels,
                rows,
                *sizes,
                self._store,
                self._room,
                self._oriented_room,
                *rest,
            ),
            blocks=self._blocks,
            threads=self._warps_per_block * WARP,
            generated=program_header(self._program, columns, PATIENCE),
        )
