"""Check that arrays are those of a `Graph`: everything that kernels rely on, and the statistics.

Kernels use ids as positions in arrays and take sizes of buffers from the statistics, so arrays from elsewhere must
be those of a graph before anything is done with them. A store's hashes only say that they are what was written.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.graph.degree_histogram import DegreeHistogram
from longwall.storage.graph.stats import GraphStats, summarize_graph
from longwall.storage.lazy_kernel import lazy_kernel
from longwall.storage.stored_files import Damage

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]

_PIECE = 2**13  # items that are looked at together, so that what is made of them stays small


class GraphChecks:
    """Checks the arrays of a graph while they pass by in blocks, array by array, `indptr` first.

    It sees no two arcs at once: that rows ascend, fit `split`, and hold both directions of each edge is the business
    of `RowChecks`, and that ids are distinct that of `check_distinct`.

    Parameters
    ----------
    vertices, edges, transactions
        How many there are.
    labels
        How many distinct labels of vertices there may be.
    name_bytes
        Bytes of the names, where vertices have names.

    Attributes
    ----------
    labels
        Vertex label -> vertices.
    id_range
        Smallest and largest of the ids in the input.
    """

    def __init__(
        self, vertices: int, edges: int, transactions: int, labels: int, name_bytes: int | None = None
    ) -> None:
        self._vertices, self._arcs, self._transactions = vertices, 2 * edges, transactions
        self._most_labels, self._name_bytes = labels, name_bytes
        self._ids_end = 2**63
        self._checks: dict[str, Callable[[int, Any], None]] = {
            "indptr": self._look_at_indptr,
            "name_starts": self._look_at_name_starts,
            "original_ids": self._look_at_ids,
            "split": self._look_at_split,
            "labels": self._look_at_labels,
            "transaction_ids": self._look_at_transaction_ids,
            "transactions": self._look_at_transactions,
            "indices": self._look_at_indices,
            "edge_labels": _look_at_edge_labels,
        }
        self._degrees: list[int] = []  # distinct, descending
        self._first_ranks: list[int] = []
        self._last: dict[str, int] = {"original_ids": -1, "transaction_ids": -1, "name_starts": -1}
        self._max_out_degree = 0
        self._histogram: DegreeHistogram | None = None
        self.labels: Counter[int] = Counter()
        self.id_range = (2**63, -1)

    def look(self, name: str, start: int, block: Array) -> None:
        """Check items of an array from `start` on.

        Raises
        ------
        Damage
            If they are not those of a graph.
        """
        if check := self._checks.get(name):
            for low in range(0, len(block), _PIECE):
                check(start + low, block[low : low + _PIECE])

    @property
    def histogram(self) -> DegreeHistogram:
        """The degrees; once all of `indptr` passed by."""
        if self._histogram is None:
            bounds = np.array([*self._first_ranks, self._vertices], np.int64)
            self._histogram = DegreeHistogram(np.array(self._degrees, np.int64), np.diff(bounds))
        return self._histogram

    def stats(self, closed_wedge_fraction: object) -> GraphStats:
        """Return the statistics of what passed by.

        Parameters
        ----------
        closed_wedge_fraction
            The figure in a store from elsewhere: the arrays must be in memory to sample wedges.

        Raises
        ------
        Damage
            If it is no fraction.
        """
        fraction = closed_wedge_fraction
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
            raise Damage("zarr.json: the closed_wedge_fraction is no number from 0 to 1")
        return summarize_graph(self.histogram, self._max_out_degree, self.labels, float(fraction))

    def _look_at_indptr(self, start: int, block: Int64s) -> None:
        _require(bool((block >= 0).all() and (block <= self._arcs).all()), "indptr: a row lies outside of the array")
        if start == 0:
            _require(block[0] == 0, "indptr: the first row does not begin at 0")
            starts = block
        else:
            starts = np.concatenate((np.array([self._last["indptr"]]), block))
        self._last["indptr"] = int(block[-1])
        degrees = np.diff(starts)
        first = max(start - 1, 0)  # the vertex of the first of these degrees
        largest = self._degrees[-1] if self._degrees else self._vertices - 1
        descends = not len(degrees) or bool(degrees[0] <= largest and (degrees[1:] <= degrees[:-1]).all())
        _require(descends and bool((degrees > 0).all()), "indptr: the degrees are not positive and descending")
        for at in [0, *(np.flatnonzero(degrees[1:] != degrees[:-1]) + 1).tolist()] if len(degrees) else []:
            if not self._degrees or degrees[at] != self._degrees[-1]:
                self._degrees.append(int(degrees[at]))
                self._first_ranks.append(first + at)
        if start + len(block) == self._vertices + 1:
            _require(self._last["indptr"] == self._arcs, "indptr: the last row does not end with the array")

    def _look_at_name_starts(self, start: int, block: Int64s) -> None:
        before = np.concatenate((np.array([self._last["name_starts"]]), block[:-1]))
        _require(bool((block > before).all()) and (start > 0 or block[0] == 0), "name_starts: a name has no length")
        self._last["name_starts"] = int(block[-1])
        self._ids_end = start + len(block) - 1

    def _look_at_ids(self, start: int, block: Int64s) -> None:
        before = np.concatenate((np.array([self._last["original_ids"]]), block[:-1]))
        self._last["original_ids"] = int(block[-1])
        low, high = int(block.min()), int(block.max())
        named = self._name_bytes is None or self._last["name_starts"] == self._name_bytes
        _require(named, "name_starts: the last name does not end with the bytes")
        _require(high < self._ids_end, "original_ids: there is the number of no name")
        self.id_range = min(self.id_range[0], low), max(self.id_range[1], high)
        # Of two vertices of the same degree the one with the smaller id comes first.
        falls = np.flatnonzero(block <= before) + start
        first_ranks = self.histogram.first_ranks
        at = np.minimum(np.searchsorted(first_ranks, falls), len(first_ranks) - 1)
        _require(low >= 0 and bool((first_ranks[at] == falls).all()), "original_ids: these are no ids in their order")

    def _look_at_split(self, start: int, block: Int64s) -> None:
        begins = self.histogram.row_starts(np.arange(start, start + len(block) + 1))
        inside = bool(((block >= begins[:-1]) & (block <= begins[1:])).all())
        _require(inside, "split: a row is split outside of it")
        self._max_out_degree = max(self._max_out_degree, int((block - begins[:-1]).max()))

    def _look_at_labels(self, _: int, block: Array) -> None:
        _require(int(block.min()) >= 0, "labels: there is a negative one")
        values, times = np.unique(block, return_counts=True)
        self.labels.update(dict(zip(values.tolist(), times.tolist(), strict=True)))
        _require(len(self.labels) <= self._most_labels, "labels: there are more than zarr.json says")

    def _look_at_transaction_ids(self, _: int, block: Int64s) -> None:
        ascending = block[0] > self._last["transaction_ids"] and bool((block[1:] > block[:-1]).all())
        _require(ascending, "transaction_ids: these are no ids in ascending order")
        self._last["transaction_ids"] = int(block[-1])

    def _look_at_transactions(self, _: int, block: Array) -> None:
        inside = int(block.min()) >= 0 and int(block.max()) < self._transactions
        _require(inside, "transactions: there is a number of none")

    def _look_at_indices(self, _: int, block: Array) -> None:
        _require(int(block.max()) < self._vertices, "indices: there is an id of no vertex")


def check_distinct(ids: Int64s) -> None:
    """Refuse ids that are there twice; they are sorted in their place.

    Raises
    ------
    Damage
        If there are any.
    """
    ids.sort()
    for start in range(0, len(ids), _PIECE):
        block = ids[start : start + _PIECE + 1]
        _require(bool((block[1:] > block[:-1]).all()), "original_ids: two vertices have the same id")


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

    def check(self, start: int, block: npt.NDArray[np.uint32]) -> int:
        """Check neighbours from arc `start` on; the sum over all blocks must be 0 modulo 2^64.

        Raises
        ------
        Damage
            If they are not those of a graph.
        """
        hashed = np.zeros(1, np.uint64)
        row = self._row_of(start)
        good = _check_rows(start, row, block, self._indptr, self._split, self._transactions, self._key, hashed)
        _require(bool(good), "indices: a row does not ascend, or does not fit the other arrays")
        return int(hashed[0])

    def check_labels(self, start: int, block: npt.NDArray[np.int32], indices: npt.NDArray[np.uint32]) -> int:
        """Check labels of edges, from arc `start` on, and hash them with their ends; the sum must be 0 as in `check`.

        Raises
        ------
        Damage
            If one is negative.
        """
        _look_at_edge_labels(start, block)
        hashed = np.zeros(1, np.uint64)
        _hash_labels(
            start, self._row_of(start), block, indices[start : start + len(block)], self._indptr, self._key, hashed
        )
        return int(hashed[0])

    def _row_of(self, arc: int) -> int:
        return int(np.searchsorted(self._indptr, arc, side="right")) - 1

    def check_seams(self, starts: Int64s, indices: npt.NDArray[np.uint32]) -> None:
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
        _require(bool((indices[within - 1] < indices[within]).all()), "indices: a row does not ascend")


def _look_at_edge_labels(_: int, block: npt.NDArray[np.int32]) -> None:
    _require(int(block.min()) >= 0, "edge_labels: there is a negative one")


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
    _require(sum(sums) % 2**64 == 0, f"{name}: an edge is not the same in both directions")


def _require(good: bool, fault: str) -> None:
    if not good:
        raise Damage(fault)


@lazy_kernel
def _check_rows(
    start: int,
    row: int,
    block: npt.NDArray[np.uint32],
    indptr: Int64s,
    split: Int64s,
    transactions: npt.NDArray[np.int32],
    key: npt.NDArray[np.uint64],
    hashed: npt.NDArray[np.uint64],
) -> bool:
    """Check the pieces of rows in a block, from inside of a row on; add up hashes of its edges.

    An edge is hashed as a word, the smaller end in the high half; hashes count with a minus in the row of that end.
    """
    n = indptr.size - 1
    add, first, second, shift = key[0], key[1], key[2], np.uint64(32)
    total = np.uint64(0)
    at = 0
    while at < block.size:
        end = min(indptr[row + 1] - start, block.size)
        middle = min(max(split[row] - start, at), end)
        own = np.uint64(row)
        before: Any = -1
        good: Any = True
        for arc in range(at, middle):
            other = np.int64(block[arc])
            good &= before < other
            before = other
            mixed = ((np.uint64(other) << shift | own) + add) * first
            mixed = (mixed ^ (mixed >> shift)) * second
            total += mixed ^ (mixed >> shift)
        good &= before < row
        before = row
        for arc in range(middle, end):
            other = np.int64(block[arc])
            good &= before < other
            before = other
            mixed = ((own << shift | np.uint64(other)) + add) * first
            mixed = (mixed ^ (mixed >> shift)) * second
            total -= mixed ^ (mixed >> shift)
        if not good or before >= n:
            return False
        if transactions.size:
            for arc in range(at, end):
                if transactions[block[arc]] != transactions[row]:
                    return False
        at = end
        row += 1
    hashed[0] = total
    return True


@lazy_kernel
def _hash_labels(
    start: int,
    row: int,
    labels: npt.NDArray[np.int32],
    block: npt.NDArray[np.uint32],
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
