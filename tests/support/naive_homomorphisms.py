"""Homomorphisms by the definition: a sum over all maps of products of adjacency."""

from collections.abc import Iterable, Mapping

import numpy as np


def count_homomorphisms(
    edges: Iterable[tuple[int, int]],
    pattern: Iterable[tuple[int, int]],
    images: Mapping[int, Iterable[int]] | None = None,
) -> int:
    """Count the maps of a pattern's vertices to those of a graph, 0 to n - 1, that map edges to edges.

    A vertex of the pattern that is a key of `images` is only mapped to the vertices that it has there.
    """
    pairs = list(edges)
    size = 1 + max(max(pair) for pair in pairs)
    adjacency = np.zeros((size, size), np.int64)
    for u, v in pairs:
        adjacency[u, v] = adjacency[v, u] = u != v
    operands = []
    for u, v in pattern:
        operands += [adjacency, [u, v]]
    for v, allowed in (images or {}).items():
        indicator = np.zeros(size, np.int64)
        indicator[list(allowed)] = 1
        operands += [indicator, [v]]
    return int(np.einsum(*operands, [], optimize="greedy"))
