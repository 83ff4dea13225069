"""Group the rows of a table by the key of a user's function: distinct keys, ascending, and how often each stands.

Keys become 64-bit words in the same order, which are sorted and counted in bounded memory.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.sorting import KeyLayout
from longwall.stages.base import Stage, WorkerContext
from longwall.stages.tables import ROW_BYTES, ROW_COLUMN_BYTES, CallContext, UnreadChunk
from longwall.storage.errors import InputError
from longwall.storage.sorting.key_sorter import KeySorter
from longwall.storage.tables.embedding_table import Columns, EmbeddingTable, NotRead

LAYOUT = KeyLayout(reduce="count")
"""What sorts and counts the words."""
GROUP_BYTES = 16
"""Bytes of a group: its key and its count."""
Array = Any  # a NumPy or a CuPy array

_SIGN = np.uint64(1 << 63)


class UserKey:
    """A user's key, over the parts of a table.

    Parameters
    ----------
    function
        Called as ``function(columns, graph, xp)``; see `longwall.aggregate`.

    Attributes
    ----------
    dtype
        The type of the keys so far: the widest of its kind; None if there were none.
    columns
        The columns that the function has asked for so far; None before the first call.
    """

    def __init__(self, function: Callable[[Any, GraphArrays, Any], Any]) -> None:
        self._function = function
        self.dtype: np.dtype[Any] | None = None
        self.columns: set[int] | None = None

    def words(self, part: EmbeddingTable, graph: GraphArrays) -> Array:
        """Return the keys of some rows as words: uint64[rows].

        Raises
        ------
        InputError
            If the function returns something else than a bool, an integer or a floating-point number for each row, or
            numbers of another kind than before.
        NotRead
            If it asks for a column that was not read.
        """
        xp, columns = part.xp, Columns(part)
        keys = xp.asarray(self._function(columns, graph, xp))
        if keys.shape != (len(part),):
            raise InputError(f"a key must return an array of shape ({len(part)},), not {keys.shape}")
        self.columns = columns.touched | (self.columns or set())
        if keys.dtype.kind not in "biuf" or keys.dtype.itemsize > 8:
            raise InputError(f"a key must return integers, floating-point numbers or bools, not {keys.dtype}")
        if self.dtype is None:
            self.dtype = np.dtype(keys.dtype)
        if keys.dtype.kind != self.dtype.kind:
            raise InputError(f"a key must return numbers of one kind, but returned {self.dtype}, then {keys.dtype}")
        self.dtype = max(self.dtype, np.dtype(keys.dtype), key=lambda dtype: dtype.itemsize)
        return to_words(keys, xp)

    def values(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
        """Return the keys that words stand for; NaN is one key, and the last."""
        assert self.dtype is not None
        return from_words(words, self.dtype)


@dataclass(frozen=True)
class MakeUserKeys(Stage):
    """Make the key of every row by a user's function; only columns that it asked for before are read.

    Attributes
    ----------
    key
        The function.
    """

    key: UserKey

    verb = "aggregate"

    def describe(self) -> str:
        """See `Stage`."""
        return "aggregate    by a function of the columns"

    def run(self, chunk: UnreadChunk, context: CallContext) -> Iterator[Array]:
        """Yield the keys of the rows, part by part; read the whole chunk where the function asks for more columns."""
        known, done = self.key.columns, 0
        for levels in (None if known is None else sorted(known) or [chunk.num_levels - 1], None):
            with suppress(NotRead), chunk.rows(levels) as rows:
                row_bytes = ROW_BYTES + ROW_COLUMN_BYTES * rows.num_levels
                for keys in context.by_parts(rows.sliced(done, len(rows)), row_bytes, partial(self._words, context)):
                    done += len(keys)
                    yield keys
                return

    def _words(self, context: CallContext, part: EmbeddingTable) -> Array:
        return self.key.words(part, context.graph)


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


@dataclass(frozen=True)
class CountKeys(Stage):
    """Count how often each key stands.

    Attributes
    ----------
    sorter
        Where keys go: uint64[n], or uint64[2, n] of high and low words, in arrays of the engine.
    """

    sorter: KeySorter

    verb = "aggregate"

    def describe(self) -> str:
        """See `Stage`."""
        return "aggregate    sort the keys, count equal ones"

    def run(self, chunk: Array, context: WorkerContext) -> Iterable[Any]:  # noqa: ARG002 - a `Stage`
        """Add keys."""
        self.sorter.add(chunk)
        return ()
