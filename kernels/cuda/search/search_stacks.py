"""What the warps of a counting search work with: stacks for sets, as many bytes as there are, and tasks.

See ``stack_pool.cuh`` and ``task_ring.cuh``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import WARP, Device, fetch
from longwall.kernels.cuda.runtime.constants import RING_SLOT_WORDS, RING_SLOTS, TASK_CONTROL_WORDS
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import Level

Array = Any  # a CuPy array

RING_BYTES = 4 * RING_SLOTS * RING_SLOT_WORDS
_NUM_ROWS, _RESULT = 3, 2  # the place of TaskControl.num_rows; words of a result

_LEAST_OWN = 4 * WARP  # elements of a warp's own stack beside long ones


@dataclass(frozen=True)
class SearchStacks:
    """What stacks the warps of a search have.

    Attributes
    ----------
    warps
        Number of warps.
    own
        Elements of every warp's own stack.
    longs
        Number of long stacks, with room for the longest sets, that warps borrow; 0: every warp's own one is long.
    long
        Elements of a long stack.
    """

    warps: int
    own: int
    longs: int
    long: int

    @property
    def elements(self) -> int:
        """Of all stacks."""
        return self.warps * self.own + self.longs * self.long

    @classmethod
    def within(cls, wanted: int, long: int, memory: int) -> "SearchStacks":
        """Share out a number of bytes among at most `wanted` warps.

        Where not all of them can have a long stack, half of the memory is for long ones, which warps borrow for as long
        as the sets of a row outgrow their own: most sets are far shorter than the longest ones could be.

        Parameters
        ----------
        wanted
            Number of warps that fill the device.
        long
            Elements of a long stack; there is memory for one of them.
        memory
            Bytes.
        """
        words = memory // 4
        if words >= wanted * long:
            return cls(wanted, long, 0, long)
        longs = max(words // 2 // long, 1)
        own = (words - longs * long) // wanted
        if own >= _LEAST_OWN:
            return cls(wanted, own, longs, long)
        return cls(words // long, long, 0, long)


class SearchTasks:
    """The ring of tasks, the counters and the result; each count has new counters and a new result.

    Parameters
    ----------
    device
        The device.
    longs
        Number of long stacks that warps borrow.

    Attributes
    ----------
    ring, control, lent, result
        As ``count_rows.cu`` takes them.
    """

    def __init__(self, device: Device, longs: int):
        xp = device.xp
        self._device, self._longs = device, longs
        self.ring = xp.empty(RING_BYTES, np.uint8)
        self.lent = xp.empty(max(longs, 1), np.uint32)

    def _new(self) -> tuple[Any, ...]:
        """Take counters and a result, which are 0; return the arguments by which a kernel begins the tasks."""
        self._words = self._device.result(TASK_CONTROL_WORDS + _RESULT)
        self.control, self.result = self._words.data, self._words.data + 8 * TASK_CONTROL_WORDS
        return self.ring, self.lent, self._longs, self.control

    def begin(self, rows: int) -> None:
        """Begin a count below a number of rows."""
        self._device.launch_over("search/search_start.cu", "begin_search", RING_SLOTS, (*self._new(), rows))

    def choose(self, graph: GraphArrays, levels: tuple[Level, Level], first: int, last: int) -> Array:
        """Begin a count below the edges of a range of arcs; make their rows, see `longwall.stages.source.EdgeSource`.

        Return uint32[2, arcs], of which as many rows are there as the counters say on the device.
        """
        low, high = levels
        rows = self._device.xp.empty((2, last - first), np.uint32)
        wanted = low.degree, low.label, high.degree, high.label, int(bool(high.below)), int(bool(high.above))
        arcs = graph.indptr, graph.indices, graph.labels, graph.num_vertices, first, last
        given = *self._new(), *arcs, *wanted, rows, last - first
        self._device.launch_over("search/search_start.cu", "choose_edges", -(-(last - first) // 8), given)
        return rows

    def fetched(self) -> tuple[NDArray[np.uint64], int]:
        """Wait for the kernels; return the result, which `device.checked` checks, and the number of rows."""
        found = fetch(self._words)
        return found[TASK_CONTROL_WORDS:], int(found.view(np.uint32)[_NUM_ROWS])
