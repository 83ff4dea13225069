"""Patterns by number: codes of adjacency bits, canonical forms, and the classes of connected patterns.

A code has bit v (v - 1) / 2 + u for the edge (u, v), u < v; see :mod:`longwall.kernels.host.patterns.canonical_kernel`,
which does the work. The classes of a size are in the order in which results list them: by edges, then by the sorted
edge list of the canonical form. What is made once is kept for as long as the process lives.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_DICTIONARY_VERTICES = 7
MAX_VERTICES = 8
CLASS_BITS = 10
"""Bits of a dictionary's entry that number the class."""
UNCONNECTED = np.uint32(0xFFFFFFFF)
"""The entry of a code that is no connected pattern."""
_CLASS = np.uint32((1 << CLASS_BITS) - 1)
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
    code = sum({1 << _bit(min(pair), max(pair)) for pair in edges})
    colours = np.zeros((1, vertices), np.int64)
    if labels is not None:
        colours[0] = np.unique(labels, return_inverse=True)[1]
    found, _ = _canonical(np.array([code]), vertices, colours)
    return code_edges(int(found[0]), vertices), None if labels is None else tuple(sorted(labels))


@cache
def dictionary(vertices: int) -> Dictionary:
    """The dictionary of the patterns of 2 to 7 vertices; the largest takes 8 MiB and part of a second."""
    if not 1 < vertices <= MAX_DICTIONARY_VERTICES:
        raise ValueError(f"no dictionary of {vertices} vertices")
    codes = connected_codes(vertices)
    pairs = np.array(list(combinations(range(vertices), 2)))
    orders = np.array(list(permutations(range(vertices))))
    ends = orders[:, pairs]  # of each edge of a canonical form, where each permutation puts its vertices
    images = np.int64(1) << _bit(ends.min(axis=2), ends.max(axis=2))
    places = (np.arange(vertices) << CLASS_BITS + 3 * orders).sum(axis=1)
    entries = np.full(1 << len(pairs), UNCONNECTED)
    for number, edges in enumerate((codes[:, None] >> _bit(*pairs.T) & 1).astype(bool)):
        entries[images[:, edges].sum(axis=1)] = places | number
    return Dictionary(entries, codes)


@cache
def growth(vertices: int) -> ClassGrowth:
    """How the connected patterns of 2 to 7 vertices grow by one vertex."""
    from longwall.kernels.host.patterns.canonical_kernel import count_removable

    smaller = connected_codes(vertices)
    neighbours = np.arange(1, 1 << vertices) << vertices * (vertices - 1) // 2
    found, keys = _canonical((smaller[:, None] | neighbours).reshape(-1), vertices + 1)
    codes, first, number = np.unique(found, return_index=True, return_inverse=True)
    rank = _ranks(codes, keys[first])
    classes = np.full((len(smaller), 1 << vertices), -1)
    classes[:, 1:] = rank[number].reshape(len(smaller), -1)
    ordered = np.empty_like(codes)
    ordered[rank] = codes
    ways = np.empty_like(codes)
    count_removable(ordered, vertices + 1, ways, _work())
    return ClassGrowth(ordered, classes, ways)


@cache
def connected_codes(vertices: int) -> NDArray[np.int64]:
    """The codes of all connected patterns of 2 to 8 vertices, int64[classes]."""
    return growth(vertices - 1).codes if vertices > 2 else np.ones(1, np.int64)


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
    classes = (book.entries & _CLASS).astype(np.int64)
    connected = book.entries != UNCONNECTED
    columns = [np.bincount(classes[connected & (codes & ~code == 0)], minlength=len(book.codes)) for code in book.codes]
    return np.stack(columns, axis=1).astype(np.int64)


def _bit(u: Any, v: Any) -> Any:
    """Return the bit of a pair u < v, or those of arrays of pairs."""
    return v * (v - 1) // 2 + u


def _canonical(
    codes: NDArray[np.int64], vertices: int, colours: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes of the canonical forms of patterns, and their keys; see `canonical_kernel.canonical_codes`."""
    from longwall.kernels.host.patterns.canonical_kernel import canonical_codes

    found, keys = np.empty_like(codes), np.empty_like(codes)
    if colours is None:
        colours = np.zeros((len(codes), vertices), np.int64)
    canonical_codes(codes, colours, vertices, found, keys, _work())
    return found, keys


def _ranks(codes: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank of every class: fewer edges first, then larger keys, which have smaller edge lists."""
    rank = np.empty(len(codes), np.int64)
    rank[np.lexsort((-keys, np.bitwise_count(codes)))] = np.arange(len(codes))
    return rank


def _work() -> NDArray[np.int64]:
    return np.zeros((8, MAX_VERTICES), np.int64)
