"""Page-locked memory of the host: of keys, while kernels run, and of what is on its way to the device."""

import mmap
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from os import sched_getaffinity
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import COPY_BUFFER, Put
from longwall.kernels.interface.sorting import Column

if TYPE_CHECKING:
    from longwall.kernels.cuda.device import Device

Array = Any  # a CuPy array

_PORTABLE = 1  # cudaHostRegisterPortable
_TOUCHED, _PAGE = 32 << 20, 4 << 10  # bytes that one thread touches at a time; of a page
_MOST_THREADS = 16


class _Locked:
    """Pages of their own, locked for as long as an array is over them.

    Attributes
    ----------
    locked
        Whether they are: the system may refuse.
    """

    locked = False

    def __init__(self, xp: Any, nbytes: int):
        self._runtime = xp.cuda.runtime
        self._memory = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(AttributeError, OSError):  # not every system has huge pages
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(self._memory, np.uint8)
        _touch(pages)
        self.address = pages.ctypes.data
        self.__array_interface__ = {
            "shape": (nbytes // 8,),
            "typestr": "<u8",
            "data": (self.address, False),
            "version": 3,
        }
        try:
            # Locking touched memory takes a sixteenth of the time of allocating locked memory.
            self._runtime.hostRegister(self.address, len(pages), _PORTABLE)
        except self._runtime.CUDARuntimeError:
            return  # copies go through the driver's own memory: slower, but right
        self.locked = True

    def __del__(self) -> None:
        if self.locked and not sys.is_finalizing():
            with suppress(self._runtime.CUDARuntimeError):  # the device is lost: its next use raises that
                self._runtime.hostUnregister(self.address)


def locked_column(xp: Any, length: int) -> Column:
    """Make an array of garbage in page-locked memory, which it keeps."""
    return np.asarray(_Locked(xp, 8 * length))


def _touch(pages: Any) -> None:
    """Make the operating system map all pages, on all cores."""

    def touch(first: int) -> None:
        pages[first : first + _TOUCHED : _PAGE] = 0

    threads = max(1, min(len(sched_getaffinity(0)), _MOST_THREADS, len(pages) // _TOUCHED))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(touch, range(0, len(pages), _TOUCHED)))


class _Buffer(NamedTuple):
    """Page-locked memory for one piece."""

    content: NDArray[np.uint8]
    address: int
    free: Any
    """The event of the last copy of it."""


_spare: list[NDArray[np.uint8]] = []
"""The memory of the last copies: it is not locked anew for the next ones."""


def _spare_memory(xp: Any, nbytes: int) -> NDArray[np.uint8]:
    """Take the spare memory if it is long enough, else make some."""
    with suppress(IndexError):
        memory = _spare.pop()  # so that no other copies have it at the same time
        if memory.nbytes >= nbytes:
            return memory
    return locked_column(xp, nbytes // 8).view(np.uint8)


class StagedCopies:
    """Copies of host arrays to the device, piece by piece, by way of few page-locked buffers; a context manager.

    What is not page-locked the driver copies at a fifth of the link's rate, through buffers of its own; to lock all of
    an array takes as long as to copy it. As it ends, the context waits for all copies.

    Parameters
    ----------
    device
        Where they go.
    capacity
        Bytes of the host for the buffers, one at least.
    """

    def __init__(self, device: "Device", capacity: int):
        self._device, self._cuda = device, device.xp.cuda
        self._stream = self._cuda.Stream(non_blocking=True)
        # One for each thread, longer ones where there is room: after each a thread waits for a turn to run Python.
        number = self._number = min(max(capacity // COPY_BUFFER, 1), _MOST_THREADS)
        size = self._size = max(capacity // number // COPY_BUFFER, 1) * COPY_BUFFER
        memory = self._memory = _spare_memory(device.xp, number * size)
        self._buffers: SimpleQueue[_Buffer] = SimpleQueue()
        for content in memory[: number * size].reshape(number, size):
            event = self._cuda.Event(block=True, disable_timing=True)
            self._buffers.put(_Buffer(content, content.ctypes.data, event))

    def begin(self, array: NDArray[Any]) -> tuple[Array, Put]:
        """Make room on the device for an array of one dimension, which need not be filled yet.

        Returns
        -------
        cupy.ndarray
            Complete once all pieces were put, and the context has ended.
        put
            Takes the place of a piece and its items, which are copied at once; any thread may call it.
        """
        there = self._device.xp.empty(array.size, array.dtype)
        address, size = there.data.ptr, array.itemsize

        def put(start: int, items: NDArray[Any]) -> None:
            with self._device.faults(), self._cuda.Device(self._device.number):
                self._put(address + start * size, items.view(np.uint8))

        return there, put

    def send(self, array: NDArray[Any]) -> Array:
        """Copy a whole array of one dimension, on several cores."""
        there, put = self.begin(array)
        items = max(self._size // array.itemsize, 1)
        threads = max(1, min(len(sched_getaffinity(0)), _MOST_THREADS, self._number))
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda first: put(first, array[first : first + items]), range(0, array.size, items)))
        return there

    def _put(self, address: int, data: NDArray[np.uint8]) -> None:
        runtime = self._cuda.runtime
        for first in range(0, len(data), self._size):
            piece = data[first : first + self._size]
            buffer = self._buffers.get()
            try:
                if not buffer.free.done:
                    buffer.free.synchronize()
                buffer.content[: len(piece)] = piece
                runtime.memcpyAsync(
                    address + first,
                    buffer.address,
                    len(piece),
                    runtime.memcpyHostToDevice,
                    self._stream.ptr,
                )
                buffer.free.record(self._stream)
            finally:
                self._buffers.put(buffer)

    def __enter__(self) -> "StagedCopies":
        return self

    def wait(self) -> None:
        """Wait for the copies that have begun."""
        with self._device.faults():
            self._stream.synchronize()

    def __exit__(self, *exc: object) -> None:
        with self._device.faults():
            self._stream.synchronize()
            _spare[:] = [self._memory]
