"""Graphlets of 2 to 5 vertices and their 73 orbits, and the linear maps between three ways to count them.

Graphlets G0 to G29 and orbits 0 to 72 have the numbers of Przulj (Bioinformatics 2007), which ORCA has, too (Hocevar
and Demsar, Bioinformatics 2014). An orbit is a set of vertices of a graphlet that its automorphisms send to each other.
For a vertex v of a graph and an orbit o there are

- homomorphisms: maps of the graphlet that keep its edges and send a vertex of o to v; others may share an image;
- subgraphs: distinct subgraphs that are the graphlet, in which v stands in o;
- induced subgraphs: those without further edges, which are the graphlet degrees of v.

Homomorphisms are what is cheap to count. Injective ones are sums over partitions of the graphlet's vertices (Lovasz); a
subgraph is found once for each automorphism that keeps the vertex; and every subgraph lies in one induced subgraph of
the same vertices. All three steps are integer matrices, computed here from the graphlets' edges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

Edge = tuple[int, int]

_EDGES = """
01
01 12 | 01 02 12
01 12 23 | 01 02 03 | 01 12 23 03 | 01 02 12 23 | 01 02 12 13 23 | 01 02 03 12 13 23
01 12 23 34 | 01 12 23 24 | 01 02 03 04 | 01 12 13 23 24 | 01 12 23 24 34 | 01 02 03 04 34 | 01 12 23 34 04
01 12 13 24 34 | 01 02 03 13 04 14 | 01 02 12 03 04 34 | 01 12 13 23 24 34 | 02 12 03 13 04 14 | 01 12 23 03 24 34
01 02 12 03 13 04 14 | 01 12 13 14 23 24 34 | 01 02 03 04 12 23 34 | 01 02 12 13 23 34 04 | 01 02 03 12 13 23 04 14
01 02 03 04 12 23 34 14 | 01 02 03 04 12 13 14 23 24 | 01 02 03 04 12 13 14 23 24 34
"""
"""The edges of G0, G1, ...; an edge is its two vertices."""


@dataclass(frozen=True)
class Graphlet:
    """A connected graph of at most 5 vertices, 0, 1, ...

    Attributes
    ----------
    size
        Number of vertices.
    edges
        Pairs of vertices, the smaller one first.
    """

    size: int
    edges: frozenset[Edge]

    @classmethod
    def of(cls, edges: Sequence[Edge]) -> "Graphlet":
        """Make a graphlet of edges between any vertices, which are numbered anew in their order."""
        number = {v: i for i, v in enumerate(sorted({v for edge in edges for v in edge}))}
        pairs = (sorted((number[u], number[v])) for u, v in edges)
        return cls(len(number), frozenset((u, v) for u, v in pairs))

    def neighbours(self, v: int) -> list[int]:
        """The vertices that are adjacent to v, ascending."""
        return sorted(u + w - v for u, w in self.edges if v in (u, w))

    def mark(self, v: int) -> int:
        """The degree of v and those of its neighbours, added up: differs for the orbits of a graphlet."""
        around = self.neighbours(v)
        return len(around) + sum(len(self.neighbours(u)) for u in around)

    def marks(self) -> tuple[int, ...]:
        """The marks of all vertices, sorted: differ for graphlets of the same size."""
        return tuple(sorted(map(self.mark, range(self.size))))


@cache
def graphlets() -> tuple[Graphlet, ...]:
    """Return G0 to G29."""
    texts = _EDGES.replace("|", "\n").strip().splitlines()
    return tuple(Graphlet.of([(int(pair[0]), int(pair[1])) for pair in text.split()]) for text in texts)


@dataclass(frozen=True)
class Orbit:
    """An orbit of a graphlet.

    Attributes
    ----------
    graphlet
        The number of the graphlet.
    root
        One of its vertices in the orbit.
    size
        How many there are.
    """

    graphlet: int
    root: int
    size: int


@cache
def graphlet_orbits() -> tuple[Orbit, ...]:
    """Return orbits 0 to 72: graphlet by graphlet, by the marks of their vertices."""
    found = []
    for number, graphlet in enumerate(graphlets()):
        marks = [graphlet.mark(v) for v in range(graphlet.size)]
        found += [Orbit(number, marks.index(mark), marks.count(mark)) for mark in sorted(set(marks))]
    return tuple(found)


@cache
def _numbers() -> dict[tuple[int, tuple[int, ...], int], int]:
    """The orbit by the size of a graphlet, the marks of its vertices, and the mark of a vertex."""
    return {
        (graphlet.size, graphlet.marks(), graphlet.mark(orbit.root)): number
        for number, orbit in enumerate(graphlet_orbits())
        for graphlet in (graphlets()[orbit.graphlet],)
    }


def orbit_of(graphlet: Graphlet, vertex: int) -> int:
    """Return the orbit of a vertex."""
    return _numbers()[graphlet.size, graphlet.marks(), graphlet.mark(vertex)]


def orbits_up_to(size: int) -> int:
    """Return how many orbits there are of graphlets of 2 to `size` vertices."""
    return sum(graphlets()[orbit.graphlet].size <= size for orbit in graphlet_orbits())


@cache
def injective_of_homomorphisms() -> NDArray[np.int64]:
    """Return the matrix that makes numbers of injective homomorphisms of those of all: int64[73, 73].

    The sum over the partitions of a graphlet's vertices into sets without edges, of the homomorphisms of the graphlet
    in which each set is one vertex, times (-1)^(k - 1) (k - 1)! for each set of k vertices.
    """
    orbits = graphlet_orbits()
    matrix = np.zeros((len(orbits), len(orbits)), np.int64)
    for row, orbit in enumerate(orbits):
        graphlet = graphlets()[orbit.graphlet]
        for blocks in _partitions(graphlet.size):
            if any(blocks[u] == blocks[v] for u, v in graphlet.edges):
                continue
            quotient = Graphlet.of([(blocks[u], blocks[v]) for u, v in graphlet.edges])
            sign = 1
            for size in np.bincount(blocks).tolist():
                sign *= (-1) ** (size - 1) * factorial(size - 1)
            matrix[row, orbit_of(quotient, blocks[orbit.root])] += sign
    return matrix


@cache
def root_automorphisms() -> tuple[int, ...]:
    """Return for every orbit how many automorphisms of its graphlet keep a vertex of it where it is."""
    counts = []
    for orbit in graphlet_orbits():
        graphlet = graphlets()[orbit.graphlet]
        others = [v for v in range(graphlet.size) if v != orbit.root]
        found = 0
        for images in permutations(others):
            to = dict(zip(others, images, strict=True)) | {orbit.root: orbit.root}
            found += all((min(to[u], to[v]), max(to[u], to[v])) in graphlet.edges for u, v in graphlet.edges)
        counts.append(found)
    return tuple(counts)


@cache
def subgraphs_of_induced() -> NDArray[np.int64]:
    """Return the matrix that makes numbers of subgraphs of those of induced subgraphs: int64[73, 73].

    Row o, column q: how many connected subgraphs with all vertices of the graphlet of q have its vertex in orbit o.
    Upper triangular, with ones on the diagonal but for graphlets of as many edges, which do not contain each other.
    """
    orbits = graphlet_orbits()
    matrix = np.zeros((len(orbits), len(orbits)), np.int64)
    for column, orbit in enumerate(orbits):
        graphlet = graphlets()[orbit.graphlet]
        edges = sorted(graphlet.edges)
        for number in range(graphlet.size - 1, len(edges) + 1):
            for chosen in combinations(edges, number):
                if _connects(chosen, graphlet.size):
                    part = Graphlet(graphlet.size, frozenset(chosen))
                    matrix[orbit_of(part, orbit.root), column] += 1
    return matrix


def spanning_trees_of(orbit: int) -> list[int]:
    """Return the orbits of trees that a spanning tree of the orbit's graphlet has at the same vertex."""
    row = subgraphs_of_induced()[:, orbit]
    return [
        number
        for number, one in enumerate(graphlet_orbits())
        if row[number] and len(graphlets()[one.graphlet].edges) == graphlets()[one.graphlet].size - 1
    ]


def _partitions(size: int) -> Iterator[tuple[int, ...]]:
    """Yield every partition of 0 to size - 1: the number of each one's set, sets numbered by their first members."""

    def grow(blocks: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(blocks) == size:
            yield blocks
            return
        for block in range(max(blocks, default=-1) + 2):
            yield from grow((*blocks, block))

    return grow(())


def _connects(edges: Sequence[Edge], size: int) -> bool:
    reached, left = {0}, list(edges)
    while joined := [edge for edge in left if reached & set(edge)]:
        for edge in joined:
            reached |= set(edge)
            left.remove(edge)
    return len(reached) == size
