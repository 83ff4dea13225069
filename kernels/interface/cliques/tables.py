"""How long the bitmap tables of vertices are, where they are made in pieces; see ``clique_rows.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD_BYTES = 4
_START_WORDS = 2  # where a table begins, 64 bits


def table_words(degrees: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Return the words that the tables of vertices take, with what says where each begins.

    Row i of a table has a bit for each of the out-neighbours before out-neighbour i, in words of 32 bits.

    Parameters
    ----------
    degrees : int64[n]
        Numbers of out-neighbours.
    least
        Vertices of fewer out-neighbours have no table.

    Returns
    -------
    int64[n]
    """
    groups, rest = degrees >> 5, degrees & 31
    words: Any = (16 * groups + rest) * (groups + 1)
    found: NDArray[np.int64] = np.where(degrees < least, 0, words) + _START_WORDS
    return found


def longest_table(max_out_degree: int) -> int:
    """Return the words of the table of the vertex with the most out-neighbours."""
    return int(table_words(np.array([max_out_degree]), 0)[0])
