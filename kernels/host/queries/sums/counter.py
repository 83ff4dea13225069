"""The terms of a query as arrays, and the workspace in which one worker adds them up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.queries.candidate_space import CandidateSpace, Released, Reserve
from longwall.kernels.host.queries.sums.kernel import add_up
from longwall.kernels.host.queries.sums.separators import bits
from longwall.kernels.host.queries.sums.terms import TERM_COST, Coincidences, Term, plan_terms

CACHE_BYTES = 64 << 20
"""The most that a worker's cache takes."""
_VALUE_BYTES = 16  # of a value in the cache, beside the images
_ROOM = 16.0  # places for each image of a separator that is expected: there may be more
_FULL = 1.5  # places for each that there can be
_LARGEST = 40.0  # logarithms above this are not distinguished
_IN_ALL = 2


class TermArrays(NamedTuple):
    """A term as the kernel reads it; see :func:`longwall.kernels.host.queries.sums.kernel.add_up`."""

    parents: NDArray[np.int64]
    con_ptr: NDArray[np.int64]
    con_var: NDArray[np.int64]
    con_base: NDArray[np.int64]
    not_ptr: NDArray[np.int64]
    not_var: NDArray[np.int64]
    child_ptr: NDArray[np.int64]
    child_var: NDArray[np.int64]
    key_ptr: NDArray[np.int64]
    key_var: NDArray[np.int64]
    key_bits: NDArray[np.uint64]
    cache_first: NDArray[np.int64]
    cache_mask: NDArray[np.int64]
    key_first: NDArray[np.int64]
    all_first: NDArray[np.int64]
    all_last: NDArray[np.int64]


@dataclass(frozen=True)
class _Ready:
    arrays: TermArrays
    coefficient: int
    capacities: NDArray[np.int64]
    cached: int
    """Places of the cache."""
    keyed: int
    """Words of the keys of all places."""
    arena: int


class QuerySum:
    """What all workers read that add up the matches of a query.

    Parameters
    ----------
    space
        The candidates of the query, which has a match.
    reserve
        Takes bytes of the host's budget.
    cache_bytes
        The most that the cache of each worker takes.

    Attributes
    ----------
    terms
        The terms.
    roots
        Number of roots: those of all terms, one after the other.
    """

    def __init__(self, space: CandidateSpace, reserve: Reserve, cache_bytes: int = CACHE_BYTES):
        assert space.lists is not None
        self.space = space
        self.terms = plan_terms(coincidences(space), space.query.size)
        unbound = sorted({one for term in self.terms for one in _unbound(term)})
        sizes = [_size(space, members) for members in unbound]
        self._held: Released = reserve(4 * sum(sizes) + 4096 * len(self.terms), "the terms of a query")
        begins = dict(zip(unbound, accumulate(sizes, initial=0), strict=False))
        self.everything = np.empty(max(sum(sizes), 1), np.int32)
        for members, size in zip(unbound, sizes, strict=True):
            wanted = np.uint64(members)
            places = np.flatnonzero(space.lists.kinds & wanted == wanted)
            self.everything[begins[members] : begins[members] + size] = places
        self.ready = [_arrays(term, space, begins, cache_bytes) for term in self.terms]
        roots = [int(one.arrays.all_last[0] - one.arrays.all_first[0]) for one in self.ready]
        self.firsts = [0, *accumulate(roots)]
        self.roots = self.firsts[-1]

    @property
    def cost(self) -> float:
        """Estimated number of candidates that are tried."""
        return sum(term.tree.cost + TERM_COST for term in self.terms)

    @property
    def most(self) -> int:
        """Bound the sum of the absolute values of all terms: each vertex may be mapped to any of its candidates."""
        sizes = [prod(_size(self.space, members) for members in term.classes) for term in self.terms]
        return sum(abs(term.coefficient) * size for term, size in zip(self.terms, sizes, strict=True))

    def close(self) -> None:
        """Give the memory back."""
        self._held.release()


