"""Pieces of a graph whose bitmap tables are made while lists are streamed, and their length: ``kcliques/tables.cu``."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

WORD_BYTES = 4
Degrees = TypeVar("Degrees", int, NDArray[np.int64])
_START_WORDS = 2  # where a table begins, 64 bits


class TablePiece(NamedTuple):
    """A range of arcs whose vertices' tables have room.

    Attributes
    ----------
    arcs
        The first arc, and one past the last.
    vertices
        The first vertex that has some of them, and one past the last.
    owned
        The first arc of these vertices, and one past the last.
    targets
        See :class:`longwall.kernels.interface.workspaces.TabledCliqueCounter`.
    parts
        The parts that `targets` has.
    """

    arcs: tuple[int, int]
    vertices: tuple[int, int]
    owned: tuple[int, int]
    targets: Iterable[tuple[int, int] | None]
    parts: Sequence[tuple[int, int] | None] = ()


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
