"""How long the bitmap tables of vertices are, where they are made in pieces; see ``clique_rows.cu``."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

WORD_BYTES = 4
Degrees = TypeVar("Degrees", int, NDArray[np.int64])
_START_WORDS = 2  # where a table begins, 64 bits


def table_words(degrees: Degrees, least: int) -> Degrees:
    """Return the words that the tables of vertices take, with what says where each begins.

    Row i of a table has a bit for each of the out-neighbours before out-neighbour i, in words of 32 bits.

    Parameters
    ----------
    degrees : int or int64[n]
        Numbers of out-neighbours.
    least
        Vertices of fewer out-neighbours have no table.
    """
    groups, rest = degrees >> 5, degrees & 31
    words: Degrees = (16 * groups + rest) * (groups + 1) * (degrees >= least) + _START_WORDS
    return words


def longest_table(max_out_degree: int) -> int:
    """Return the words of the table of the vertex with the most out-neighbours."""
    return table_words(max_out_degree, 0)
