"""Balance the load of a search as DuMato does, to compare with the ring of tasks: the host redistributes the work.

The kernel is the product's search with another hand-over (``host_list.cuh``). Warps take tasks off a list and end when
there are none. The host looks on; once so many warps have ended it asks the others to give away whatever they can,
waits until all have ended, sorts what was given away, the largest tasks first, and launches the kernel again.
"""

import re
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from longwall.kernels.cuda.device import WARP, Device, exact
from longwall.kernels.cuda.runtime.compile import OPTIONS
from longwall.kernels.cuda.runtime.constants import constants_header
from longwall.kernels.cuda.search.block_pool import BLOCKS_PER_MULTIPROCESSOR, WARPS_PER_BLOCK
from longwall.kernels.cuda.search.search import PATIENCE
from longwall.kernels.cuda.search.search_header import Variant, program_header, stored_sets
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import SearchProgram, to_count

IDLE_SHARE = 0.3
"""Of the warps, from which on the host redistributes: DuMato's best threshold."""
ROWS_AT_ONCE = 8  # as the most of a search
LIST_SLOTS = 1 << 20  # kListSlots
_EVERY = 0x7FFFFFFF  # kEveryCandidate
_TASK_WORDS, _CONTROL_WORDS = 6, 6
_NEXT, _WAITING, _IDLE, _TAIL = 0, 2, 3, 5  # words of the control
_INCLUDE = re.compile(r'^#include "([\w/]+\.cuh)"\n', re.MULTILINE)


def kernel_text(generated: str) -> str:
    """Return the source of the kernel, with every header in its place."""
    here, product, seen = Path(__file__).parent, files("longwall.kernels.cuda"), set()
    written = {"constants.cuh": constants_header(), "generated.cuh": generated}

    def read(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        own = {"host_balance.cu": "host_balance.cu", "search/task_ring.cuh": "host_list.cuh"}.get(name)
        file = here / own if own else product / ("" if "/" in name else "include") / name
        text = written[name] if name in written else file.read_text()
        return _INCLUDE.sub(lambda match: read(match[1]), text.replace("#pragma once\n", ""))

    return read("host_balance.cu")


@dataclass(frozen=True)
class Balanced:
    """What a count took.

    Attributes
    ----------
    count
        Matches.
    launches
        Of the kernel.
    moved
        Tasks that the host dealt out anew.
    seconds
        Of all launches and what the host did between them.
    """

    count: int
    launches: int
    moved: int
    seconds: float


class HostBalanced:
    """A search whose work the host redistributes.

    Parameters
    ----------
    device, graph, program
        As for the product's searcher; the graph is resident.
    idle_share
        Part of the warps that must have ended before the host redistributes; 0 redistributes without end, for tests.
    patience
        Clock cycles after which a warp looks whether the host asks for work.
    """

    def __init__(
        self,
        device: Device,
        graph: GraphArrays,
        program: SearchProgram,
        idle_share: float = IDLE_SHARE,
        patience: int = PATIENCE,
    ):
        self._device, self._graph, self._idle_share = device, graph, idle_share
        xp = device.xp
        plain, oriented = stored_sets(program)
        words = plain * graph.max_degree + oriented * graph.max_out_degree
        self._blocks = device.multiprocessors * BLOCKS_PER_MULTIPROCESSOR
        self._warps = self._blocks * WARPS_PER_BLOCK
        self._store = xp.empty(max(self._warps * words, 1), xp.uint32)
        self._list = xp.zeros((LIST_SLOTS, _TASK_WORDS), xp.int32)
        self._control = xp.zeros(_CONTROL_WORDS, xp.uint32)
        text = kernel_text(program_header(to_count(program, 2), 2, Variant(patience=patience)))
        self._kernel = xp.RawModule(code=text, options=OPTIONS, backend="nvrtc").get_function("count_tasks")
        # The host looks and asks while the kernel runs: on a stream of its own, from page-locked memory.
        self._stream = xp.cuda.Stream(non_blocking=True)
        self._page = xp.cuda.alloc_pinned_memory(4 * (_CONTROL_WORDS + 1))
        self._seen = np.frombuffer(self._page, np.uint32, _CONTROL_WORDS + 1)
        self._seen[_CONTROL_WORDS] = 1 << 31

    def count(self, rows: Any) -> Balanced:
        """Count the embeddings below rows (uint32[2, n] on the device)."""
        xp, began = self._device.xp, time.perf_counter()
        rows, result = xp.ascontiguousarray(rows), self._device.result()
        tasks = xp.asarray(_cut(rows.shape[1]))
        launches = moved = 0
        while len(tasks):
            launches += 1
            given = self._launch(rows, tasks, result)
            moved += len(given)
            tasks = xp.asarray(_largest_first(given))
        return Balanced(exact(result), launches, moved, time.perf_counter() - began)

    def _launch(self, rows: Any, tasks: Any, result: Any) -> Any:
        """Run the kernel once. Return what was given away, on the host."""
        graph, device = self._graph, self._device
        self._control.fill(0)
        if not self._idle_share:
            self._control[_WAITING] = 1 << 31
        device.synchronize()
        places = (graph.indptr, graph.indices, graph.split, graph.labels, rows, rows.shape[1], tasks, len(tasks))
        rooms = (self._store, graph.max_degree, graph.max_out_degree, self._list, self._control)
        arguments = (*places, *rooms, device.stop_flag, result)
        self._kernel((self._blocks,), (WARPS_PER_BLOCK * WARP,), arguments)
        self._look_on()
        device.synchronize()
        return self._list[: int(self._control.get()[_TAIL])].get()

    def _look_on(self) -> None:
        """Wait until all warps have ended; ask for work once too many of them have."""
        runtime, asked = self._device.xp.cuda.runtime, not self._idle_share
        control, size = self._control.data.ptr, 4 * _CONTROL_WORDS
        while True:
            runtime.memcpyAsync(self._page.ptr, control, size, runtime.memcpyDeviceToHost, self._stream.ptr)
            self._stream.synchronize()
            ended = int(self._seen[_IDLE])
            if ended >= self._warps:
                return
            if not asked and ended > self._idle_share * self._warps:
                asked = True
                one = self._page.ptr + size
                runtime.memcpyAsync(control + 4 * _WAITING, one, 4, runtime.memcpyHostToDevice, self._stream.ptr)


def _cut(rows: int) -> Any:
    """Cut rows into tasks of a few each (int32[n, 6]): row, end, and all candidates of two levels."""
    tasks = np.zeros((-(-rows // ROWS_AT_ONCE), _TASK_WORDS), np.int32)
    tasks[:, 0] = np.arange(len(tasks)) * ROWS_AT_ONCE
    tasks[:, 1] = np.minimum(tasks[:, 0] + ROWS_AT_ONCE, rows)
    tasks[:, 4:] = _EVERY
    return tasks


def _largest_first(tasks: Any) -> Any:
    """Sort tasks by what they may hold: rows, then candidates of the first level, then of the second."""
    ranges = [tasks[:, last].astype(np.int64) - tasks[:, first] for first, last in ((3, 5), (2, 4), (0, 1))]
    return np.ascontiguousarray(tasks[np.lexsort(ranges)[::-1]])
