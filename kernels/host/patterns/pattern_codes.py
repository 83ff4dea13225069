"""Patterns by number: codes of adjacency bits, canonical forms, and the classes of connected patterns.

A code has bit v (v - 1) / 2 + u for the edge (u, v), u < v; see :mod:`longwall.kernels.host.patterns.canonical_kernel`,
which does the work. The classes of a size are in the order in which results list them: by edges, then by the sorted
edge list of the canonical form. What is made once is kept for as long as the process lives.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

MAX_DICTIONARY_VERTICES = 7
MAX_VERTICES = 8
CLASS_BITS = 10
"""Bits of a dictionary's entry that number the class."""
UNCONNECTED = np.uint32(0xFFFFFFFF)
"""The entry of a code that is no connected pattern."""
_MOST_CLASSES = 1 << CLASS_BITS
PatternCode = tuple[tuple[tuple[int, int], ...], tuple[int, ...] | None]
"""Edges and labels of a canonical pattern."""


@dataclass(frozen=True)
class Dictionary:
    """Every code of a number of vertices, and its class (DuMato, section 4.2.3).

    Attributes
    ----------
    entries : uint32[2 ** pairs]
        By code: the number of the class in the lowest 10 bits; above them, 3 bits per vertex of the code, the vertex of
        the class' canonical form that it is. `UNCONNECTED` where the code is no connected pattern.
    codes : int64[classes]
        The code of every class' canonical form.
    """

    entries: NDArray[np.uint32]
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class ClassGrowth:
    """How the classes of one size grow to those of the next.

    Attributes
    ----------
    codes : int64[classes]
        The code of every larger class' canonical form.
    classes : int64[smaller classes, 2 ** vertices]
        By smaller class and the neighbours of one vertex more, as bits over the canonical form: the larger class; -1
        where there are no neighbours.
    ways : int64[classes]
        How many vertices of a larger class can be taken away so that a connected pattern is left.
    """

    codes: NDArray[np.int64]
    classes: NDArray[np.int64]
    ways: NDArray[np.int64]


def code_edges(code: int, vertices: int) -> tuple[tuple[int, int], ...]:
    """The sorted edges of a code."""
    return tuple((u, v) for u, v in combinations(range(vertices), 2) if code >> _bit(u, v) & 1)


def edges_text(edges: tuple[tuple[int, int], ...]) -> str:
    """Edges as text, such as ``0-1,0-2``."""
    return ",".join(f"{u}-{v}" for u, v in edges)


@lru_cache(maxsize=1 << 14)
def canonical_pattern(edges: tuple[tuple[int, int], ...], labels: tuple[int, ...] | None, vertices: int) -> PatternCode:
    """Bring a pattern of at most 8 vertices to its canonical form.

    Parameters
    ----------
    edges
        Pairs of vertices, in any order and direction.
    labels
        The label of each vertex; None for an unlabelled pattern.
    vertices
        Number of vertices; they are 0, 1, ...

    Returns
    -------
    edges : tuple of (int, int)
        Sorted; the same for isomorphic patterns, and for no others with these labels.
    labels : tuple of int or None
        Ascending.
    """
    from longwall.kernels.host.patterns.canonical_kernel import canonical_order

    rows, colours = np.zeros(MAX_VERTICES, np.int64), np.zeros(MAX_VERTICES, np.int64)
    for u, v in edges:
        rows[u] |= 1 << v
        rows[v] |= 1 << u
    if labels is not None:
        colours[:vertices] = np.unique(labels, return_inverse=True)[1]
    order = np.empty(MAX_VERTICES, np.int64)
    canonical_order(rows, colours, vertices, order, _work())
    place = np.argsort(order[:vertices]).tolist()
    pairs = {(min(place[u], place[v]), max(place[u], place[v])) for u, v in edges}
    return tuple(sorted(pairs)), None if labels is None else tuple(sorted(labels))


