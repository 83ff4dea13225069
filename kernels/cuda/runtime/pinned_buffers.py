"""Page-locked memory of the host that keys are copied to, and from, while kernels run."""

import mmap
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from os import sched_getaffinity
from typing import Any

import numpy as np

from longwall.kernels.interface.sorting import Column

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
        if self.locked:
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
