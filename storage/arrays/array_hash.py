"""The hash of an array, a tree of two levels, so that threads can hash its parts: however the array is stored."""

import hashlib

import numpy as np
import numpy.typing as npt

from longwall.storage.arrays.raw_memory import address_of
from longwall.storage.arrays.xxh64 import hash_more, hash_segments

SEGMENT_BYTES = 2**18  # a power of two; the hash of an array of more bytes depends on it
_DIGEST = 8  # bytes of an XXH64


class ArrayHash:
    """The SHA-256 of the XXH64 (little endian) of each segment of an array, of `SEGMENT_BYTES` bytes.

    XXH64 tells any two segments apart that differ in 8 aligned bytes only, and others but for one in 2^64.

    Parameters
    ----------
    dtype, length
        Of the whole array.

    Attributes
    ----------
    dtype, length
        See above; hashed is what is little endian.
    segment
        Items of a segment.
    """

    def __init__(self, dtype: npt.DTypeLike, length: int) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.length = length
        self.segment = max(1, SEGMENT_BYTES // self.dtype.itemsize)
        self._next, self._state = 0, np.zeros(5, np.uint64)
        self._digests = np.zeros(-(-length // self.segment), f"<u{_DIGEST}")

    def put(self, start: int, values: npt.NDArray[np.generic]) -> None:
        """Hash whole segments, of which each is hashed once: in any order, by any thread.

        Parameters
        ----------
        start
            The first item, where a segment begins.
        values
            They end with a segment, or with the array.
        """
        values = np.ascontiguousarray(values, self.dtype)
        hash_segments(address_of(values), values.nbytes, self.segment * self.dtype.itemsize, self.digests(start))

    def update(self, values: npt.NDArray[np.generic]) -> None:
        """Hash the next items, from the first one on: for those that have no whole segments.

        Parameters
        ----------
        values
            Whole stripes of `xxh64.STRIPE` bytes, or the last items.
        """
        values = np.ascontiguousarray(values, self.dtype)
        while len(values):
            part = values[: self.segment - self._next % self.segment]
            digest = hash_more(self._state, address_of(part), part.nbytes)
            self._next, values = self._next + len(part), values[len(part) :]
            if self._next % self.segment == 0 or self._next == self.length:
                self._digests[(self._next - 1) // self.segment] = digest
                self._state[:] = 0

    def digests(self, start: int) -> npt.NDArray[np.uint64]:
        """Return where the digests of the segments go, from that of the item `start` on."""
        return self._digests[start // self.segment :]

    def line(self, name: str) -> str:
        """Return what the content hash is made of: name, type, length and digest."""
        return f"{name} {self.dtype.str} {self.length} {hashlib.sha256(self._digests.tobytes()).hexdigest()}\n"
