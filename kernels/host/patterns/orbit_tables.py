"""The orbits of graphlets of 2 to 4 vertices, numbered 0 to 14 as is usual (Przulj, Bioinformatics 2007).

An orbit is a set of vertices of a connected pattern that its automorphisms send to each other; in patterns of so few
vertices these are the vertices of one degree.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.patterns.pattern_codes import UNCONNECTED, code_edges, dictionary, growth

_ORBITS = {
    (1, 1): {1: 0},
    (1, 1, 2): {1: 1, 2: 2},
    (2, 2, 2): {2: 3},
    (1, 1, 2, 2): {1: 4, 2: 5},
    (1, 1, 1, 3): {1: 6, 3: 7},
    (2, 2, 2, 2): {2: 8},
    (1, 2, 2, 3): {1: 9, 2: 10, 3: 11},
    (2, 2, 3, 3): {2: 12, 3: 13},
    (3, 3, 3, 3): {3: 14},
}
"""Sorted degrees of a pattern -> degree of a vertex -> its orbit."""


@dataclass(frozen=True)
class Orbits:
    """What is needed to count the orbits of patterns of 3 or 4 vertices by a growth of patterns with one vertex less.

    Attributes
    ----------
    first
        Number of the first orbit of this size; arrays begin with it.
    table : int64[2 ** smaller pairs, 2 ** smaller vertices, smaller vertices]
        By code of all vertices but one and the neighbours of that one: the orbit of each of the others, less `first`; 0
        where the pattern is not connected.
    ways : int64[orbits]
        In how many ways one of the other vertices of the pattern can be taken away so that it stays connected.
    sizes : int64[orbits]
        Vertices of the orbit in its pattern.
    classes : int64[orbits]
        The class of the orbit's pattern, in the order of `longwall.kernels.host.patterns.pattern_codes`.
    """

    first: int
    table: NDArray[np.int64]
    ways: NDArray[np.int64]
    sizes: NDArray[np.int64]
    classes: NDArray[np.int64]


def orbits(vertices: int) -> Orbits:
    """The orbits of the connected patterns of 3 or 4 vertices."""
    numbers = sorted(n for degrees, of in _ORBITS.items() if len(degrees) == vertices for n in of.values())
    first, smaller = numbers[0], vertices - 1
    pairs = smaller * (smaller - 1) // 2
    small, grown = dictionary(smaller), growth(smaller)
    entries = dictionary(vertices).entries
    table = np.zeros((1 << pairs, 1 << smaller, smaller), np.int64)
    for code, mask in np.ndindex(table.shape[:2]):
        if small.entries[code] != UNCONNECTED and entries[code | mask << pairs] != UNCONNECTED:
            table[code, mask] = [n - first for n in _numbers(code | mask << pairs, vertices)[:smaller]]
    ways, sizes, classes = (np.zeros(len(numbers), np.int64) for _ in range(3))
    for number, code in enumerate(grown.codes.tolist()):
        of = _numbers(code, vertices)
        for v, orbit in enumerate(of):
            classes[orbit - first] = number
            sizes[orbit - first] += 1
            ways[orbit - first] = grown.ways[number] - _is_removable(code, vertices, v)
    return Orbits(first, table, ways, sizes, classes)


def _numbers(code: int, vertices: int) -> list[int]:
    """The orbit of each vertex."""
    edges = code_edges(code, vertices)
    degrees = [sum(v in edge for edge in edges) for v in range(vertices)]
    of = _ORBITS[tuple(sorted(degrees))]
    return [of[degree] for degree in degrees]


def _is_removable(code: int, vertices: int, v: int) -> bool:
    """Whether the pattern stays connected without v."""
    left = [u for u in range(vertices) if u != v]
    edges = set(code_edges(code, vertices))
    kept = sum(1 << j * (j - 1) // 2 + i for i, j in combinations(range(len(left)), 2) if (left[i], left[j]) in edges)
    return bool(dictionary(vertices - 1).entries[kept] != UNCONNECTED)
