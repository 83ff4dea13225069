"""The workspace in which one worker counts stars by the leaves that the neighbours of each vertex can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.stars.independent_sets import count_choices, count_sets
from longwall.kernels.host.stars.polynomials import Leaves

MOST_FOREST = 1 << 14
"""Vertices of a connected part of a neighbourhood that is neither a path nor a cycle: larger ones are not counted."""
_INTS = 12  # arrays with an entry per neighbour


class TakesLong(Exception):
    """Counting the stars of one vertex takes more steps than allowed, or more memory than a worker has."""


class Counter(Protocol):
    """Counts stars, modulo primes."""

    def advance(self, first: int, last: int, steps: int) -> tuple[int, int]:
        """Count the stars around the vertices from `first` on; stop after `steps` steps.

        Returns the vertex to go on with, and the steps taken.

        Raises
        ------
        TakesLong
            If one vertex takes more steps than allowed.
        """

    def take(self) -> list[int]:
        """Return the number of stars found since the last call, modulo each prime."""


class ChoiceCounter:
    """Counts stars whose leaves may be adjacent.

    Parameters
    ----------
    indptr, indices
        The graph's.
    kinds : int8[n]
        The kind of leaf that each vertex can be: the index of its label in ``leaves.named``, or the index after the
        last one for all other labels; -1 if it can be no leaf.
    centres : bool[n]
        Whether each vertex can be the centre.
    leaves
        The leaves.
    primes
        Below 2**31, and above the number of leaves.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        kinds: NDArray[np.int8],
        centres: NDArray[np.bool_],
        leaves: Leaves,
        primes: Sequence[int],
    ):
        self._graph = indptr, indices, kinds, centres
        self._leaves = np.array(leaves.named, np.int64), leaves.free
        self._primes, self._inverses = _residues(leaves, primes)
        self._counts, self._sums = np.zeros(len(leaves.named) + 1, np.int64), np.zeros(len(primes), np.int64)

    def advance(self, first: int, last: int, steps: int) -> tuple[int, int]:
        """See `Counter`."""
        following, taken = count_choices(
            *self._graph, *self._leaves, first, last, self._primes, self._inverses, self._counts, self._sums, steps
        )
        return int(following), int(taken)

    def take(self) -> list[int]:
        """See `Counter`."""
        return _taken(self._sums)


class StarCounter:
    """Counts induced stars.

    Parameters
    ----------
    indptr, indices, split
        The graph's.
    kinds, centres, leaves, primes
        See `ChoiceCounter`.
    most_joined
        The most edges between the neighbours of a vertex.
    most_steps
        The most steps to spend on the stars of one vertex.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        split: NDArray[np.int64],
        kinds: NDArray[np.int8],
        centres: NDArray[np.bool_],
        leaves: Leaves,
        primes: Sequence[int],
        most_joined: int,
        most_steps: int,
    ):
        size = int(indptr[1] - indptr[0])  # degrees descend
        forest, shape = _forest(size, most_joined), (leaves.coefficients, len(primes))
        named = np.array(leaves.named, np.int64)
        self._graph, self._most_steps = (indptr, indices, split, kinds, centres, named), most_steps
        self._primes, self._inverses = _residues(leaves, primes)
        self._ranks = np.zeros(len(indptr) - 1, np.int32)
        self._start, self._near = np.zeros(size + 1, np.int32), np.empty(2 * most_joined + 1, np.int32)
        self._places = tuple(np.zeros(size + 1, np.int32) for _ in range(_INTS - 1))
        self._chosen = np.zeros(leaves.number + 1, np.int32)
        self._counts = tuple(np.zeros(len(named) + 1, np.int64) for _ in range(2))
        self._forest = tuple(np.empty((forest, *shape), np.int64) for _ in range(2))
        capacities = 2, leaves.number + 1, 2
        self._factor, self._prefix, self._ends = (np.empty((capacity, *shape), np.int64) for capacity in capacities)
        self._total, self._part = (np.empty(shape, np.int64) for _ in range(2))
        self._sums, self._terms = np.zeros(len(primes), np.int64), leaves.terms

    def advance(self, first: int, last: int, steps: int) -> tuple[int, int]:
        """See `Counter`."""
        following, taken = count_sets(  # type: ignore[call-arg]
            *self._graph, first, last, self._primes, self._inverses, self._ranks, self._start, self._near,
            *self._places, self._chosen, *self._counts, *self._forest, self._factor, self._prefix, self._ends,
            self._total, self._part, self._sums, *self._terms, steps, self._most_steps,
        )  # fmt: skip
        if following < 0:
            raise TakesLong
        return int(following), int(taken)

    def take(self) -> list[int]:
        """See `Counter`."""
        return _taken(self._sums)


def _residues(leaves: Leaves, primes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    inverses = [[0, *(pow(j, -1, prime) for j in range(1, leaves.number + 1))] for prime in primes]
    return np.array(primes, np.int64), np.array(inverses, np.int64)


def _taken(sums: NDArray[np.int64]) -> list[int]:
    found: list[int] = sums.tolist()
    sums[:] = 0
    return found


def _forest(size: int, most_joined: int) -> int:
    """Return the size of the largest connected part of a neighbourhood that the workspace holds."""
    return min(size, most_joined + 1, MOST_FOREST)


def bytes_for(vertices: int, max_degree: int, leaves: Leaves, primes: int, most_joined: int) -> int:
    """Return the bytes of a `StarCounter`."""
    polynomial = 8 * leaves.coefficients * primes
    polynomials = 2 * _forest(max_degree, most_joined) + leaves.number + 7
    terms = 8 * (len(leaves.classes) + 2) * leaves.coefficients + 16 * leaves.products
    places = 4 * _INTS * (max_degree + 1) + 8 * most_joined
    return 4 * vertices + places + polynomial * polynomials + terms + 64 * (leaves.number + 1) * primes
