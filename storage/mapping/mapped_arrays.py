"""Arrays in files of the spill folder, mapped: the operating system brings their pages, and takes them back."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.storage.errors import RunError
from longwall.storage.mapping.unmapping import Unmapper
from longwall.storage.memory.resources import Resources

WHAT = "a file with the graph"
_allocate = os.posix_fallocate


class Place(NamedTuple):
    """Where an array is, for another process of this machine and this user."""

    path: str
    offset: int
    nbytes: int


class MappedArrays:
    """Makes arrays in files; each has room on the disk before it is mapped, and no name.

    A file without a name is gone when the last process that has it open ends, however it ends. What is mapped of the
    files is kept within what the host's budget has free, see `Unmapper`.

    Parameters
    ----------
    resources
        The disk's budget pays for the files, which lie in the spill folder.
    """

    def __init__(self, resources: Resources) -> None:
        self._disk, self._spill = resources.disk, resources.spill
        self._files: list[_MappedFile] = []
        self._reserved = 0
        self._unmapper = Unmapper(lambda: resources.host.free)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(file.nbytes for file in self._files)

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
            file = _MappedFile(os.fspath(self._spill.path), nbytes)
        except OSError as error:
            self._disk.charge(-nbytes, "")
            reason = error.strerror or str(error)
            raise RunError(
                f"{self._spill.path.parent}: {WHAT} cannot be made ({reason}): free space there, {self._spill.advice}"
            ) from error
        self._files.append(file)
        self._reserved += nbytes
        self._unmapper.watch(file.unmap)
        return np.asarray(file).view(dtype)

    def close(self) -> None:
        """Return the bytes to the disk's budget; a file goes with the last array that is in it."""
        self._disk.charge(-self._reserved, "")
        self._files, self._reserved = [], 0
        self._unmapper.close()

    def place(self, array: NDArray[Any]) -> Place | None:
        """Return where an array, or a part of one, is; None where it was not made here."""
        for file in self._files:
            offset = array.ctypes.data - file.address
            if array.nbytes and 0 <= offset <= file.nbytes - array.nbytes:
                return Place(file.path, offset, array.nbytes)
        return None

    def descriptors(self) -> dict[str, int]:
        """Return the descriptor of each file, by the path that `place` gives."""
        return {file.path: file.descriptor for file in self._files}


class _MappedFile:
    """A file without a name, mapped; it stays open as long as an array over it."""

    def __init__(self, folder: str, nbytes: int) -> None:
        self.nbytes = nbytes
        self.descriptor = _nameless(folder)
        self.path = f"/proc/{os.getpid()}/fd/{self.descriptor}"
        # A full disk is found out here: once the file is mapped, it would end the process.
        _allocate(self.descriptor, 0, nbytes)
        self._map = mmap.mmap(self.descriptor, nbytes)
        self.address = np.frombuffer(self._map, np.uint8).ctypes.data
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }

    @property
    def unmap(self) -> Callable[[], None]:
        """Takes the pages out of the process's memory; the next access brings them back from the file."""
        pages = self._map
        return lambda: pages.madvise(mmap.MADV_DONTNEED)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self.descriptor)


def _nameless(folder: str) -> int:
    """Open a new file without a name."""
    with suppress(OSError):  # not every file system can
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    file, path = tempfile.mkstemp(dir=folder)
    Path(path).unlink()
    return file
