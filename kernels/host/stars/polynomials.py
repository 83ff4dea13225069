"""Independence polynomials, up to the numbers of leaves of a star and modulo primes.

A polynomial has a variable for each class of leaves (the leaves that want the same label). The coefficient of x^a y^b
is the number of ways to choose an independent set and to give a of its vertices to the first class and b to the second.
A polynomial is an array int64[coefficients, primes], in the order of the degrees; primes are below 2**31, so that
products fit. `terms` are `Leaves.terms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.jit.compile import compiled

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Leaves:
    """The leaves of a star.

    Attributes
    ----------
    named
        The number of leaves that want each label.
    free
        The number of leaves that may have any label.
    """

    named: tuple[int, ...]
    free: int

    @property
    def number(self) -> int:
        """The number of leaves."""
        return sum(self.named) + self.free

    @property
    def classes(self) -> tuple[int, ...]:
        """The number of leaves of each class; leaves of any label, if the star has some, are the last class."""
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
        """Tables for the kernels, in this order.

        int64[classes, coefficients]
            For each coefficient, the coefficient with one vertex less of a class; -1 if it does not exist.
        int64[coefficients + 1]
            For each coefficient, the index of its first product.
        int64[products], int64[products]
            The two coefficients that each product multiplies.
        int64[number + 1]
            For each degree, the number of coefficients of this degree or a smaller one.
        int64[kinds, 2]
            For each kind of vertices, the one or two classes that its vertices can be given to; -1 for no class. The
            kinds are the labels that leaves want, then one kind for all other labels.
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
    """Set the first `number` coefficients of a polynomial to those of 1."""
    polynomial[:number] = 0
    polynomial[0] = 1


@compiled
def multiply(polynomial, factor, number, terms, primes):
    """Multiply a polynomial by another one, up to the first `number` coefficients."""
    starts, first, second = terms[1], terms[2], terms[3]
    for s in range(number - 1, -1, -1):
        for r in range(primes.size):
            value = 0
            for i in range(starts[s], starts[s + 1]):
                value = (value + polynomial[first[i], r] * factor[second[i], r]) % primes[r]
            polynomial[s, r] = value


@compiled
def add_vertices(polynomial, factor, kind, size, number, terms, primes):
    """Add `factor` times the ways to choose one of `size` vertices of a kind."""
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
    """Extend a path by a vertex: `without` has the sets without its last vertex, `within` the sets with it."""
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
    """Compute the polynomial of isolated vertices of one kind."""
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
    """Return the number of ways to choose the leaves among `size` vertices, `counts` of each label, modulo a prime."""
    value, taken = np.int64(1), 0
    for c in range(named.size):
        value = value * _binomial(counts[c], named[c], r, primes, inverses) % primes[r]
        taken += named[c]
    return value * _binomial(size - taken, free, r, primes, inverses) % primes[r]
