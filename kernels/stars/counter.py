"""The workspace in which one worker counts induced stars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.stars.independent_sets import count_sets

MOST_FOREST = 1 << 14
"""Vertices of a connected part of a neighbourhood that is neither a path nor a cycle: larger ones are not counted."""
_INTS = 11  # arrays with an entry per neighbour


class TakesLong(Exception):
    """The stars of a vertex are not counted with so many steps."""


class StarCounter:
    """Counts induced stars, modulo primes.

    Parameters
    ----------
    indptr, indices, split
        The graph's.
    leaves
        Leaves of a star, one at least.
    primes
        Below 2**31, and above `leaves`.
    most_joined
        The most edges between the neighbours of a vertex.
    most_steps
        Those that the stars of a vertex are worth.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        split: NDArray[np.int64],
        leaves: int,
        primes: Sequence[int],
        most_joined: int,
        most_steps: int,
    ):
        size = int(indptr[1] - indptr[0])  # degrees descend
        forest, number = min(size, MOST_FOREST), len(primes)
        self._graph, self._most_steps = (indptr, indices, split), most_steps
        self._primes = np.array(primes, np.int64)
        inverses = [[0, *(pow(j, -1, prime) for j in range(1, leaves + 1))] for prime in primes]
        self._inverses = np.array(inverses, np.int64)
        self._ranks = np.zeros(len(indptr) - 1, np.int32)
        self._start, self._near = np.zeros(size + 1, np.int32), np.empty(2 * most_joined + 1, np.int32)
        self._places = tuple(np.zeros(size + 1, np.int32) for _ in range(_INTS - 1))
        self._chosen = np.zeros(leaves + 1, np.int32)
        self._forest = tuple(np.empty((forest, leaves + 1, number), np.int64) for _ in range(2))
        self._factor = np.empty((2, leaves + 1, number), np.int64)
        self._total, self._part = (np.empty((leaves + 1, number), np.int64) for _ in range(2))
        self._sums = np.zeros(number, np.int64)

    def advance(self, first: int, last: int, steps: int) -> tuple[int, int]:
        """Count the stars around the vertices from `first` on; return the next one, after so many steps, and the steps.

        Raises
        ------
        TakesLong
            If one takes too long.
        """
        following, taken = count_sets(
            *self._graph, first, last, self._primes, self._inverses, self._ranks, self._start, self._near,
            *self._places, self._chosen, *self._forest, self._factor, self._total, self._part, self._sums, steps,
            self._most_steps,
        )  # fmt: skip
        if following < 0:
            raise TakesLong
        return int(following), int(taken)

    def take(self) -> list[int]:
        """Return the number of stars found since the last call, modulo each prime."""
        found: list[int] = self._sums.tolist()
        self._sums[:] = 0
        return found


def bytes_for(vertices: int, max_degree: int, leaves: int, primes: int, most_joined: int) -> int:
    """Return the bytes of a `StarCounter`."""
    forest = 16 * min(max_degree, MOST_FOREST) * (leaves + 1) * primes
    return 4 * vertices + 4 * _INTS * (max_degree + 1) + 8 * most_joined + forest + 64 * (leaves + 1) * primes
