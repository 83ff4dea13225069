"""The row program: homomorphism counts of several patterns, one row of the adjacency matrix at a time.

Fix the image v of one pattern vertex r, such that the pattern without r is a forest. Homomorphisms of the
forest are then counted by dynamic programming from the leaves, with vectors in place of numbers: a *local*
vector has an entry for every neighbour of v, a *dense* vector one for every vertex. A row program is the list
of vector operations for one v; engines run it for all v.

This module only holds data; :mod:`longwall.pipeline.planning.homomorphisms` builds it, the engines run it.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

MAX_SCALARS = 64  # room that engines have for them


class Op(IntEnum):
    """One vector operation: (code, target, source)."""

    ONES = 0  # local[target] = 1
    PULL = 1  # local[target][x] = sum of dense[source][z] over the neighbours z of x
    SCATTER = 2  # dense[target][x] = local[source][x] on the neighbours of v, 0 elsewhere
    MULTIPLY = 3  # local[target] *= local[source]
    WEIGH = 4  # local[target][x] *= weight[source][x]
    PUSH = 5  # dense[target][z] = sum of local[source][x] over the common neighbours x of v and z
    COPY_DENSE = 6  # dense[target] = dense[source]
    MULTIPLY_DENSE = 7  # dense[target] *= dense[source]
    WEIGH_DENSE = 8  # dense[target][z] *= weight[source][z]
    WIDEN = 9  # dense[target][z] = sum of dense[source][y] over the neighbours y of z
    SUM = 10  # scalar[target] = sum of local[source]
    SUM_DENSE = 11  # scalar[target] = sum of dense[source]


@dataclass(frozen=True)
class RowProgram:
    """Vector operations for one row, and what they add up to.

    Attributes
    ----------
    ops
        (code, target, source) each, in order.
    num_local, num_dense, num_scalars
        How many vectors and scalars the operations use.
    weights
        Vertex weights that do not depend on v, each a product over earlier entries: weight i of x is the sum
        over the neighbours z of x of the product of `weights[j]` of z for j in entry i (the degree for an
        empty entry).
    products
        One per counted pattern: the scalars whose product, summed over all v, is its count.
    passes
        Number of PULL and PUSH operations: the cost, in units of the sum of squared degrees.
    wide_passes
        Number of WIDEN operations: the cost, in units of vertices times arcs. Where there is one,
        dense vectors are taken to have an entry for every vertex, not only for those within two steps of v.
    """

    ops: tuple[tuple[int, int, int], ...]
    num_local: int
    num_dense: int
    num_scalars: int
    weights: tuple[tuple[int, ...], ...]
    products: tuple[tuple[int, ...], ...]
    passes: int
    wide_passes: int

    def packed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The operations (int64[n, 3]) and products (int64[m, width], padded with -1) as arrays."""
        width = max(len(p) for p in self.products)
        products = [[*p, *[-1] * (width - len(p))] for p in self.products]
        return np.array(self.ops, np.int64).reshape(-1, 3), np.array(products, np.int64)
