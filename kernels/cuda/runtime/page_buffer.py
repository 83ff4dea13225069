"""Copies of an adjacency's pages on the device; see ``page_buffer.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import Device
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array
Int64s = NDArray[np.int64]

_THREADS = 128  # as in the kernel's launch bounds


class CudaPageFrames:
    """Places for pages in memory of the device; see :class:`longwall.kernels.interface.pages.PageFrames`.

    The memory is the driver's, not the engine's pool's, which has its limit beside it. A kernel fills the places, at
    twice the rate of moving pages of the adjacency itself (on one H200 50 GB/s and 18 to 25), and nothing goes back
    when they are filled again.

    Parameters
    ----------
    device, graph
        The adjacency is in memory that kernels can read.
    number
        Of places.
    page_arcs
        Arcs of a page.
    """

    def __init__(self, device: Device, graph: GraphArrays, number: int, page_arcs: int):
        xp = device.xp
        self._device, self._graph, self._page_arcs = device, graph, page_arcs
        pointer = device.memory.allocate_apart(4 * number * page_arcs)
        self._arcs = xp.ndarray(number * page_arcs, np.uint32, pointer)
        self.origin = (int(pointer.ptr) - int(graph.indices.data.ptr)) // 4
        self._stream = xp.cuda.Stream(non_blocking=True)
        self._filled: Any = None  # an event

    def mark(self) -> Any:
        """Return the kernels that were launched so far, for `fill`."""
        return self._record(self._device.xp.cuda.get_current_stream())

    def fill(self, moves: tuple[Int64s, Int64s], table: Array, values: Int64s, behind: Any = None) -> None:
        """Begin to copy pages to places; see :class:`longwall.kernels.interface.pages.PageFrames`."""
        indices, (pages, places), size = self._graph.indices, moves, values.size
        first, what = 0, np.concatenate([values, pages, places])
        self.settle()
        if behind is None:  # kernels may look the pages up that are being copied
            table[:size].set(values)
            first, behind = size, self.mark()
        self._stream.wait_event(behind)
        with self._stream:  # also what is copied from the host: on another stream it would wait for its kernels
            try:
                table[first : what.size].set(what[first:])
                self._device.launch(
                    "runtime/page_buffer.cu",
                    "copy_pages",
                    (indices, indices.size, table[size:], pages.size, self._page_arcs.bit_length() - 1, self._arcs),
                    blocks=self._device.multiprocessors,
                    threads=_THREADS,
                )
            finally:
                self._filled = self._record(self._stream)

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""
        if self._filled is not None:
            self._device.xp.cuda.get_current_stream().wait_event(self._filled)
            self._filled = None

    def _record(self, stream: Any) -> Any:
        event = self._device.xp.cuda.Event(disable_timing=True)
        event.record(stream)
        return event

    def close(self) -> None:
        """Wait for the copies that were begun; the buffer is of no further use."""
        self._stream.synchronize()


def places_of(graph: GraphArrays) -> Any:
    """Return the kernels' argument for copies of pages, after those that were begun. A null pointer: there are none."""
    if graph.pages is None or graph.pages.places is None:
        return np.uintp(0)
    graph.pages.settle()
    return graph.pages.places
