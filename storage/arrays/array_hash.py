"""The hash of an array, a tree of two levels, so that threads can hash its parts: however the array is stored."""

import hashlib

import numpy as np
import numpy.typing as npt

SEGMENT_BYTES = 2**20  # a power of two; the hash of an array of more bytes depends on it
_DIGEST = 32  # bytes of a SHA-256


class ArrayHash:
    """The SHA-256 of the SHA-256 of each segment of an array: of so many bytes as `SEGMENT_BYTES`, little endian.

    Parameters
    ----------
    dtype, length
        Of the whole array.

    Attributes
    ----------
    dtype, length
        See above.
    segment
        Items of a segment.
    """

    def __init__(self, dtype: npt.DTypeLike, length: int) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.length = length
        self.segment = max(1, SEGMENT_BYTES // self.dtype.itemsize)
        self._digests = bytearray(_DIGEST * -(-length // self.segment))
        self._next, self._open = 0, hashlib.sha256()

    def put(self, start: int, values: npt.NDArray[np.generic]) -> None:
        """Hash whole segments, of which each is hashed once: in any order, by any thread.

        Parameters
        ----------
        start
            The first item, where a segment begins.
        values
            They end with a segment, or with the array.
        """
        for low in range(0, len(values), self.segment):
            digest = hashlib.sha256(self._bytes(values[low : low + self.segment])).digest()
            self._set((start + low) // self.segment, digest)

    def update(self, values: npt.NDArray[np.generic]) -> None:
        """Hash the next items, from the first one on: for those that have no whole segments."""
        while len(values):
            part = values[: self.segment - self._next % self.segment]
            self._open.update(self._bytes(part))
            self._next, values = self._next + len(part), values[len(part) :]
            if self._next % self.segment == 0 or self._next == self.length:
                self._set((self._next - 1) // self.segment, self._open.digest())
                self._open = hashlib.sha256()

    def line(self, name: str) -> str:
        """Return what the content hash is made of: name, type, length and digest."""
        return f"{name} {self.dtype.str} {self.length} {hashlib.sha256(self._digests).hexdigest()}\n"

    def _bytes(self, values: npt.NDArray[np.generic]) -> memoryview:
        return np.ascontiguousarray(values, self.dtype).data

    def _set(self, segment: int, digest: bytes) -> None:
        self._digests[_DIGEST * segment : _DIGEST * (segment + 1)] = digest
