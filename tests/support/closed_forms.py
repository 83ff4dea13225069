"""Counts by formulas: graphs whose vertices fall into few classes, and the maps of any pattern into them.

Two vertices of a class look alike from outside it: every two classes are joined completely or not at all. So a map of a
pattern is a class for each of its vertices, and a placement of the vertices of every class inside it. Placements are
falling factorials, and all numbers are Python integers. Nothing here uses the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import comb, factorial, prod

import naive
import naive_orbits
import numpy as np
from numpy.typing import NDArray

Pairs = frozenset[frozenset[int]]
ANY = -1


@dataclass(frozen=True)
class Blocks:
    """A class of blocks of one size: whether two vertices of a block are adjacent, and two of different blocks."""

    number: int
    size: int = 1
    inside: bool = False
    between: bool = False
    label: int = 0

    @property
    def vertices(self) -> int:
        return self.number * self.size

    @property
    def arcs(self) -> int:
        near = self.inside * (self.size - 1) + self.between * self.size * (self.number - 1)
        return self.vertices * near

    def edges(self) -> NDArray[np.int64]:
        one, other = np.triu_indices(self.vertices, 1) if self.between else self._within()
        same = one // self.size == other // self.size
        kept = np.where(same, self.inside, self.between)
        return np.stack([one[kept], other[kept]], 1)

    def _within(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        one, other = np.triu_indices(self.size, 1)
        first = np.arange(self.number)[:, None] * self.size
        return (first + one).ravel(), (first + other).ravel()

    def cliques(self, most: int) -> list[int]:
        """Sets of 0 to `most` vertices that are pairwise adjacent."""
        if self.inside and self.between:
            return [comb(self.vertices, j) for j in range(most + 1)]
        if self.between:
            return [comb(self.number, j) * self.size**j for j in range(most + 1)]
        if self.inside:
            return [1] + [self.number * comb(self.size, j) for j in range(1, most + 1)]
        return [1, self.vertices, *[0] * most][: most + 1]

    def maximal(self) -> tuple[int, int]:
        """The size of the maximal cliques, all of one size, and their number."""
        if self.inside and self.between:
            return self.vertices, 1
        if self.between:
            return self.number, self.size**self.number
        return (self.size, self.number) if self.inside else (1, self.vertices)


@dataclass(frozen=True)
class Rim:
    """A class that is a path, or a cycle: longer than patterns are."""

    length: int
    closed: bool
    label: int = 0

    @property
    def vertices(self) -> int:
        return self.length

    @property
    def arcs(self) -> int:
        return 2 * (self.length - (not self.closed))

    def edges(self) -> NDArray[np.int64]:
        one = np.arange(self.length - (not self.closed))
        return np.stack([one, (one + 1) % self.length], 1)

    def cliques(self, most: int) -> list[int]:
        return [1, self.length, self.arcs // 2, *[0] * most][: most + 1]

    def maximal(self) -> tuple[int, int]:
        return 2, self.arcs // 2


Class = Blocks | Rim


@dataclass(frozen=True)
class BlowUp:
    """A graph of classes, of which some pairs are joined completely; several disjoint copies of it."""

    name: str
    classes: tuple[Class, ...]
    joined: Pairs
    copies: int = 1

    @property
    def starts(self) -> list[int]:
        """The first vertex of each class of the first copy, and the first vertex of the second copy."""
        return [sum(one.vertices for one in self.classes[:i]) for i in range(len(self.classes) + 1)]

    @property
    def num_edges(self) -> int:
        """The number of edges of all copies."""
        between = sum(prod(self.classes[i].vertices for i in pair) for pair in self.joined)
        return self.copies * (between + sum(one.arcs for one in self.classes) // 2)

    def edges(self) -> NDArray[np.int64]:
        """Every edge once: int64[edges, 2]."""
        starts = self.starts
        parts = [one.edges() + start for one, start in zip(self.classes, starts, strict=False)]
        for i, j in map(sorted, self.joined):
            a, b = self.classes[i].vertices, self.classes[j].vertices
            one, other = np.divmod(np.arange(a * b), b)
            parts.append(np.stack([one + starts[i], other + starts[j]], 1))
        whole = np.concatenate(parts)
        shifts = np.arange(self.copies)[:, None, None] * starts[-1]
        return (whole[None] + shifts).reshape(-1, 2)

    def labels(self) -> NDArray[np.int64]:
        """The label of every vertex."""
        one = np.repeat([cls.label for cls in self.classes], [cls.vertices for cls in self.classes])
        return np.tile(one, self.copies)

    def times(self, copies: int) -> BlowUp:
        """A number of disjoint copies."""
        return replace(self, name=f"{copies} x {self.name}", copies=copies)


def maps(graph: BlowUp, query: naive.Query, fixed: Mapping[int, int] | None = None) -> int:
    """Injective maps of a connected pattern; `fixed`: the classes of some of its vertices."""
    held = tuple(sorted((fixed or {}).items()))
    return graph.copies * _maps(graph.classes, graph.joined, query, held)


@cache
def _maps(classes: tuple[Class, ...], joined: Pairs, query: naive.Query, held: tuple[tuple[int, int], ...]) -> int:
    fixed = dict(held)
    near = _near(query)

    def fits(chosen: list[int], cls: int) -> bool:
        v = len(chosen)
        if query.labels is not None and query.labels[v] not in (ANY, classes[cls].label):
            return False
        if fixed.get(v, cls) != cls:
            return False
        for u, other in enumerate(chosen):
            if other == cls:
                continue
            adjacent = frozenset((other, cls)) in joined
            if u in near[v] if not adjacent else query.induced and u not in near[v]:
                return False
        return True

    def grow(chosen: list[int]) -> Iterator[list[int]]:
        if len(chosen) == query.size:
            yield chosen
            return
        for cls in range(len(classes)):
            if fits(chosen, cls):
                yield from grow([*chosen, cls])

    found = 0
    for chosen in grow([]):
        ways = 1
        for number, cls in enumerate(classes):
            placed = tuple(v for v, one in enumerate(chosen) if one == number)
            if placed and ways:
                inner = tuple((i, j) for i, j in combinations(range(len(placed)), 2) if placed[j] in near[placed[i]])
                ways *= _placements(cls, len(placed), inner, query.induced)
        found += ways
    return found


def _near(query: naive.Query) -> list[set[int]]:
    near: list[set[int]] = [set() for _ in range(query.size)]
    for u, v in query.edges:
        near[u].add(v)
        near[v].add(u)
    return near


@cache
def _placements(cls: Class, size: int, edges: tuple[tuple[int, int], ...], induced: bool) -> int:
    """Injective maps of a graph, connected or not, into a class."""
    near = _near(naive.Query(size, edges))
    if isinstance(cls, Rim):
        return _on_rim(cls, near, induced)

    def wrong(v: int, others: list[int], adjacent: bool) -> bool:
        return any((u in near[v]) if not adjacent else induced and u not in near[v] for u in others)

    def place(v: int, blocks: list[list[int]]) -> int:
        if v == size:
            return 1
        found = 0
        for at, block in enumerate(blocks):
            rest = [u for other in blocks if other is not block for u in other]
            if len(block) < cls.size and not wrong(v, block, cls.inside) and not wrong(v, rest, cls.between):
                wider = [*blocks[:at], [*block, v], *blocks[at + 1 :]]
                found += (cls.size - len(block)) * place(v + 1, wider)
        if len(blocks) < cls.number and not wrong(v, [u for block in blocks for u in block], cls.between):
            found += (cls.number - len(blocks)) * cls.size * place(v + 1, [*blocks, [v]])
        return found

    return place(0, [])


def _on_rim(rim: Rim, near: list[set[int]], induced: bool) -> int:
    """Maps of paths to stretches of a rim: an order of the paths, a direction for each, and the gaps between them."""
    if any(len(around) > 2 for around in near):
        return 0
    lengths, seen = [], set[int]()
    for v in range(len(near)):
        if v in seen:
            continue
        part, edge = {v}, [v]
        while edge:
            edge = [u for u in near[edge.pop()] if u not in part and not part.add(u)] + edge  # type: ignore[func-returns-value]
        if sum(len(near[u]) for u in part) != 2 * (len(part) - 1):
            return 0  # a cycle
        seen |= part
        lengths.append(len(part))
    count, left = len(lengths), rim.length - len(near)
    turned = 2 ** sum(1 for length in lengths if length > 1)
    if rim.closed:  # the first path anywhere, the others in the order after it, and a gap after each
        gaps = comb(left - 1, count - 1) if induced else comb(left + count - 1, count - 1)
        return rim.length * factorial(count - 1) * turned * gaps
    return factorial(count) * turned * comb(left + 1 if induced else left + count, count)


def embeddings(graph: BlowUp, query: naive.Query) -> int:
    """Distinct subgraphs that are like a pattern."""
    return maps(graph, query) // len(automorphisms(query))


@cache
def automorphisms(query: naive.Query) -> list[tuple[int, ...]]:
    """The automorphisms of a pattern."""
    return naive.automorphisms(query)


def at_vertices(graph: BlowUp, query: naive.Query, root: int) -> list[int]:
    """Maps that send `root` to a given vertex, for a vertex of each class (no class may be a path)."""
    return [maps(replace(graph, copies=1), query, {root: cls}) // one.vertices for cls, one in enumerate(graph.classes)]


def at_edges(graph: BlowUp, query: naive.Query) -> dict[tuple[int, int], int]:
    """Subgraphs like a pattern that contain a given edge, by the classes of its ends, the smaller class first."""
    one = replace(graph, copies=1)
    found = {}
    pairs = [tuple(sorted(pair)) for pair in graph.joined] + [(i, i) for i, cls in enumerate(graph.classes) if cls.arcs]
    for c, d in pairs:
        arcs = graph.classes[c].arcs if c == d else graph.classes[c].vertices * graph.classes[d].vertices
        both = [*query.edges, *((v, u) for u, v in query.edges)]
        there = sum(maps(one, query, {u: c, v: d}) for u, v in both)
        found[c, d] = there // arcs // len(automorphisms(query))
    return found


def orbits(graph: BlowUp, k: int) -> list[list[int]]:
    """How often a vertex of each class stands in each orbit of the graphlets of up to k vertices."""
    rows: list[list[int]] = [[] for _ in graph.classes]
    for orbit, (size, edges) in enumerate(naive_orbits.figure()):
        if size > k:
            continue
        query = naive.Query(size, edges, None, True)
        alike = sum(1 for one in naive_orbits.orbits_of(edges, size) if one == orbit)
        for row, found in zip(rows, at_vertices(graph, query, 0), strict=True):
            row.append(found * alike // len(automorphisms(query)))
    return rows


def _cliques_of_classes(graph: BlowUp) -> Iterator[tuple[int, ...]]:
    """Sets of classes that are pairwise joined, the empty one as well."""
    for size in range(len(graph.classes) + 1):
        for chosen in combinations(range(len(graph.classes)), size):
            if all(frozenset(pair) in graph.joined for pair in combinations(chosen, 2)):
                yield chosen


def cliques(graph: BlowUp, most: int) -> list[int]:
    """Cliques of 1 to `most` vertices."""
    return [graph.copies * sum(by_class) for by_class in zip(*_class_cliques(graph, most), strict=True)]


def clique_vertices(graph: BlowUp, most: int) -> list[list[int]]:
    """Cliques of 1 to `most` vertices that contain a given vertex, for a vertex of each class."""
    found = [[0] * most for _ in graph.classes]
    for chosen in _cliques_of_classes(graph):
        for cls in chosen:
            own = [j * ways for j, ways in enumerate(graph.classes[cls].cliques(most))]
            for size, ways in enumerate(_times([own, *(_some(graph, c, most) for c in chosen if c != cls)], most)[1:]):
                found[cls][size] += ways
    return [[ways // cls.vertices for ways in row] for cls, row in zip(graph.classes, found, strict=True)]


def _class_cliques(graph: BlowUp, most: int) -> list[list[int]]:
    return [_times([_some(graph, c, most) for c in chosen], most)[1:] for chosen in _cliques_of_classes(graph)]


def _some(graph: BlowUp, cls: int, most: int) -> list[int]:
    """Cliques of a class by size, but the empty one."""
    return [0, *graph.classes[cls].cliques(most)[1:]]


def _times(factors: list[list[int]], most: int) -> list[int]:
    product = [1] + [0] * most
    for factor in factors:
        product = [sum(product[i] * factor[size - i] for i in range(size + 1)) for size in range(most + 1)]
    return product


def maximal_cliques(graph: BlowUp) -> dict[int, int]:
    """The number of maximal cliques by their size."""
    sets = [set(chosen) for chosen in _cliques_of_classes(graph)]
    found: dict[int, int] = {}
    for chosen in sets:
        if not any(chosen < other for other in sets):
            sizes = [graph.classes[c].maximal() for c in chosen]
            size = sum(one for one, _ in sizes)
            found[size] = found.get(size, 0) + graph.copies * prod(ways for _, ways in sizes)
    return found
