"""How many rows and candidates of an unguided extension fit the memory of a call.

How many candidates a row has is known, from the degrees or by counting, before it is extended.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from longwall.storage.tables.embedding_table import EmbeddingTable

Found = TypeVar("Found")

_CANDIDATE_BYTES = 24  # its copy on the device; a sorted key, its mark and the key or value that is kept, or the latter
_ROW_BYTES, _ROW_COLUMN_BYTES = 160, 288  # of a row to extend, and for each of its columns, which may have two lists


class TooManyCandidates(Exception):
    """A single row has more candidates than fit the memory of a call.

    Attributes
    ----------
    candidates
        Of the row.
    needed
        Bytes of memory that would do for it.
    """

    def __init__(self, candidates: int):
        super().__init__(f"{candidates} candidates of one row do not fit")
        self.candidates, self.needed = candidates, memory_for(candidates)


class Take(Protocol):
    """How a piece of work is done: by ``work(memory)``, where memory is at most `most` bytes.

    A piece that fails for want of memory may be tried again with less.
    """

    def __call__(self, most: int, work: Callable[[int], Found]) -> Found: ...  # noqa: D102


def at_once(most: int, work: Callable[[int], Found]) -> Found:
    """Do the work with all the memory there is."""
    return work(most)


def memory_for(candidates: int) -> int:
    """Bytes of memory with which a row of a given number of candidates can be extended."""
    return 2 * _CANDIDATE_BYTES * candidates


def rows_within(memory: int, table: EmbeddingTable) -> int:
    """Return how many rows of a table are extended at once."""
    return max(memory // 4 // (_ROW_BYTES + _ROW_COLUMN_BYTES * table.num_levels), 1)


def most_candidates(memory: int) -> int:
    """Return how many candidates fit."""
    return memory // 2 // _CANDIDATE_BYTES
