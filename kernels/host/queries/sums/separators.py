"""In which order the vertices of a query are matched, and what the count of a part depends on: its separator.

Vertices are eliminated one by one; the neighbours that are left are the separator of what was eliminated below them
(a tree decomposition). The order backwards is a tree of vertices: given the images of its separator, the part below a
vertex is counted alone, and has the same count wherever these images come again (AND/OR search with caching, Dechter
and Mateescu, Artificial Intelligence 171, 2007).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

_TRIES = 16  # orders with noise that are compared
_NOISE = 1.5  # by how much the logarithm of what an elimination costs is moved in the others
_MOVES = 8  # for each vertex, of one vertex to another place in the order
_CHEAP = 5e5  # candidates: a part of so few is not worth looking for another order


@dataclass(frozen=True)
class Constraints:
    """What the vertices of a query must satisfy, with the sizes that costs are estimated from.

    Attributes
    ----------
    adjacent, distinct
        Bit set of the vertices that each must be adjacent to, and of those that it must not be the same as.
    sizes
        Logarithm of the number of candidates of each.
    densities
        Logarithm of the share of pairs of candidates that are adjacent, for each edge in both directions.
    """

    adjacent: tuple[int, ...]
    distinct: tuple[int, ...]
    sizes: tuple[float, ...]
    densities: tuple[dict[int, float], ...]


@dataclass(frozen=True)
class SeparatorTree:
    """A tree of the vertices of a query, from the one that is matched first.

    Attributes
    ----------
    order
        The vertices, each after its parent.
    parents
        The parent of each vertex; -1: it is the first.
    separators
        Bit set of the vertices above that the part below each vertex, itself included, is joined to.
    contexts
        Estimated number of images of each separator; how often the part below is counted.
    cost
        Estimated candidates that are tried.
    """

    order: tuple[int, ...]
    parents: tuple[int, ...]
    separators: tuple[int, ...]
    contexts: tuple[float, ...]
    cost: float


def bits(members: int) -> Iterator[int]:
    """Yield the members of a bit set, ascending."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def separator_tree(wanted: Constraints, known: Sequence[Sequence[int]] = ()) -> SeparatorTree:
    """Find the cheapest tree of a few; where one of the orders of elimination that are `known` is good, of very few."""
    best = min((tree_of(wanted, order) for order in [*known, _elimination(wanted, None)]), key=_cost)
    if known and best.cost < _CHEAP:
        return best
    number = len(wanted.adjacent)
    choose = random.Random(number)
    orders = [_elimination(wanted, choose) for _ in range(_TRIES)]
    orders += [_outwards(wanted, v, newest) for v in range(number) for newest in (False, True)]
    best = min(best, *(tree_of(wanted, order) for order in orders), key=_cost)
    for _ in range(_MOVES * number):
        if best.cost < _CHEAP:
            break
        order = list(reversed(best.order))
        order.insert(choose.randrange(number), order.pop(choose.randrange(number)))
        best = min(best, tree_of(wanted, order), key=_cost)
    return best


def _cost(tree: SeparatorTree) -> float:
    return tree.cost


def _outwards(wanted: Constraints, first: int, newest: bool) -> list[int]:
    """Match a vertex, then those that have the most matched neighbours, and of these the newest, or oldest, ones."""
    order, left = [first], ((1 << len(wanted.adjacent)) - 1) & ~(1 << first)
    place = {first: 0}

    def rank(v: int) -> tuple[int, int, float, int]:
        near = [place[w] for w in bits(wanted.adjacent[v] & ~left)]
        when = (max(near) if newest else -min(near)) if near else -len(place)
        return len(near), when, -wanted.sizes[v], -v

    while left:
        v = max(bits(left), key=rank)
        left ^= 1 << v
        place[v] = len(order)
        order.append(v)
    return order[::-1]


def _elimination(wanted: Constraints, choose: random.Random | None) -> list[int]:
    """Eliminate the vertex whose separator has the fewest images, itself included; with some noise."""
    near = [a | d for a, d in zip(wanted.adjacent, wanted.distinct, strict=True)]
    weight = {v: _images(wanted, near[v] | 1 << v) for v in range(len(near))}
    left, order = (1 << len(near)) - 1, []
    noise = [0.0 if choose is None else choose.uniform(0, _NOISE) for _ in near]
    while left:
        v = min(bits(left), key=lambda v: (weight[v] + noise[v], v))
        left ^= 1 << v
        order.append(v)
        around = near[v] & left
        for w in bits(around):
            near[w] = (near[w] | around) & left & ~(1 << w)
            weight[w] = _images(wanted, near[w] | 1 << w)
    return order


def _images(wanted: Constraints, members: int) -> float:
    """Return the logarithm of the estimated number of images of some vertices, with the edges between them."""
    found = 0.0
    for v in bits(members):
        found += wanted.sizes[v]
        found += sum(wanted.densities[v][w] for w in bits(wanted.adjacent[v] & members & ((1 << v) - 1)))
    return max(found, 0.0)


def tree_of(wanted: Constraints, order: Sequence[int]) -> SeparatorTree:
    """Return the tree of an order of elimination."""
    number = len(order)
    near = [a | d for a, d in zip(wanted.adjacent, wanted.distinct, strict=True)]
    left, separators = (1 << number) - 1, [0] * number
    for v in order:
        left ^= 1 << v
        around = separators[v] = near[v] & left
        for w in bits(around):
            near[w] |= around & ~(1 << w)
    place = {v: at for at, v in enumerate(order)}
    first = order[-1]
    parents = [min(bits(around), key=place.__getitem__) if around else first for around in separators]
    parents[first] = -1
    contexts, tried, cost = [0.0] * number, [0.0] * number, 0.0
    for v in reversed(order):
        separator, parent = separators[v], parents[v]
        inner = wanted.sizes[v] + sum(wanted.densities[v][w] for w in bits(wanted.adjacent[v] & separator))
        contexts[v] = 0.0 if parent < 0 else min(_images(wanted, separator), tried[parent])
        tried[v] = max(contexts[v] + inner, contexts[v] + log(0.5), 0.0)
        cost += 2.718281828459045 ** min(tried[v], 600.0) + 2.718281828459045 ** min(contexts[v], 600.0)
    return SeparatorTree(tuple(reversed(order)), tuple(parents), tuple(separators), tuple(contexts), cost)
