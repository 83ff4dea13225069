"""Adjacency lists in a file of the spill folder, one behind the other, in segments with a checksum each."""

import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import RunError
from longwall.storage.memory.resources import Resources

UInt32s = npt.NDArray[np.uint32]
_ITEM = 4  # bytes of a neighbour
_WHAT = "a file of the adjacency lists"
_NAME = "adjacency-lists"


class ListFile:
    """Neighbours in a file; threads may write and read its segments in any order.

    Parameters
    ----------
    resources
        The disk's budget, and the spill folder.
    bounds : int64[k + 1]
        Which neighbour each segment begins with, and how many there are.

    Attributes
    ----------
    bounds
        See above.
    bytes_read
        What phases that are over have read.

    Raises
    ------
    RunError
        If the disk's budget has no room for them, or the file cannot be made.
    """

    def __init__(self, resources: Resources, bounds: npt.NDArray[np.int64]) -> None:
        self.bounds, self.bytes_read = bounds, 0
        self._checksums = np.zeros(len(bounds) - 1, np.uint32)
        self._disk, self._advice = resources.disk, resources.spill.advice
        self._memory = resources.disk.reserve(_ITEM * int(bounds[-1]), _WHAT)
        try:
            self._path = resources.spill.path / f"{_NAME}-{os.getpid()}-{id(self):x}"
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise self._unwritable(error) from error
        except BaseException:
            self._memory.release()
            raise

    @property
    def segments(self) -> int:
        """Number of segments."""
        return len(self._checksums)

    @property
    def longest(self) -> int:
        """Most neighbours of a segment."""
        return int(np.diff(self.bounds).max(initial=0))

    def write(self, segment: int, values: UInt32s) -> None:
        """Write a segment, once.

        Raises
        ------
        RunError
            If the disk does not take it.
        """
        from google_crc32c import extend

        self._checksums[segment] = extend(0, values.view(np.uint8))
        rest, at, began = values.data.cast("B"), _ITEM * int(self.bounds[segment]), time.perf_counter()
        try:
            while rest:
                done = os.pwrite(self._file, rest, at)
                at, rest = at + done, rest[done:]
        except OSError as error:
            raise self._unwritable(error) from error
        self._disk.add_writing(values.nbytes, time.perf_counter() - began)

    def read(self, segment: int, buffer: UInt32s) -> UInt32s:
        """Read a segment to the beginning of `buffer`, which has `longest` items or more, and check it.

        Returns
        -------
        uint32[size of the segment]
            A view of `buffer`.

        Raises
        ------
        RunError
            If it is not what was written.
        """
        from google_crc32c import extend

        first, last = self.bounds[segment : segment + 2].tolist()
        values = buffer[: last - first]
        self._fill(values.view(np.uint8), _ITEM * first)
        if extend(0, values.view(np.uint8)) != int(self._checksums[segment]):
            raise self._unreadable("it holds something else than what was written")
        return values

    def close(self) -> None:
        """Remove the file; a second call does no harm."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._path.unlink(missing_ok=True)
            self._memory.release()

    def _fill(self, out: npt.NDArray[Any], at: int) -> None:
        rest = out.data
        while rest:
            try:
                done = os.preadv(self._file, [rest], at)
            except OSError as error:
                raise self._unreadable(error.strerror or str(error)) from error
            if done == 0:
                raise self._unreadable("it ends early")
            at, rest = at + done, rest[done:]

    def _unwritable(self, error: OSError) -> RunError:
        reason = error.strerror or str(error)
        return RunError(f"{self._path.parent}: {_WHAT} cannot be written ({reason}): free space there, {self._advice}")

    def _unreadable(self, reason: str) -> RunError:
        return RunError(f"{self._path}: {_WHAT} cannot be read ({reason}): check the disk, or {self._advice}")