class QueryAdder:
    """Adds up the terms below some roots.

    Parameters
    ----------
    sums
        The terms.
    modulus
        What the sum is modulo; 0: 2**64.
    """

    def __init__(self, sums: QuerySum, modulus: int):
        number, ready = sums.space.query.size, sums.ready
        self._sums, self._modulus = sums, np.uint64(modulus)
        self._numbers = np.zeros((6, number), np.int64)
        self._totals = np.zeros((2, number), np.uint64), np.zeros((2, number), np.float64)
        self._state = np.array([-1], np.int64)
        self._key = np.empty(number * number, np.int32)
        self._arena = np.empty(max(one.arena for one in ready) + 1, np.int32)
        self._cache = (
            np.zeros(max(one.keyed for one in ready) + 1, np.int32),
            np.empty(max(one.cached for one in ready) + 1, np.uint64),
            np.empty(max(one.cached for one in ready) + 1, np.float64),
        )
        self._term, self._at, self._last, self._before = -1, 0, 0, -1
        self._epoch = np.int32(-1)

    def begin(self, first: int, last: int) -> None:
        """Begin with the roots `first` to `last` - 1."""
        self._at, self._last, self._term = first, last, -1

    @property
    def over(self) -> bool:
        """Whether everything below the roots was added up."""
        return self._term < 0 and self._at >= self._last

    def advance(self, steps: int) -> tuple[int, float]:
        """Go on for a number of candidates; return what was completed meanwhile, and the sum of its absolute values."""
        if self._term < 0:
            self._next_term()
        one, space = self._sums.ready[self._term], self._sums.space
        lists = space.lists
        assert lists is not None
        values, cursor, stop, source, child_at, slots = self._numbers
        (sums, parts), (large_sums, large_parts) = self._totals
        add_up(
            *one.arrays, self._sums.everything, one.capacities, lists.starts, lists.lists, lists.kinds, self._state,
            values, cursor, stop, source, child_at, slots, sums, parts, large_sums, large_parts, self._key, self._arena,
            *self._cache, self._epoch, self._modulus, steps,
        )  # fmt: skip
        if self._state[0] >= 0:
            return 0, 0.0
        self._term = -1
        return one.coefficient * int(sums[0]), abs(one.coefficient) * float(large_sums[0])

    def _next_term(self) -> None:
        """Begin with the roots that belong to the same term."""
        firsts = self._sums.firsts
        self._term = bisect_right(firsts, self._at) - 1
        one = self._sums.ready[self._term]
        begin = self._at - firsts[self._term] + int(one.arrays.all_first[0])
        end = min(self._last, firsts[self._term + 1])
        values, cursor, stop, source, child_at, _ = self._numbers
        values[:] = -1
        cursor[0], stop[0], source[0], child_at[0] = begin, begin + end - self._at, _IN_ALL, 0
        self._totals[0][0, 0], self._totals[1][0, 0] = 0, 0.0
        self._state[0] = 0
        if self._before != self._term:
            self._epoch, self._before = np.int32(self._epoch - 1), self._term
        self._at = end


def bytes_for(sums: QuerySum) -> int:
    """Return the bytes of a worker's workspace."""
    number = sums.space.query.size
    keyed, cached = max(one.keyed for one in sums.ready), max(one.cached for one in sums.ready)
    return (
        4 * (keyed + max(one.arena for one in sums.ready)) + _VALUE_BYTES * cached + 4 * number * number + 128 * number
    )


def coincidences(space: CandidateSpace) -> Coincidences:
    """Return which query vertices may be matched to the same vertex, given the candidates of a query with a match."""
    lists, query = space.lists, space.query
    assert lists is not None
    joined = np.zeros((query.size, query.size))
    for u, near in enumerate(query.adjacent):
        for w in bits(near):
            row, number = int(lists.row_base[u, w]), lists.numbers[u]
            joined[u, w] = lists.starts[row + number] - lists.starts[row]
    masks, numbers = np.unique(lists.kinds, return_counts=True)
    return Coincidences(query.adjacent, masks, numbers, joined)


def _size(space: CandidateSpace, members: int) -> int:
    assert space.lists is not None
    wanted = np.uint64(members)
    return int(np.count_nonzero(space.lists.kinds & wanted == wanted))


def _unbound(term: Term) -> list[int]:
    """Return the classes without an adjacent one above."""
    above, found = 0, []
    for v in term.tree.order:
        if not term.constraints.adjacent[v] & above:
            found.append(term.classes[v])
        above |= 1 << v
    return found


