"""Vertices of a query that may be matched to the same one: kept apart while matching, or by inclusion-exclusion.

The number of matches in which u and w are distinct is the number of those in which they need not be, less the number
of those in which they are the same vertex: a smaller query. Every pair that is counted so is no longer a constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.queries.sums.separators import Constraints, SeparatorTree, bits, separator_tree, tree_of

_MOST_TERMS = 1 << 12  # after which all other pairs are kept apart while matching
_BETWEEN = 8  # times as many between two vertices: those that differ by copies are added up after each vertex
_ORDERS = 2  # the last good ones, which are tried for each term
_WORTH = 2.0  # times the work for one pair less to expand, which would double what is counted at worst
TERM_COST = 300.0  # candidates that could be tried meanwhile


@dataclass(frozen=True)
class Term:
    """A count that is added to the sum.

    Attributes
    ----------
    coefficient
        What it is multiplied by.
    classes
        The vertices of its query: bit sets of vertices of the whole query, which are the same one.
    constraints
        What these must satisfy.
    tree
        In which order they are matched.
    """

    coefficient: int
    classes: tuple[int, ...]
    constraints: Constraints
    tree: SeparatorTree


class Coincidences:
    """Which vertices of a query may be matched to the same one, and how large counts are then.

    Parameters
    ----------
    adjacent
        Bit set of the neighbours of each query vertex.
    masks, numbers : uint64[m], int64[m]
        The distinct sets of query vertices that vertices of the graph may be, and how many vertices have each.
    joined : float64[k, k]
        Number of pairs of candidates that are adjacent, for each edge of the query.
    """

    def __init__(
        self,
        adjacent: Sequence[int],
        masks: NDArray[np.uint64],
        numbers: NDArray[np.int64],
        joined: NDArray[np.float64],
    ):
        self._adjacent, self._masks, self._numbers = adjacent, masks, numbers
        self._known: dict[int, int] = {}
        self._possible: dict[int, bool] = {}
        self._joined = joined

    def size(self, members: int) -> int:
        """Return the number of vertices of the graph that may be each of some query vertices."""
        if members not in self._known:
            wanted = np.uint64(members)
            self._known[members] = int(self._numbers[self._masks & wanted == wanted].sum())
        return self._known[members]

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of query vertices that may be the same vertex: they are not adjacent."""
        number = len(self._adjacent)
        return [
            (u, w)
            for w in range(number)
            for u in range(w)
            if not self._adjacent[u] >> w & 1 and self.size(1 << u | 1 << w)
        ]

    def may_be_one(self, members: int) -> bool:
        """Whether some query vertices may all be the same vertex of the graph."""
        if members not in self._possible:
            apart = not any(self._adjacent[v] & members for v in bits(members))
            self._possible[members] = apart and self.size(members) > 0
        return self._possible[members]

    def copies(self, kept: Sequence[tuple[int, int]]) -> list[int]:
        """Return bit sets of query vertices that stand for each other.

        Such vertices have the same neighbours and the same candidates, and are in no pair that is kept apart.
        """
        bound = sum(1 << v for v in {v for pair in kept for v in pair})
        alike: dict[tuple[int, tuple[bool, ...]], int] = {}
        for v, near in enumerate(self._adjacent):
            if not bound >> v & 1:
                key = near, tuple((self._masks >> np.uint64(v) & np.uint64(1)).astype(bool).tolist())
                alike[key] = alike.get(key, 0) | 1 << v
        return [members for members in alike.values() if members & (members - 1)]

    def constraints(self, classes: Sequence[int], kept: Sequence[tuple[int, int]]) -> Constraints | None:
        """Return what the vertices of a smaller query must satisfy; None: it has no match.

        Parameters
        ----------
        classes
            Its vertices.
        kept
            Pairs of vertices of the whole query that must be distinct.
        """
        class_of = {v: at for at, members in enumerate(classes) for v in bits(members)}
        sizes = [self.size(members) for members in classes]
        adjacent, distinct = [0] * len(classes), [0] * len(classes)
        densities: list[dict[int, float]] = [{} for _ in classes]
        for u, near in enumerate(self._adjacent):
            a = class_of[u]
            for w in bits(near):
                b = class_of[w]
                if a == b:
                    return None
                adjacent[a] |= 1 << b
                density = log(max(self._joined[u, w], 0.5) / (self.size(1 << u) * self.size(1 << w)))
                densities[a][b] = max(densities[a].get(b, -99.0), density)
        for u, w in kept:
            a, b = class_of[u], class_of[w]
            if a == b:
                return None
            if not adjacent[a] >> b & 1 and self.size(classes[a] | classes[b]):
                distinct[a] |= 1 << b
                distinct[b] |= 1 << a
        if not all(sizes):
            return None
        logs = tuple(log(size) for size in sizes)
        return Constraints(tuple(adjacent), tuple(distinct), logs, tuple(densities))


def plan_terms(known: Coincidences, number: int) -> list[Term]:
    """Choose which vertices are kept apart while matching; the others are by inclusion-exclusion.

    Parameters
    ----------
    known
        Which may be the same.
    number
        Number of query vertices.

    Returns
    -------
    list of Term
        The sum of their counts is that of the query. The cost of all is estimated by that of the first.
    """
    alone = tuple(1 << v for v in range(number))
    pairs = known.pairs()
    free = known.constraints(alone, ())
    assert free is not None
    tree = separator_tree(free)
    kept: list[tuple[int, int]] = []
    expanded: list[tuple[int, int]] = []
    wanted, current = free, tree

    order = tuple(reversed(tree.order))

    def price(pair: tuple[int, int]) -> tuple[float, tuple[int, int]]:
        return tree_of(_with(free, pair), order).cost, pair

    for _, pair in sorted(map(price, pairs)):
        more = _with(wanted, pair)
        found = min(tree_of(more, current.order[::-1]), tree_of(more, order), key=lambda one: one.cost)
        if found.cost <= _WORTH * current.cost + TERM_COST:
            kept.append(pair)
            wanted, current = more, found
        else:
            expanded.append(pair)
    return _expand(known, alone, kept, expanded, current)


