"""Check that arrays are those of a `Graph`: everything that kernels rely on, and the statistics.

Kernels use ids as positions in arrays and take sizes of buffers from the statistics, so arrays from elsewhere must
be those of a graph before anything is done with them. A store's hashes only say that they are what was written.
"""

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.bisect import first_above, first_at_least
from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.degree_histogram import DegreeHistogram
from longwall.storage.graph.stats import GraphStats, summarize_graph
from longwall.storage.ingest.names.texts import Texts, hash_spans
from longwall.storage.stored_files import Damage
from longwall.storage.system.concurrency import map_all

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]

_PIECE = 2**13  # items that are looked at together, where much is made of them
_BITS = 64  # of a word
_KEYS_TRIED = 4  # of 2^32 names, a third has two with the same hash of 64 bits


class Facts(NamedTuple):
    """What threads find out about a block of an array."""

    first: int = 0
    """The first item."""
    last: int = 0
    """The last item."""
    low: int = 0
    """The smallest item, if it matters."""
    high: int = 0
    """The largest item, or the number of items, if it matters."""
    more: Any = None
    """Further facts about the array."""


class GraphChecks:
    """Checks the arrays of a graph in blocks, array by array, `indptr` first.

    Any threads `examine` blocks, in any order; their facts are joined in the order of the array. Arcs are checked one
    by one: `RowChecks` checks that rows ascend, fit `split`, and hold both directions of each edge; `check_distinct`
    and `check_names_distinct` check that ids and names are distinct.

    Parameters
    ----------
    vertices, edges, transactions
        Their numbers in the graph.
    labels
        The largest number of distinct labels of vertices.
    name_bytes
        Bytes of the names, if vertices have names.

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
        self._ids_end = 2**64
        self._checks: dict[str, tuple[Callable[[int, Any], Facts], Callable[[int, Facts], None]]] = {
            "indptr": (self._examine_indptr, self._join_indptr),
            "name_starts": (_examine_name_starts, self._join_name_starts),
            "original_ids": (self._examine_ids, self._join_ids),
            "split": (self._examine_split, self._join_split),
            "labels": (self._examine_labels, self._join_labels),
            "transaction_ids": (_examine_transaction_ids, self._join_transaction_ids),
            "transactions": (self._examine_transactions, _join_nothing),
            "indices": (self._examine_indices, _join_nothing),
            "edge_labels": (_examine_edge_labels, _join_nothing),
        }
        self._degrees: list[int] = []  # distinct, descending
        self._first_ranks: list[int] = []
        self._last: dict[str, int] = {"original_ids": -(2**63) - 1, "transaction_ids": -1, "name_starts": -1}
        self._max_out_degree = 0
        self._histogram: DegreeHistogram | None = None
        self._starts: tuple[Int64s, Int64s] | None = None
        self.labels: Counter[int] = Counter()
        self.id_range = (2**64, -(2**63) - 1)

    def examine(self, name: str, start: int, block: Array) -> Facts:
        """Check items of an array from `start` on; return what `join` needs.

        Raises
        ------
        Damage
            If they are not those of a graph.
        """
        check = self._checks.get(name)
        return check[0](start, block) if check else Facts()

    def join(self, name: str, start: int, facts: Facts) -> None:
        """Put what `examine` returned of a block beside what it returned of all blocks before; errors as there."""
        if check := self._checks.get(name):
            check[1](start, facts)

    @property
    def histogram(self) -> DegreeHistogram:
        """The degrees; once all of `indptr` was joined."""
        if self._histogram is None:
            bounds = np.array([*self._first_ranks, self._vertices], np.int64)
            self._histogram = DegreeHistogram.of(np.array(self._degrees, np.int64), np.diff(bounds))
        return self._histogram

    def stats(self, closed_wedge_fraction: object) -> GraphStats:
        """Return the statistics of what was joined.

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

    def _examine_indptr(self, _: int, block: Int64s) -> Facts:
        require(int(block.min()) >= 0 and int(block.max()) <= self._arcs, "indptr: a row lies outside of the array")
        changes = np.empty(len(block), np.int64)
        count = _degree_changes(block, changes)
        require(count >= 0, "indptr: the degrees are not positive and descending")
        at = changes[:count].copy()
        return Facts(int(block[0]), int(block[-1]), high=len(block), more=(block[at + 1] - block[at], at))

    def _join_indptr(self, start: int, facts: Facts) -> None:
        degrees, ranks = (found.tolist() for found in facts.more)
        ranks = [start + rank for rank in ranks]
        if start == 0:
            require(facts.first == 0, "indptr: the first row does not begin at 0")
        else:
            degrees, ranks = [facts.first - self._last["indptr"], *degrees], [start - 1, *ranks]
        self._last["indptr"] = facts.last
        for degree, rank in zip(degrees, ranks, strict=True):
            largest = self._degrees[-1] if self._degrees else self._vertices - 1
            require(0 < degree <= largest, "indptr: the degrees are not positive and descending")
            if not self._degrees or degree != largest:
                self._degrees.append(degree)
                self._first_ranks.append(rank)
        if start + facts.high == self._vertices + 1:
            require(facts.last == self._arcs, "indptr: the last row does not end with the array")
            self._starts = self.histogram.first_ranks, self.histogram.first_arcs

    def _join_name_starts(self, start: int, facts: Facts) -> None:
        good = facts.first > self._last["name_starts"] and (start > 0 or facts.first == 0)
        require(good, "name_starts: a name has no length")
        self._last["name_starts"] = facts.last
        self._ids_end = start + facts.high - 1

    def _examine_ids(self, start: int, block: Array) -> Facts:
        low, high = int(block.min()), int(block.max())
        named = self._name_bytes is None or self._last["name_starts"] == self._name_bytes
        require(named, "name_starts: the last name does not end with the bytes")
        require(high < self._ids_end, "original_ids: there is the number of no name")
        # Of two vertices of the same degree the one with the smaller id comes first.
        assert self._starts is not None
        ordered = bool(_ids_ascend(start, block, self._starts[0]))
        require((low >= 0 or self._name_bytes is None) and ordered, "original_ids: these are no ids in their order")
        return Facts(int(block[0]), int(block[-1]), low, high)

    def _join_ids(self, start: int, facts: Facts) -> None:
        if facts.first <= self._last["original_ids"]:
            assert self._starts is not None
            first_ranks = self._starts[0]
            at = min(int(np.searchsorted(first_ranks, start)), len(first_ranks) - 1)
            require(int(first_ranks[at]) == start, "original_ids: these are no ids in their order")
        self._last["original_ids"] = facts.last
        self.id_range = min(self.id_range[0], facts.low), max(self.id_range[1], facts.high)

    def _examine_split(self, start: int, block: Int64s) -> Facts:
        assert self._starts is not None
        largest = int(_largest_split(start, block, self.histogram.degrees, *self._starts))
        require(largest >= 0, "split: a row is split outside of it")
        return Facts(high=largest)

    def _join_split(self, _: int, facts: Facts) -> None:
        self._max_out_degree = max(self._max_out_degree, facts.high)

    def _examine_labels(self, _: int, block: Array) -> Facts:
        require(int(block.min()) >= 0, "labels: there is a negative one")
        labels: Counter[int] = Counter()
        for low in range(0, len(block), _PIECE):
            values, times = np.unique(block[low : low + _PIECE], return_counts=True)
            labels.update(dict(zip(values.tolist(), times.tolist(), strict=True)))
            require(len(labels) <= self._most_labels, "labels: there are more than zarr.json says")
        return Facts(more=labels)

    def _join_labels(self, _: int, facts: Facts) -> None:
        self.labels.update(facts.more)
        require(len(self.labels) <= self._most_labels, "labels: there are more than zarr.json says")

    def _join_transaction_ids(self, _: int, facts: Facts) -> None:
        ascending = facts.first > self._last["transaction_ids"]
        require(ascending, "transaction_ids: these are no ids in ascending order")
        self._last["transaction_ids"] = facts.last

    def _examine_transactions(self, _: int, block: Array) -> Facts:
        inside = int(block.min()) >= 0 and int(block.max()) < self._transactions
        require(inside, "transactions: there is a number of none")
        return Facts()

    def _examine_indices(self, _: int, block: Array) -> Facts:
        require(int(block.max()) < self._vertices, "indices: there is an id of no vertex")
        return Facts()