def _arrays(term: Term, space: CandidateSpace, begins: dict[int, int], cache_bytes: int) -> _Ready:
    """Write a term as arrays, its vertices in the order of its tree."""
    tree, wanted, lists = term.tree, term.constraints, space.lists
    assert lists is not None
    number_of = {v: at for at, v in enumerate(tree.order)}
    rows = [_constraints(term, space, v, number_of) for v in tree.order]
    keys = _keys(term, number_of)
    children: list[list[int]] = [[] for _ in tree.order]
    for v in tree.order[1:]:
        children[number_of[tree.parents[v]]].append(number_of[v])
    distinct = [_above(wanted.distinct[v], v, number_of) for v in tree.order]
    capacities, arena = [], 0
    for row in rows:
        capacities.append(arena)
        arena += min((longest for _, _, longest in row), default=0) if len(row) > 1 else 0
    cache, keyed, cached = _cache(term, keys, rows, distinct, children, cache_bytes)
    first = [0 if row else begins[term.classes[v]] for v, row in zip(tree.order, rows, strict=True)]
    sizes = [0 if row else _size(space, term.classes[v]) for v, row in zip(tree.order, rows, strict=True)]
    arrays = TermArrays(
        _ints([number_of.get(tree.parents[v], -1) for v in tree.order]),
        _ends(rows),
        _ints([var for row in rows for var, _, _ in row]),
        _ints([base for row in rows for _, base, _ in row]),
        _ends(distinct),
        _ints([w for one in distinct for w in one]),
        _ends(children),
        _ints([w for one in children for w in one]),
        _ends(keys),
        _ints([w for one in keys for w, _ in one]),
        np.array([some for one in keys for _, some in one] or [0], np.uint64),
        *cache,
        _ints(first),
        _ints([a + b for a, b in zip(first, sizes, strict=True)]),
    )
    return _Ready(arrays, term.coefficient, _ints(capacities), cached, keyed, arena)


def _constraints(term: Term, space: CandidateSpace, v: int, number_of: dict[int, int]) -> list[tuple[int, int, int]]:
    """Return the rows that the candidates of a class have in common: whose image, first row, and the longest."""
    lists, found = space.lists, []
    assert lists is not None
    for w in _above(term.constraints.adjacent[v], v, number_of):
        for a in bits(term.classes[term.tree.order[w]]):
            for b in bits(term.classes[v] & space.query.adjacent[a]):
                found.append((w, int(lists.row_base[a, b] - lists.first_of[a]), int(lists.longest[a, b])))
    return found


def _above(members: int, v: int, number_of: dict[int, int]) -> list[int]:
    """Return the numbers of those of some vertices that come before v."""
    return sorted(number_of[w] for w in bits(members) if number_of[w] < number_of[v])


def _keys(term: Term, number_of: dict[int, int]) -> list[list[tuple[int, int]]]:
    """Return whose images each part depends on, and the query vertices that an image must be to matter; 0: any."""
    tree, wanted = term.tree, term.constraints
    below = [1 << v for v in range(len(tree.order))]
    for v in reversed(tree.order[1:]):
        below[tree.parents[v]] |= below[v]
    found = []
    for v in tree.order:
        key = []
        for w in sorted(bits(tree.separators[v]), key=number_of.__getitem__):
            some = 0
            if not wanted.adjacent[w] & below[v]:
                for rival in bits(wanted.distinct[w] & below[v]):
                    some |= term.classes[rival]
            key.append((number_of[w], some))
        found.append(key)
    return found


def _cache(
    term: Term,
    keys: Sequence[Sequence[tuple[int, int]]],
    rows: Sequence[Sequence[Any]],
    distinct: Sequence[Sequence[int]],
    children: Sequence[Sequence[int]],
    cache_bytes: int,
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], int, int]:
    """Divide the cache: places for as many images of each separator as are expected, where they may come again."""
    tree = term.tree
    number_of = {v: at for at, v in enumerate(tree.order)}
    places: list[int] = []
    for at, v in enumerate(tree.order):
        plain = not children[at] and len(rows[at]) == 1 and not distinct[at]
        parent = number_of[tree.parents[v]] if at else -1
        again = at > 0 and not plain and not {*keys[parent], (parent, 0)} <= set(keys[at])
        most = sum(term.constraints.sizes[w] for w in bits(tree.separators[v]))
        expected = min(_ROOM * exp(min(tree.contexts[v], _LARGEST)), _FULL * exp(min(most, _LARGEST)))
        places.append(1 << int(expected).bit_length() if again else 0)
    bytes_of = [4 * len(key) + 4 + _VALUE_BYTES for key in keys]
    while sum(map(int.__mul__, places, bytes_of)) > cache_bytes:
        largest = max(range(len(places)), key=lambda at: places[at] * bytes_of[at])
        places[largest] //= 2
    firsts = [0, *accumulate(places)]
    keyed = [0, *accumulate(many * (len(key) + 1) for many, key in zip(places, keys, strict=True))]
    return (_ints(firsts[:-1]), _ints([many - 1 for many in places]), _ints(keyed[:-1])), keyed[-1], firsts[-1]


def _ints(numbers: Sequence[int]) -> NDArray[np.int64]:
    return np.array(numbers or [0], np.int64)


def _ends(lists: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    return _ints([0, *accumulate(map(len, lists))])