def _with(wanted: Constraints, pair: tuple[int, int]) -> Constraints:
    """Add a pair of distinct vertices."""
    u, w = pair
    distinct = list(wanted.distinct)
    distinct[u] |= 1 << w
    distinct[w] |= 1 << u
    return replace(wanted, distinct=tuple(distinct))


def _expand(
    known: Coincidences,
    alone: tuple[int, ...],
    kept: Sequence[tuple[int, int]],
    expanded: Sequence[tuple[int, int]],
    tree: SeparatorTree,
) -> list[Term]:
    """Write the count as terms: each pair that is expanded subtracts what has its vertices in one class."""
    copies = known.copies(kept)
    found, left = _smaller(known, alone, expanded, copies)
    if left and copies:
        found, left = _smaller(known, alone, expanded, [])
    kept = [*kept, *left]
    found = _without_copies(found, known.copies(kept))
    places = [_places(alone, tree)]
    terms = []
    for classes, coefficient in found.items():
        wanted = known.constraints(classes, kept)
        if wanted is not None:  # where vertices that are one must be distinct, there is no match
            orders = [_order(classes, place, end) for place in places[-_ORDERS:] for end in (min, max)]
            best = separator_tree(wanted, orders)
            if best.order[::-1] not in map(tuple, orders):
                places.append(_places(classes, best))
            terms.append(Term(coefficient, classes, wanted, best))
    return terms


def _smaller(
    known: Coincidences, alone: tuple[int, ...], expanded: Sequence[tuple[int, int]], copies: Sequence[int]
) -> tuple[dict[tuple[int, ...], int], Sequence[tuple[int, int]]]:
    """Return the smaller queries with their coefficients, and the pairs that are left where these are too many.

    With copies, the pairs are taken vertex by vertex. After each vertex, those that were taken before can be exchanged
    with their copies there: the pairs that are left have each of them with the same vertices.
    """
    rank = list(range(len(alone)))
    if copies:
        first = {v: min(bits(members)) for members in copies for v in bits(members)}
        for place, v in enumerate(sorted(rank, key=lambda v: (first.get(v, v), v))):
            rank[v] = place
        expanded = sorted(expanded, key=lambda pair: sorted((rank[pair[0]], rank[pair[1]]), reverse=True))
    found: dict[tuple[int, ...], int] = {alone: 1}
    last, most = -1, _MOST_TERMS
    for at, pair in enumerate(expanded):
        place = max(rank[pair[0]], rank[pair[1]])
        if copies and place != last:
            taken, last = sum(1 << v for v, own in enumerate(rank) if own < place), place
            found = _without_copies(found, [members & taken for members in copies])
            most = _MOST_TERMS
        if len(found) > most:
            return found, expanded[at:]
        most = _MOST_TERMS * (_BETWEEN if copies else 1)
        for classes, coefficient in list(found.items()):
            merged = _merge(classes, pair)
            if all(map(known.may_be_one, merged)):
                found[merged] = found.get(merged, 0) - coefficient
                if not found[merged]:
                    del found[merged]
    return found, ()


def _without_copies(found: dict[tuple[int, ...], int], copies: Sequence[int]) -> dict[tuple[int, ...], int]:
    """Add up the coefficients of smaller queries that differ only by query vertices that stand for each other."""
    summed: dict[tuple[int, ...], int] = {}
    for classes, coefficient in found.items():
        same = _in_order(classes, copies)
        summed[same] = summed.get(same, 0) + coefficient
    return {classes: coefficient for classes, coefficient in summed.items() if coefficient}


def _in_order(classes: tuple[int, ...], copies: Sequence[int]) -> tuple[int, ...]:
    """Put query vertices that stand for each other into the classes in one order, as many into each as there were."""
    others = ~sum(copies)
    kinds = sorted((one & others, tuple((one & members).bit_count() for members in copies)) for one in classes)
    left, found = [bits(members) for members in copies], []
    for rest, numbers in kinds:
        found.append(
            rest | sum(1 << next(some) for some, number in zip(left, numbers, strict=True) for _ in range(number))
        )
    return tuple(sorted(found))


def _places(classes: Sequence[int], tree: SeparatorTree) -> list[int]:
    """Return where each vertex of the whole query is in the order of elimination."""
    place = {v: at for at, v in enumerate(reversed(tree.order))}
    by_vertex = {v: place[at] for at, members in enumerate(classes) for v in bits(members)}
    return [by_vertex[v] for v in range(len(by_vertex))]


def _order(classes: Sequence[int], place: Sequence[int], end: Callable[[Iterable[int]], int]) -> list[int]:
    """Return an order of elimination of a smaller query: each class where its first, or last, vertex was."""
    keys = [end(place[v] for v in bits(one)) for one in classes]
    return sorted(range(len(classes)), key=keys.__getitem__)


def _merge(classes: tuple[int, ...], pair: tuple[int, int]) -> tuple[int, ...]:
    """Make one class of two; where the pair is in one already nothing is left of the count, less itself."""
    first, second = (next(one for one in classes if one >> v & 1) for v in pair)
    return tuple(sorted([*(one for one in classes if one not in (first, second)), first | second]))
