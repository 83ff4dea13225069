"""The transactions of a graph that is being built: numbered, given to the vertices, held against the edges."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.ingest.transactions import TransactionSource
from longwall.storage.ingest.vertex_labels import Int64s, LabelBlock, LabelSource
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.sorting.sorted_keys import sort_distinct

MAX_TRANSACTIONS = 2**31 - 1
_ID = 16  # bytes of a transaction's id, and what the source needs to check it
_ROW = 8  # bytes of a vertex's transaction while it is numbered


def distinct_ids(source: TransactionSource, scratch: Scratch) -> Int64s:
    """Return the ids of all transactions, ascending: a transaction's place is its internal number.

    They stay reserved until the build ends.

    Raises
    ------
    InputError
        Two transactions of one id where an id may be given only once, or 2^31 transactions or more.
    """
    memory = scratch.work // 2
    found = sort_distinct((ids.view(np.uint64) for ids in source.transaction_ids()), scratch, memory)
    if len(found) > MAX_TRANSACTIONS:
        raise InputError(
            f"{source.source}: {len(found)} transactions, Longwall holds at most {MAX_TRANSACTIONS}; split the input"
        )
    scratch.reserve(_ID * len(found), "the ids of the transactions")
    ids = np.empty(len(found), np.int64)
    start = 0
    for block in found.blocks(memory):
        ids[start : start + len(block.keys)] = block.keys
        start += len(block.keys)
    found.drop()
    source.check_ids(ids)
    return ids


class Numbered(LabelSource):
    """The internal numbers of transactions as labels.

    Parameters
    ----------
    source
        The transactions of the vertices, by id.
    ids : int64[t]
        The ids of all transactions, ascending.
    scratch
        Pays for what is held meanwhile.
    """

    def __init__(self, source: TransactionSource, ids: Int64s, scratch: Scratch) -> None:
        self.source, self.noun, self.verb = source.source, source.noun, source.verb
        self._source, self._ids, self._scratch = source, ids, scratch

    def blocks(self) -> Iterator[LabelBlock]:
        """Read the transactions from the beginning."""
        for block in self._source.blocks():
            with self._scratch.host.reserve(_ROW * len(block.ids), "numbering the transactions"):
                yield replace(block, values=np.searchsorted(self._ids, block.values))


@dataclass(frozen=True, eq=False)
class RankedTransactions:
    """The transactions that the edges of a graph are held against."""

    source: str
    """Where they come from, for messages."""
    of_vertices: npt.NDArray[np.int32]
    """int32[n]: the internal number of each vertex's transaction, by rank."""
    ids: Int64s
    """int64[t]: the ids of the transactions."""

    def crossing(self, keys: npt.NDArray[np.uint64]) -> tuple[int, int] | None:
        """Return the ranks of the first edge, in uint64[k] words of two, that joins two transactions."""
        at = _first_crossing(keys, self.of_vertices)
        return None if at < 0 else (int(keys[at]) >> 32, int(keys[at]) & 0xFFFF_FFFF)

    def error(self, crossing: tuple[int, int], original_ids: Iterator[Int64s]) -> InputError:
        """Make the error for such an edge; `original_ids` are blocks of the ids of all vertices, by rank."""
        names: dict[int, int] = {}
        start = 0
        for block in original_ids:
            names |= {rank: int(block[rank - start]) for rank in crossing if start <= rank < start + len(block)}
            start += len(block)
        (u, one), (v, other) = ((names[rank], self.ids[self.of_vertices[rank]]) for rank in crossing)
        return InputError(
            f"{self.source}: edge {u}-{v} joins transaction {one} to transaction {other}; "
            "list both vertices with one transaction, or remove the edge"
        )


@compiled("u8[::1], i4[::1]")
def _first_crossing(keys: npt.NDArray[np.uint64], transactions: npt.NDArray[np.int32]) -> int:
    """Return the first edge, a word of two ranks, whose ends are in different transactions; -1 if there is none.

    Ranks that do not exist come from a damaged scratch file, and are left to others.
    """
    for at in range(keys.size):
        row, column = np.int64(keys[at] >> np.uint64(32)), np.int64(keys[at] & np.uint64(0xFFFFFFFF))
        in_range = row < transactions.size and column < transactions.size
        if in_range and transactions[row] != transactions[column]:
            return at
    return -1
