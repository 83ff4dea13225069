"""Ids of any type of 64 bits, or fewer, as arrays of one type."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError

ID_RANGE = "use integers of 64 bits, from -2^63 to 2^63 - 1 or from 0 to 2^64 - 1"
"""What a message says of an id that is out of range."""


class IdWords(NamedTuple):
    """Columns of ids."""

    columns: list[npt.NDArray[np.int64]]
    """int64[k] each, arrays of their own."""
    unsigned: bool
    """Whether integers below 0 stand for those from 2^63 on, less 2^64."""


def id_words(columns: Sequence[npt.NDArray[Any]], error: Callable[[int, int], InputError]) -> IdWords:
    """Return columns of ids as words.

    Parameters
    ----------
    columns : integer[k] each
        The ids.
    error
        Makes the error for an id below 0 where others are from 2^63 on, given by its column and its row.

    Raises
    ------
    InputError
        If there are both.
    """
    unsigned = any(ids.dtype == np.uint64 and len(ids) and int(ids.max()) >= 2**63 for ids in columns)
    for at, ids in enumerate(columns):
        if unsigned and ids.dtype.kind == "i" and len(ids) and ids.min() < 0:
            raise error(at, int(np.argmax(ids < 0)))
    words = [ids.astype(np.uint64).view(np.int64) if unsigned else ids.astype(np.int64) for ids in columns]
    return IdWords(words, unsigned)
