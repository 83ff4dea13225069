"""Group the rows of a table by the key of a user's function: distinct keys, ascending, and how often each stands.

Keys become 64-bit words in the same order, which are sorted and counted in bounded memory.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.sorting import KeyLayout
from longwall.storage.errors import InputError
from longwall.storage.sorting.key_sorter import KeySorter

LAYOUT = KeyLayout(reduce="count")
"""What the sorter of a `Grouping` sorts."""
GROUP_BYTES = 16
"""Bytes of a group: its key and its count."""
Array = Any  # a NumPy or a CuPy array

_SIGN = np.uint64(1 << 63)


class Grouping:
    """Counts keys; see the module.

    Parameters
    ----------
    sorter
        Of layout `LAYOUT`.
    xp
        The module of the arrays of keys, numpy or cupy.
    """

    def __init__(self, sorter: KeySorter, xp: Any) -> None:
        self._sorter, self._xp = sorter, xp
        self.dtype: np.dtype[Any] | None = None
        """The type of the keys so far: the widest of its kind; None if there were none."""

    def add(self, keys: Array) -> None:
        """Add keys: a bool, integer or floating-point array with one dimension.

        Raises
        ------
        InputError
            If they are none of these, or of another kind than those before.
        """
        if keys.dtype.kind not in "biuf" or keys.dtype.itemsize > 8:
            raise InputError(f"a key must return integers, floating-point numbers or bools, not {keys.dtype}")
        if self.dtype is None:
            self.dtype = np.dtype(keys.dtype)
        if keys.dtype.kind != self.dtype.kind:
            raise InputError(f"a key must return numbers of one kind, but returned {self.dtype}, then {keys.dtype}")
        self.dtype = max(self.dtype, np.dtype(keys.dtype), key=lambda dtype: dtype.itemsize)
        self._sorter.add(to_words(keys, self._xp))

    def blocks(self) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.int64]]]:
        """Yield distinct keys, ascending, and their counts, as NumPy arrays; NaN is one key, and the last."""
        for block in self._sorter.blocks():
            assert self.dtype is not None
            assert block.payload is not None
            yield from_words(block.keys, self.dtype), block.payload.copy()


def to_words(keys: Array, xp: Any) -> Array:
    """Map numbers to uint64 so that the order stays; equal numbers, and all NaN, become equal words."""
    if keys.dtype.kind in "bu":
        return keys.astype(xp.uint64)
    if keys.dtype.kind == "i":
        return keys.astype(xp.int64).view(xp.uint64) ^ _SIGN
    numbers = keys.astype(xp.float64) + 0.0  # which makes -0.0 to 0.0
    numbers[xp.isnan(numbers)] = np.nan
    bits = numbers.view(xp.uint64)
    # Of negative numbers all bits turn, of others the sign.
    return bits ^ ((xp.uint64(0) - (bits >> np.uint64(63))) | _SIGN)


def from_words(words: npt.NDArray[np.uint64], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Undo `to_words`, for keys of a type."""
    if dtype.kind in "bu":
        return words.astype(dtype)
    if dtype.kind == "i":
        return (words ^ _SIGN).view(np.int64).astype(dtype)
    bits = words ^ (((words >> np.uint64(63)) - np.uint64(1)) | _SIGN)
    return bits.view(np.float64).astype(dtype)
