"""Counts of arcs for which the device has no room: they wait on the host, and come for as long as they change."""

from bisect import bisect_right
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

from longwall.kernels.cuda.device import Device
from longwall.kernels.cuda.runtime.pinned_buffers import locked_column

Array = Any  # a CuPy array

PLACES = 3  # one comes, one is counted in, and one goes back
_WORD_BYTES = 8  # of page-locked memory
_LAST = 2 * PLACES  # copies to the host that may not have ended when others come


class CountTurns:
    """Copies counts of ranges of arcs to the host, and back, beside kernels.

    Parameters
    ----------
    device
        The device.
    memory : uint16 or uint32[PLACES * most arcs that are copied at once]
        Memory of the device; each place has room for an even number of arcs.
    """

    def __init__(self, device: Device, memory: Array):
        self._device, self._dtype, capacity = device, memory.dtype, memory.size // PLACES
        self._bytes = int(memory.dtype.itemsize)
        self._places = [memory[place * capacity : (place + 1) * capacity] for place in range(PLACES)]
        self._free: list[Any] = [None] * PLACES  # events: what read or wrote a place last
        self._at = 0
        self._here, self._back = (device.xp.cuda.Stream(non_blocking=True) for _ in range(2))
        self._begins: list[int] = []  # of the ranges that the host has memory for
        self._homes: list[Future[NDArray[Any]] | None] = []
        self._maker = ThreadPoolExecutor(1)
        self._gone: deque[tuple[int, int, Any]] = deque(maxlen=_LAST)  # ranges, and events after their copies
        self._brought, self._arrived = (0, 0), None

    def make_room(self, begin: int, end: int) -> None:
        """Begin to make room on the host for the counts of a range of arcs; ranges follow one another."""
        self._begins.append(begin)
        self._homes.append(self._maker.submit(self._locked, end - begin))

    def bring(self, begin: int, end: int) -> Array:
        """Copy counts of a range of arcs to the device, before kernels that are launched from now on.

        Returns
        -------
        uint16 or uint32[end - begin]
            Of the device; in use until `send_back` or `leave` is called.
        """
        self._at = (self._at + 1) % PLACES
        there = self._places[self._at][: end - begin]
        if self._free[self._at] is not None:
            self._here.wait_event(self._free[self._at])
        for first, last, event in self._gone:
            if first < end and begin < last:
                self._here.wait_event(event)
        self._copy(there.data.ptr, self._home(begin), end - begin, self._here)
        self._arrived = self._after(self._here)
        self._device.xp.cuda.get_current_stream().wait_event(self._arrived)
        self._brought = begin, end
        return there

    def send_back(self) -> None:
        """Copy the counts that were brought last to the host, once kernels have ended that were launched so far."""
        begin, end = self._brought
        self._free[self._at] = self.send(self._places[self._at][: end - begin], begin)

    def leave(self) -> None:
        """Forget the counts that were brought last, once these kernels have ended.

        No counts before them may be brought again: the host's memory of ranges before theirs is given back.
        """
        self._free[self._at] = self._after(self._device.xp.cuda.get_current_stream())
        place = self._place(self._brought[0])
        if gone := [home for home in self._homes[:place] if home is not None]:
            self._homes[:place] = [None] * place
            self._maker.submit(self._unlock, gone, self._arrived)

    def send(self, counts: Array, begin: int) -> Any:
        """Copy counts of arcs from `begin` on to the host, once these kernels have ended; return an event after it."""
        self._back.wait_event(self._after(self._device.xp.cuda.get_current_stream()))
        self._copy(self._home(begin), counts.data.ptr, counts.size, self._back)
        event = self._after(self._back)
        self._gone.append((begin, begin + counts.size, event))
        return event

    def close(self) -> None:
        """Wait for all copies, and give the host's memory back."""
        try:
            self._here.synchronize()  # what the thread gives back may be copied until then
            self._back.synchronize()
        finally:
            self._maker.shutdown(cancel_futures=True)
            self._homes.clear()

    def _home(self, begin: int) -> int:
        """Return the address on the host of the counts from an arc on."""
        place = self._place(begin)
        home = self._homes[place]
        assert home is not None
        return int(home.result().ctypes.data) + self._bytes * (begin - self._begins[place])

    def _place(self, begin: int) -> int:
        """Return which range that the host has memory for has an arc."""
        return bisect_right(self._begins, begin) - 1

    def _locked(self, arcs: int) -> NDArray[Any]:
        with self._device.xp.cuda.Device(self._device.number):
            words = -(-arcs * self._bytes // _WORD_BYTES)
            return locked_column(self._device.xp, words).view(self._dtype)

    def _unlock(self, homes: list[Future[NDArray[Any]]], arrived: Any) -> None:
        """Give the host's memory back once its counts are on the device: beside kernels, since that takes a while."""
        with self._device.xp.cuda.Device(self._device.number):
            arrived.synchronize()
            homes.clear()

    def _copy(self, there: int, here: int, arcs: int, stream: Any) -> None:
        runtime = self._device.xp.cuda.runtime
        runtime.memcpyAsync(there, here, self._bytes * arcs, runtime.memcpyDefault, stream.ptr)

    def _after(self, stream: Any) -> Any:
        event = self._device.xp.cuda.Event(disable_timing=True)
        event.record(stream)
        return event
