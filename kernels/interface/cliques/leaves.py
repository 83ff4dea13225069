"""Cliques as leaves of a pivot tree: what kernels count, and the exact numbers that follow from it.

A leaf with h held vertices and p pivots stands for every clique of the h and any of the p: C(p, k - h) cliques of k
vertices (Pivoter: Jain and Seshadhri, WSDM 2020, section 4). Kernels count leaves by (h, p) in 64 bits, which no
search can exhaust, and the host makes the numbers of cliques of them, however large.
"""

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALL_SIZES = 0
"""Stands for every size where kernels take one."""

_LIMB_BITS = 64


def leaf_shape(k: int, max_out_degree: int) -> tuple[int, int]:
    """Return the numbers of held vertices and of pivots that leaves may have, each plus one.

    Parameters
    ----------
    k
        Number of vertices of the cliques; `ALL_SIZES`: any.
    max_out_degree
        The largest number of neighbours that a vertex has before itself.
    """
    largest = max_out_degree + 1
    return (k if k else largest) + 1, largest + 1


def cliques_of_leaves(leaves: NDArray[Any], k: int = ALL_SIZES) -> list[int]:
    """Return the numbers of cliques by size: place s has those of s vertices, only place k where `k` is a size.

    Parameters
    ----------
    leaves : int64[h, p]
        Number of leaves with h held vertices and p pivots. With a size k, `leaves[k, 0]` are single cliques, however
        they were found.
    k
        The size of the cliques that are wanted, or `ALL_SIZES`.
    """
    rows, columns = np.nonzero(leaves)
    numbers = leaves[rows, columns].tolist()
    cells = zip(rows.tolist(), columns.tolist(), numbers, strict=True)
    if k:
        return [0] * k + [sum(number * comb(pivots, k - held) for held, pivots, number in cells)]
    counts = [0] * sum(leaves.shape)
    for held, pivots, number in cells:
        choices = 1
        for chosen in range(pivots + 1):
            counts[held + chosen] += number * choices
            choices = choices * (pivots - chosen) // (chosen + 1)
    while counts and not counts[-1]:
        counts.pop()
    return counts


def limbs_needed(out_degrees: Sequence[int], vertices: Sequence[int], k: int) -> int:
    """Return how many words of 64 bits hold the number of cliques of k vertices that a vertex can be in.

    Parameters
    ----------
    out_degrees, vertices
        Numbers of neighbours with a smaller id, and how many vertices have so many.
    k
        Number of vertices.
    """
    most = sum(number * comb(degree, k - 1) for degree, number in zip(out_degrees, vertices, strict=True))
    return max(-(-most.bit_length() // _LIMB_BITS), 1)


def leaf_weights(k: int, max_out_degree: int, limbs: int) -> NDArray[np.uint64]:
    """Return the number of ways to choose `chosen` of `pivots`: uint64[pivots, chosen, limbs], the lowest limb first.

    Modulo 2 ** (64 * `limbs`), which is exact for what can occur where `limbs_needed` are used.
    """
    _, pivots = leaf_shape(k, max_out_degree)
    weights = np.zeros((pivots, k, limbs), np.uint64)
    weights[:, 0, 0] = 1
    for number in range(1, pivots):
        before, carry = weights[number - 1], np.zeros(k - 1, np.uint64)
        for limb in range(limbs):
            sums = before[1:, limb] + before[:-1, limb]
            over = sums < before[1:, limb]
            sums += carry
            carry = (over | (sums < carry)).astype(np.uint64)
            weights[number, 1:, limb] = sums
    return weights


def weight_bytes(k: int, max_out_degree: int, limbs: int) -> int:
    """Return the bytes of `leaf_weights`."""
    return leaf_shape(k, max_out_degree)[1] * k * limbs * 8


def exact_values(limbs: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return numbers of several words without a sign, int64[limbs, n], the lowest first, as Python integers."""
    words = limbs.view(np.uint64)
    total: NDArray[np.object_] = words[-1].astype(object)
    for word in words[-2::-1]:
        total = (total << _LIMB_BITS) + word.astype(object)
    return total


def exact_sum(limbs: NDArray[np.int64]) -> int:
    """Return the sum of such numbers."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    total = 0
    for place, words in enumerate(limbs.view(np.uint64)):
        total += (int((words & low).sum()) + (int((words >> half).sum()) << 32)) << (_LIMB_BITS * place)
    return total


def add_limbs(total: NDArray[np.int64], other: NDArray[np.int64]) -> None:
    """Add such numbers to others, in their place."""
    sums, addends = total.view(np.uint64), other.view(np.uint64)
    carry = np.zeros(sums.shape[1], np.uint64)
    for at, words in zip(sums, addends, strict=True):
        at += words
        over = at < words
        at += carry
        carry = (over | (at < carry)).astype(np.uint64)