def _examine_name_starts(_: int, block: Int64s) -> Facts:
    require(bool((block[1:] > block[:-1]).all()), "name_starts: a name has no length")
    return Facts(int(block[0]), int(block[-1]), high=len(block))


def _examine_transaction_ids(_: int, block: Int64s) -> Facts:
    require(bool((block[1:] > block[:-1]).all()), "transaction_ids: these are no ids in ascending order")
    return Facts(int(block[0]), int(block[-1]))


def _examine_edge_labels(_: int, block: npt.NDArray[np.int32]) -> Facts:
    require(int(block.min()) >= 0, "edge_labels: there is a negative one")
    return Facts()


def _join_nothing(_: int, __: Facts) -> None:
    """All is known of each block."""


def check_distinct(ids: Int64s, largest: int, space: Int64s, pool: ThreadPoolExecutor, workers: int) -> None:
    """Refuse ids that are there twice.

    Parameters
    ----------
    ids : int64[n]
        The ids.
    largest
        None is larger; 2^63 where some are negative.
    space : int64[n]
        Is overwritten: with tables of a bit for each id where there is room for one, else with sorted ids.
    pool, workers
        Threads, and the number of them to use.

    Raises
    ------
    Damage
        If there are any.
    """
    words = largest // _BITS + 1
    if words <= len(space):
        number = max(1, min(workers, len(space) // words, len(ids) // _PIECE))
        tables = space[: number * words].view(np.uint64).reshape(number, words)
        size, step = -(-len(ids) // number), -(-words // number)

        def mark(at: int) -> bool:
            tables[at] = 0
            return bool(_mark(ids[at * size : (at + 1) * size], tables[at]))

        def compare(at: int) -> bool:
            return bool(_disjoint(tables, at * step, min((at + 1) * step, words)))

        distinct = all(all(map_all(pool, workers, work, range(number))) for work in (mark, compare))
    else:
        space[:] = ids
        distinct = _sorted_distinct(space)
    require(distinct, "original_ids: two vertices have the same id")


def check_names_distinct(names: Texts, numbers: Int64s, space: Int64s, pool: ThreadPoolExecutor, workers: int) -> None:
    """Refuse two vertices with the same name.

    The hashes of the names are compared, with a random key. If two hashes are equal, further keys show whether the
    names are equal.

    Parameters
    ----------
    names
        All names.
    numbers : int64[n]
        The number of the name of each vertex.
    space : int64[n]
        Workspace, overwritten.
    pool, workers
        Threads, and the number of them to use.

    Raises
    ------
    Damage
        If two vertices have the same name.
    """
    begins, ends = names.starts[:-1], names.starts[1:]

    def hash_piece(low: int) -> None:
        here = slice(low, low + _PIECE)
        # Numbers are distinct: if each name belongs to a vertex, their order does not matter.
        rows = here if len(names) == len(numbers) else numbers[here]
        space[here] = hash_spans(names.data, begins[rows], ends[rows], key).view(np.int64)

    for _ in range(_KEYS_TRIED):
        key = np.frombuffer(os.urandom(16), np.uint64)
        map_all(pool, workers, hash_piece, range(0, len(numbers), _PIECE))
        if _sorted_distinct(space):
            return
    raise Damage("name_bytes: two vertices have the same name")


def _sorted_distinct(values: Int64s) -> bool:
    """Sort values; return whether they are distinct."""
    values.sort()
    pieces = (values[low : low + _PIECE + 1] for low in range(0, len(values), _PIECE))
    return all(bool((piece[1:] > piece[:-1]).all()) for piece in pieces)


def require(good: bool, fault: str) -> None:
    """Refuse what is not good.

    Raises
    ------
    Damage
        With the fault.
    """
    if not good:
        raise Damage(fault)


@compiled("i8[::1], i8[::1]")
def _degree_changes(block: Int64s, changes: Int64s) -> int:
    """Note where a degree is another than the one before; -1 if degrees are not positive and descending."""
    count, before = 0, np.int64(2**62)
    for at in range(block.size - 1):
        degree = block[at + 1] - block[at]
        if degree != before:
            if degree <= 0 or degree > before:
                return -1
            changes[count] = at
            count += 1
            before = degree
    return count


@compiled("i8, u8[::1], i8[::1]", "i8, i8[::1], i8[::1]")
def _ids_ascend(start: int, block: Array, first_ranks: Int64s) -> bool:
    """Whether ids ascend but where a degree begins."""
    at = first_at_least(first_ranks, start + 1)
    for i in range(1, block.size):
        begins = at < first_ranks.size and first_ranks[at] == start + i
        at += begins
        if block[i] <= block[i - 1] and not begins:
            return False
    return True


@compiled("i8, i8[::1], i8[::1], i8[::1], i8[::1]")
def _largest_split(start: int, block: Int64s, degrees: Int64s, first_ranks: Int64s, first_arcs: Int64s) -> int:
    """The most that a row has before it is split; -1 where one is split outside of it."""
    at, largest = first_above(first_ranks, start) - 1, np.int64(0)
    for i in range(block.size):
        if at + 1 < first_ranks.size and first_ranks[at + 1] == start + i:
            at += 1
        smaller = block[i] - first_arcs[at] - (start + i - first_ranks[at]) * degrees[at]
        if smaller < 0 or smaller > degrees[at]:
            return -1
        largest = max(largest, smaller)
    return int(largest)


@compiled("i8[::1], u8[::1]")
def _mark(ids: Int64s, words: npt.NDArray[np.uint64]) -> bool:
    """Set the bit of each id; returns whether none was set before."""
    distinct = True
    for at in range(ids.size):
        bit = np.uint64(1) << np.uint64(ids[at] & 63)
        word = words[ids[at] >> 6]
        distinct &= (word & bit) == 0
        words[ids[at] >> 6] = word | bit
    return distinct


@compiled("u8[:,::1], i8, i8")
def _disjoint(tables: npt.NDArray[np.uint64], first: int, last: int) -> bool:
    """Whether no bit is set in two tables, in some of their words."""
    clash = np.uint64(0)
    for word in range(first, last):
        seen = np.uint64(0)
        for table in range(tables.shape[0]):
            clash |= seen & tables[table, word]
            seen |= tables[table, word]
    return bool(clash == 0)
