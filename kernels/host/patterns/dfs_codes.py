"""Minimum DFS codes (gSpan): whether a code is the smallest of its pattern, and how many automorphisms it has.

A code is a list of edges (i, j, label of i, label of the edge, label of j) in the order of a depth-first search that
numbers the vertices; forward edges (i < j) bring a new vertex. Both engines share this: patterns are few.
"""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.patterns.dfs_code_kernel import check

MAX_EDGES = 64


def automorphisms(
    codes: NDArray[np.int32], begin: int, end: int, found: NDArray[np.int64], stop_flag: NDArray[np.uint8]
) -> None:
    """Count the automorphisms of patterns whose codes are minimal.

    Parameters
    ----------
    codes : int32[n, edges, 5]
        DFS codes of as many edges each, at least 1 and at most `MAX_EDGES`. All but the last edge are a minimum code.
    begin, end
        The codes to look at: several threads may share the arrays.
    found : int64[n]
        Where the answers go: 0 where a code is not the minimum code of its pattern.
    stop_flag : uint8[1]
        Set when to return early.
    """
    check(codes, begin, end, _work(), stop_flag, found, np.empty((0, 0), np.uint8))


def restrictions(code: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Restrictions that one of every subgraph's mappings fulfils.

    Parameters
    ----------
    code : int32[edges, 5]
        A minimum DFS code.

    Returns
    -------
    list of (int, int)
        Pairs of vertices: the first one's image must have the smaller id. Each vertex in turn is the smallest of its
        orbit under the automorphisms that fix the ones before it (Grochow and Kellis, RECOMB 2007).
    """
    size = int(code[:, :2].max()) + 1
    moved = np.zeros((size, size), np.uint8)
    check(code[np.newaxis], 0, 1, _work(), np.zeros(1, np.uint8), np.zeros(1, np.int64), moved)
    return [(int(vertex), int(other)) for vertex, other in np.argwhere(moved)]


def _work() -> NDArray[np.int64]:
    return np.zeros((12, 2 * MAX_EDGES + 2), np.int64)
