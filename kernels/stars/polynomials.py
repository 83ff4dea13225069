"""Independence polynomials, up to the numbers of leaves of a star and modulo primes.

A polynomial has a variable for each class of leaves, those that want the same label; a coefficient is the number of
ways to choose an independent set and to give so many of its vertices to each class. It is an array
int64[coefficients, primes], in the order of the degrees; primes are below 2**31, so that products fit. `terms` are
`Leaves.terms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.jit import compiled

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Leaves:
    """The leaves of a star.

    Attributes
    ----------
    named
        For each label that leaves want, how many want it.
    free
        How many leaves may have any label.
    """

    named: tuple[int, ...]
    free: int

    @property
    def number(self) -> int:
        """How many leaves there are."""
        return sum(self.named) + self.free

    @property
    def classes(self) -> tuple[int, ...]:
        """How many leaves each class has; those of any label are the last class, if there are some."""
        return (*self.named, self.free) if self.free else self.named

    @property
    def coefficients(self) -> int:
        """Coefficients of a polynomial."""
        return prod(number + 1 for number in self.classes)

    @property
    def products(self) -> int:
        """Products of coefficients when two polynomials are multiplied."""
        return prod((number + 1) * (number + 2) // 2 for number in self.classes)

    @cached_property
    def terms(self) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
        """What the kernels need to know.

        int64[classes, coefficients]
            For each coefficient the one that has one vertex less of a class; -1: there is none.
        int64[coefficients + 1]
            For each coefficient where its products begin.
        int64[products], int64[products]
            What they are products of.
        int64[number + 1]
            For each degree how many coefficients have this degree, or a smaller one.
        int64[kinds, 2]
            For each kind of vertices, the labels that leaves want and then the others, the classes that they may be of;
            -1: none.
        """
        degrees = sorted(product(*(range(number + 1) for number in self.classes)), key=lambda one: (sum(one), one))
        place = {one: at for at, one in enumerate(degrees)}
        less = [
            [place.get((*one[:c], one[c] - 1, *one[c + 1 :]), -1) for one in degrees] for c in range(len(self.classes))
        ]
        starts, first, second = [0], list[int](), list[int]()
        for one in degrees:
            for part in product(*(range(number + 1) for number in one)):
                first.append(place[part])
                second.append(place[tuple(a - b for a, b in zip(one, part, strict=True))])
            starts.append(len(first))
        upto = [sum(sum(one) <= degree for one in degrees) for degree in range(self.number + 1)]
        last = len(self.named) if self.free else -1
        kinds = [*([c, last] for c in range(len(self.named))), [last, -1]]
        less_, starts_, first_, second_, upto_, kinds_ = (
            np.array(some, np.int64) for some in (less, starts, first, second, upto, kinds)
        )
        return less_, starts_, first_, second_, upto_, kinds_


@compiled
def set_one(polynomial, number):
    """Make a polynomial 1: so many coefficients."""
    polynomial[:number] = 0
    polynomial[0] = 1


@compiled
def multiply(polynomial, factor, number, terms, primes):
    """Multiply a polynomial by another one: so many coefficients."""
    starts, first, second = terms[1], terms[2], terms[3]
    for s in range(number - 1, -1, -1):
        for r in range(primes.size):
            value = 0
            for i in range(starts[s], starts[s + 1]):
                value = (value + polynomial[first[i], r] * factor[second[i], r]) % primes[r]
            polynomial[s, r] = value


@compiled
def add_vertices(polynomial, factor, kind, size, number, terms, primes):
    """Add another polynomial, times so many vertices of a kind, one of which is chosen."""
    less, kinds = terms[0], terms[5]
    for j in range(2):
        c = kinds[kind, j]
        if c < 0:
            continue
        for s in range(1, number):
            if less[c, s] >= 0:
                for r in range(primes.size):
                    polynomial[s, r] = (polynomial[s, r] + factor[less[c, s], r] * size) % primes[r]


@compiled
def next_of_path(without, within, kind, number, terms, primes):
    """Go on by a vertex of a path: `without` and `within` are the sets in which the last vertex is not, and is."""
    less, kinds = terms[0], terms[5]
    for s in range(number - 1, -1, -1):
        for r in range(primes.size):
            value = 0
            for j in range(2):
                c = kinds[kind, j]
                if c >= 0 and less[c, s] >= 0:
                    value += without[less[c, s], r]
            without[s, r] = (without[s, r] + within[s, r]) % primes[r]
            within[s, r] = value % primes[r]


@compiled
def _binomial(size, chosen, r, primes, inverses):
    if chosen > size:
        return np.int64(0)
    value = np.int64(1)
    for t in range(chosen):
        value = value * ((size - t) % primes[r]) % primes[r] * inverses[r, t + 1] % primes[r]
    return value


@compiled
def set_independent(polynomial, kind, size, number, terms, primes, inverses):
    """Make a polynomial that of vertices of a kind without edges."""
    less, upto, kinds = terms[0], terms[4], terms[5]
    polynomial[:number] = 0
    one, other = kinds[kind, 0], kinds[kind, 1]
    for s in range(number):
        at, chosen, more = s, 0, 0
        while one >= 0 and less[one, at] >= 0:
            at = less[one, at]
            chosen += 1
        while other >= 0 and less[other, at] >= 0:
            at = less[other, at]
            more += 1
        if at == 0 and chosen + more < upto.size:
            for r in range(primes.size):
                value = _binomial(size, chosen, r, primes, inverses)
                if more > 0:
                    value = value * _binomial(size - chosen, more, r, primes, inverses) % primes[r]
                polynomial[s, r] = value


@compiled
def choices(counts, size, named, free, r, primes, inverses):
    """Return the ways to choose the leaves, modulo a prime, of `size` vertices: `counts` of them of each label."""
    value, taken = np.int64(1), 0
    for c in range(named.size):
        value = value * _binomial(counts[c], named[c], r, primes, inverses) % primes[r]
        taken += named[c]
    return value * _binomial(size - taken, free, r, primes, inverses) % primes[r]
