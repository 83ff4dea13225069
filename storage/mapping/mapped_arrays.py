"""Arrays in files of the spill folder, mapped: the operating system brings their pages, and takes them back."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.storage.errors import RunError
from longwall.storage.mapping.unmapping import Unmapper
from longwall.storage.memory.resources import Resources

WHAT = "a file with the graph"


class Place(NamedTuple):
    """Where an array is, for another process of this machine and this user."""

    path: str
    offset: int
    nbytes: int


class MappedArrays:
    """Makes arrays in files without names; each file gets its disk space before it is mapped.

    A file without a name is gone when the last process that has it open ends, however it ends. What is mapped of the
    files is kept within what the host's budget has free, see `Unmapper`.

    Parameters
    ----------
    resources
        The disk's budget pays for the files, which lie in the spill folder.

    Attributes
    ----------
    files
        The files, each with one array.
    """

    def __init__(self, resources: Resources) -> None:
        self._disk, self._spill = resources.disk, resources.spill
        self.files: list[MappedFile] = []
        self._reserved = 0
        self._unmapper = Unmapper(lambda: resources.host.free)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(file.nbytes for file in self.files)

    def require(self, nbytes: int) -> None:
        """Refuse arrays of a given number of bytes in all, before the first of them is made, where they have no room.

        Raises
        ------
        BudgetExceeded
            If the disk's budget has none.
        """
        self._disk.reserve(nbytes, WHAT).release()

    def array(self, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Make an array of zeros; see :data:`longwall.storage.graph.graph.NewArray`.

        Raises
        ------
        BudgetExceeded
            If the disk's budget has no room for it.
        RunError
            If the disk has none, or takes no file.
        """
        nbytes = length * dtype.itemsize
        if nbytes == 0:
            return np.empty(length, dtype)
        self._disk.charge(nbytes, WHAT)
        try:
            file = MappedFile(_nameless(os.fspath(self._spill.path)), nbytes, _allocate)
        except OSError as error:
            self._disk.charge(-nbytes, "")
            reason = error.strerror or str(error)
            raise RunError(
                f"{self._spill.path.parent}: {WHAT} cannot be made ({reason}): free space there, {self._spill.advice}"
            ) from error
        self.files.append(file)
        self._reserved += nbytes
        self._unmapper.watch(file.unmap)
        return np.asarray(file).view(dtype)

    def close(self) -> None:
        """Return the bytes to the disk's budget; a file goes with the last array that is in it."""
        self._disk.charge(-self._reserved, "")
        self.files, self._reserved = [], 0
        self._unmapper.close()


class MappedFile:
    """A mapped file without a name; the file stays open as long as an array over it exists.

    Parameters
    ----------
    descriptor
        The file, which is empty; the object closes it in the end.
    nbytes
        Its size.
    make_room
        Called with descriptor and size; lets the file grow to that size.
    """

    def __init__(self, descriptor: int, nbytes: int, make_room: Callable[[int, int], object]) -> None:
        self.descriptor, self.nbytes = descriptor, nbytes
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        make_room(descriptor, max(nbytes, 1))
        self.map = mmap.mmap(descriptor, max(nbytes, 1))
        self.address = np.frombuffer(self.map, np.uint8).ctypes.data
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }

    @property
    def unmap(self) -> Callable[[], None]:
        """Takes the pages out of the process's memory; the next access brings them back from the file."""
        pages = self.map
        return lambda: pages.madvise(mmap.MADV_DONTNEED)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self.descriptor)


def place_in(files: Iterable[MappedFile], array: NDArray[Any]) -> Place | None:
    """Return where an array, or a part of one, lies; None if none of the files has it."""
    for file in files:
        offset = array.ctypes.data - file.address
        if array.nbytes and 0 <= offset <= file.nbytes - array.nbytes:
            return Place(file.path, offset, array.nbytes)
    return None


def _allocate(descriptor: int, nbytes: int) -> None:
    """Give a file its disk space: if a disk is full, access to a mapped file ends the process."""
    os.posix_fallocate(descriptor, 0, nbytes)


def _nameless(folder: str) -> int:
    """Open a new file without a name."""
    with suppress(OSError):  # not every file system can
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    file, path = tempfile.mkstemp(dir=folder)
    Path(path).unlink()
    return file