@cache
def dictionary(vertices: int) -> Dictionary:
    """The dictionary of the patterns of 2 to 7 vertices; the largest takes 8 MiB and part of a second."""
    from longwall.kernels.host.patterns.canonical_kernel import fill_dictionary

    if not 1 < vertices <= MAX_DICTIONARY_VERTICES:
        raise ValueError(f"no dictionary of {vertices} vertices")
    entries = np.empty(1 << vertices * (vertices - 1) // 2, np.uint32)
    found, keys = np.empty(_MOST_CLASSES, np.int64), np.empty(_MOST_CLASSES, np.int64)
    orders = np.array(list(permutations(range(vertices))), np.int64).reshape(factorial(vertices), vertices)
    number = fill_dictionary(vertices, orders, entries, found, keys, _work())
    rank = _ranks(found[:number], keys[:number])
    renumbered = np.full(_MOST_CLASSES, _MOST_CLASSES - 1, np.uint32)
    renumbered[:number] = rank
    low = np.uint32(_MOST_CLASSES - 1)
    for part in np.split(entries, range(1 << 18, len(entries), 1 << 18)):  # small temporaries
        there = part != UNCONNECTED
        part[there] = (part[there] & ~low) | renumbered[part[there] & low]
    codes = np.empty(number, np.int64)
    codes[rank] = found[:number]
    return Dictionary(entries, codes)


@cache
def growth(vertices: int) -> ClassGrowth:
    """How the connected patterns of 2 to 7 vertices grow by one vertex."""
    from longwall.kernels.host.patterns.canonical_kernel import canonical_codes, count_removable

    smaller = dictionary(vertices).codes
    grown = (smaller[:, None] | np.arange(1 << vertices) << vertices * (vertices - 1) // 2).reshape(-1)
    found, keys = np.empty_like(grown), np.empty_like(grown)
    canonical_codes(grown, vertices + 1, found, keys, _work())
    distinct, first, number = np.unique(found, return_index=True, return_inverse=True)
    # Without neighbours a vertex is not connected: these come first, as -1.
    codes = distinct[1:]
    rank = _ranks(codes, keys[first[1:]])
    classes = np.concatenate([[-1], rank])[number].reshape(len(smaller), 1 << vertices)
    ordered = np.empty_like(codes)
    ordered[rank] = codes
    ways = np.empty_like(codes)
    count_removable(ordered, vertices + 1, ways, _work())
    return ClassGrowth(ordered, classes, ways)


@cache
def connected_codes(vertices: int) -> NDArray[np.int64]:
    """The codes of all connected patterns of 3 to 8 vertices, int64[classes]."""
    return growth(vertices - 1).codes


@cache
def spanning_subgraphs(vertices: int) -> NDArray[np.int64]:
    """Count the spanning subgraphs of every class that are of every class, for 3 to 6 vertices.

    Returns
    -------
    int64[classes, classes]
        Row p, column q: number of sets of edges of q that are p. Triangular: ones on the diagonal, zeros below it.
    """
    book = dictionary(vertices)
    codes = np.arange(len(book.entries))
    classes = (book.entries & np.uint32(_MOST_CLASSES - 1)).astype(np.int64)
    connected = book.entries != UNCONNECTED
    columns = [np.bincount(classes[connected & (codes & ~code == 0)], minlength=len(book.codes)) for code in book.codes]
    return np.stack(columns, axis=1).astype(np.int64)


def _bit(u: int, v: int) -> int:
    return v * (v - 1) // 2 + u


def _ranks(codes: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank of every class: fewer edges first, then larger keys, which have smaller edge lists."""
    rank = np.empty(len(codes), np.int64)
    rank[np.lexsort((-keys, np.bitwise_count(codes)))] = np.arange(len(codes))
    return rank


def _work() -> NDArray[np.int64]:
    return np.zeros((9, MAX_VERTICES), np.int64)
