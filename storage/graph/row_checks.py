"""Check the rows of a graph, in blocks of arcs, by threads."""

import os
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.cpu.row_checks import check_some_rows
from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.graph_checks import require
from longwall.storage.graph.graph_data import CheckRows

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
_NOT_ROWS = "indices: a row does not ascend, or does not fit the other arrays"


class Rows(NamedTuple):
    """Some rows of a graph, one after the other.

    Attributes
    ----------
    first
        The first row.
    indptr : int64[k + 1]
        Where each row begins, and where the last one ends.
    split : int64[k]
        Where the neighbours of each row with a larger id begin.
    """

    first: int
    indptr: Int64s
    split: Int64s


class RowChecks:
    """Checks the rows of a graph: ascending, split where they should be, and each edge there in both directions.

    Both directions are compared by sums of a hash of the edges, with a key that only this process knows: who writes
    arrays cannot find two sets of edges of the same sum. Threads may check blocks at once, in any order.

    Parameters
    ----------
    indptr, split, transactions
        Arrays of the graph, whole and checked by `GraphChecks`; `transactions` may be None.
    """

    def __init__(self, indptr: Int64s, split: Int64s, transactions: npt.NDArray[np.int32] | None) -> None:
        self._indptr, self._split = indptr, split
        self._transactions = np.zeros(0, np.int32) if transactions is None else transactions
        self._key = np.frombuffer(os.urandom(24), np.uint64) | np.uint64(1)

    def check(self, start: int, block: UInt32s) -> int:
        """Check neighbours from arc `start` on; the sum over all blocks must be 0 modulo 2^64.

        Raises
        ------
        Damage
            If they are not those of a graph.
        """
        return self._check(start, block, Rows(0, self._indptr, self._split), len(self._split))

    def _check(self, start: int, block: UInt32s, rows: Rows, number: int) -> int:
        hashed = np.zeros(1, np.uint64)
        good = check_some_rows(start, *rows, block, self._transactions, self._key, number, hashed)
        require(bool(good), _NOT_ROWS)
        return int(hashed[0])

    def check_whole(self, check: CheckRows) -> None:
        """Check all rows at once: `check` takes the key, and reads a copy of the rows.

        Raises
        ------
        Damage
            If they are not those of a graph.
        """
        good, total = check(self._key)
        require(good, _NOT_ROWS)
        check_sum([total], "indices")

    def check_labels(self, start: int, block: npt.NDArray[np.int32], indices: UInt32s) -> int:
        """Hash labels of edges, from arc `start` on, with their ends; the sum must be 0 as in `check`."""
        hashed = np.zeros(1, np.uint64)
        _hash_labels(
            start, self._row_of(start), block, indices[start : start + len(block)], self._indptr, self._key, hashed
        )
        return int(hashed[0])

    def _row_of(self, arc: int) -> int:
        return int(np.searchsorted(self._indptr, arc, side="right")) - 1

    def check_seams(self, starts: Int64s, indices: UInt32s) -> None:
        """Check that rows ascend where a block began, too.

        Parameters
        ----------
        starts
            The first arcs of the blocks.
        indices
            All neighbours.

        Raises
        ------
        Damage
            If they do not.
        """
        rows = np.searchsorted(self._indptr, starts, side="right") - 1
        within = starts[self._indptr[rows] < starts]
        require(bool((indices[within - 1] < indices[within]).all()), "indices: a row does not ascend")


class PartialRowChecks(RowChecks):
    """Checks the rows of a graph of whose other arrays only parts are in memory; blocks come with their rows.

    Parameters
    ----------
    number
        Rows of the graph.
    """

    def __init__(self, number: int) -> None:
        nothing = np.zeros(0, np.int64)
        super().__init__(nothing, nothing, None)
        self._number = number

    def check_rows(self, start: int, block: UInt32s, rows: Rows) -> int:
        """Check neighbours from arc `start` on, which are those of `rows`; as `check`, but for seams."""
        return self._check(start, block, rows, self._number)


def check_sum(sums: list[int], name: str) -> None:
    """Refuse edges that are not the same in both directions.

    Parameters
    ----------
    sums
        What `RowChecks` returned for the blocks of an array.
    name
        The array's name.

    Raises
    ------
    Damage
        If they are not.
    """
    require(sum(sums) % 2**64 == 0, f"{name}: an edge is not the same in both directions")


@compiled("i8, i8, i4[::1], u4[::1], i8[::1], u8[::1], u8[::1]")
def _hash_labels(
    start: int,
    row: int,
    labels: npt.NDArray[np.int32],
    block: UInt32s,
    indptr: Int64s,
    key: npt.NDArray[np.uint64],
    hashed: npt.NDArray[np.uint64],
) -> None:
    """Add up hashes of edges and their labels, those from the larger to the smaller end with the other sign."""
    add, first, second, shift = key[0], key[1], key[2], np.uint64(32)
    total = np.uint64(0)
    for arc in range(block.size):
        while indptr[row + 1] <= start + arc:
            row += 1
        own, other = np.uint64(row), np.uint64(block[arc])
        small, large = min(own, other), max(own, other)
        mixed = ((small << shift | large) + add) * first
        mixed = ((mixed ^ (mixed >> shift)) + np.uint64(np.uint32(labels[arc]))) * second
        mixed = (mixed ^ (mixed >> shift)) * first
        mixed ^= mixed >> shift
        total += mixed if other < own else np.uint64(0) - mixed
    hashed[0] = total
