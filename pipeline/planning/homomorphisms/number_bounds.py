"""Bound, in Python integers, all numbers that a table program computes in a graph, to see if they fit 64 bits.

Every table and every vector is bounded twice: by its largest number (`most`) and by the sum of all of them (`total`);
no number is negative. With d the largest degree, a sum over the neighbours of a vertex has at most d summands, and a
number of a vector is a summand of at most d such sums. So of sums over neighbours

- each is at most d `most`, and at most `total`, as no summand occurs twice in it;
- all together are at most d `total`.

A product is at most the product of the `most`, and all products together are at most the `total` of one factor times
the `most` of the others. That holds for each operation of any program, and so by induction for all its numbers.
Numbers of a star with k leaves reach d^k, those of a walk of two steps no more than the arcs of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import NamedTuple

from longwall.kernels.interface.homomorphism_program import Domain, Inner, Make, Op, RowProgram, Step, TableProgram


class Bound(NamedTuple):
    """Bounds of numbers that are not negative.

    Attributes
    ----------
    most
        Bound of each number.
    total
        Bound of their sum.
    """

    most: int
    total: int


class Sizes(NamedTuple):
    """The sizes of a graph that bound its numbers.

    Attributes
    ----------
    vertices, arcs, degree
        The number of vertices, the number of arcs, and the largest degree.
    """

    vertices: int
    arcs: int
    degree: int

    @property
    def pairs(self) -> int:
        """Bound of the walks of three steps between two vertices: arcs between their neighbours."""
        return min(self.degree**2, self.arcs)


@dataclass(frozen=True)
class ProgramBounds:
    """Bounds of a program's numbers.

    Attributes
    ----------
    largest
        Bound of all numbers that are taken modulo 2**64, except for the sums over rows.
    vertices
        Bounds of its tables over vertices.
    """

    largest: int
    vertices: tuple[Bound, ...]


def bound_program(program: TableProgram, sizes: Sizes, given: Sequence[Bound] = ()) -> ProgramBounds:
    """Bound the numbers of a program.

    Parameters
    ----------
    program
        The program.
    sizes
        The sizes of the graph.
    given
        The bounds of tables over vertices that it is given.
    """
    return _bounded(program, sizes, tuple(given))


@lru_cache(maxsize=64)  # Python computes them in 0.2 ms, as long as a device counts in a small graph
def _bounded(program: TableProgram, sizes: Sizes, given: tuple[Bound, ...]) -> ProgramBounds:
    bounds = _Bounds(program, sizes, given)
    for step in program.steps:
        bounds.make(step)
    for domain, rows in program.totals:
        bounds.run(rows, domain)
    return ProgramBounds(bounds.largest, tuple(bounds.vertices))


class _Bounds:
    """Bounds of tables, one after the other; parameters as of `bound_program`."""

    def __init__(self, program: TableProgram, sizes: Sizes, given: Sequence[Bound]):
        self._program, self._sizes, self._given = program, sizes, given
        self.vertices = [Bound(0, 0)] * program.vertex_tables
        self.arcs = [Bound(0, 0)] * program.arc_tables
        self.largest = 0

    def seen(self, bound: Bound) -> Bound:
        """Take note of numbers that are computed."""
        self.largest = max(self.largest, bound.most)
        return bound

    def make(self, step: Step) -> None:
        """Bound the table that a step makes."""
        vertices, arcs = self._sizes.vertices, self._sizes.arcs
        if step.make in (Make.VERTEX_ROWS, Make.ARC_ROWS):
            self.run(self._program.rows[step.sources[0]], "vertices" if step.make == Make.VERTEX_ROWS else "arcs")
        elif step.make == Make.GIVEN:
            self.vertices[step.target] = self.seen(self._given[step.sources[0]])
        elif step.make == Make.LABEL:
            self.vertices[step.target] = Bound(1, vertices)
        elif step.make == Make.MULTIPLY_VERTICES:
            factors = [self.vertices[source] for source in step.sources]
            self.vertices[step.target] = self.seen(_product(factors, vertices))
        elif step.make == Make.SUM_NEIGHBOURS:
            self.vertices[step.target] = self.seen(self._sum_neighbours(*step.sources))
        else:
            self.arcs[step.target] = self.seen(self._of_arcs(step, arcs))

    def _sum_neighbours(self, vertex: int, arc: int) -> Bound:
        sizes = self._sizes
        at_ends = Bound(1, sizes.vertices) if vertex < 0 else self.vertices[vertex]
        at_arcs = Bound(1, sizes.arcs) if arc < 0 else self.arcs[arc]
        found = _summed(at_ends, at_arcs.most, sizes.degree)
        total = min(found.total, at_ends.most * at_arcs.total)
        return _least(Bound(min(found.most, total), total), sizes.vertices)

    def _of_arcs(self, step: Step, arcs: int) -> Bound:
        sizes = self._sizes
        if step.make == Make.MULTIPLY_ARCS:
            return _product([self.arcs[source] for source in step.sources], arcs)
        if step.make in (Make.HEADS, Make.TAILS):
            table = self.vertices[step.sources[0]]
            return _least(Bound(table.most, sizes.degree * table.total), arcs)
        if step.make == Make.REVERSE:
            return self.arcs[step.sources[0]]
        if step.make == Make.ARC_TRIANGLES:
            return Bound(sizes.degree, arcs * sizes.degree)
        most = sizes.pairs
        if step.make == Make.INNER:  # two edges of four vertices, or an edge and a vertex of three, decide a map
            most *= sizes.degree if step.sources[0] == Inner.TRIANGLES else sizes.pairs
        return Bound(most, arcs * most)

    def run(self, rows: RowProgram, domain: Domain) -> None:
        """Bound the numbers that a row program computes, and the tables that it stores."""
        run = _RowBounds(self, rows, domain)
        for code, target, source, weight in rows.ops:
            run.apply(Op(code), target, source, weight)
        over_vertices = domain == "vertices"
        tables, number = (self.vertices, self._sizes.vertices) if over_vertices else (self.arcs, self._sizes.arcs)
        for place, table in rows.stored:
            most = prod(run.scalars[scalar] for scalar in rows.products[place])
            tables[table] = self.seen(Bound(most, number * most))

    def store(self, table: int, bound: Bound) -> None:
        """Bound a table over arcs whose rows are entries of a vector."""
        self.arcs[table] = Bound(bound.most, min(self._sizes.arcs * bound.most, self._sizes.vertices * bound.total))

    def bounds_of(self, domain: Domain) -> tuple[list[Bound], list[Bound]]:
        """Return the bounds of the tables over rows, and of the tables that weight dense vectors."""
        if domain == "vertices":
            return self.vertices, self.vertices
        return self.arcs, self.arcs if domain == "arcs" else self.vertices

    @property
    def sizes(self) -> Sizes:
        """The sizes of the graph."""
        return self._sizes


class _RowBounds:
    """Bounds of the vectors and scalars of any row."""

    def __init__(self, bounds: _Bounds, rows: RowProgram, domain: Domain):
        self._bounds, self._sizes = bounds, bounds.sizes
        self._length = bounds.sizes.degree if domain == "arcs" else bounds.sizes.vertices
        self._twice = 1 + rows.symmetric
        self._tables, self._dense_tables = bounds.bounds_of(domain)
        self.local = [Bound(0, 0)] * rows.num_local
        self.dense = [Bound(0, 0)] * rows.num_dense
        self.scalars = [0] * rows.num_scalars

    def apply(self, code: Op, target: int, source: int, weight: int) -> None:
        """Bound the result of an operation."""
        if code in (Op.SUM, Op.SUM_DENSE, Op.LOAD):
            self.scalars[target] = self._scalar(code, source)
            self._bounds.seen(Bound(self.scalars[target], 0))
        elif code == Op.STORE_LOCAL:
            self._bounds.store(target, self.local[source])
        elif code in (Op.ONES, Op.PULL, Op.MULTIPLY, Op.WEIGH, Op.GATHER, Op.WEIGH_ARC, Op.WEIGH_ACROSS):
            found = self._of_row(code, target, source, weight)
            self.local[target] = self._bounds.seen(_least(found, self._sizes.degree))
        else:
            found = self._of_graph(code, target, source, weight)
            self.dense[target] = self._bounds.seen(_least(found, self._length))

    def _scalar(self, code: Op, source: int) -> int:
        if code == Op.LOAD:
            return self._tables[source].most
        return self.local[source].total if code == Op.SUM else self._twice * self.dense[source].total

    def _of_row(self, code: Op, target: int, source: int, weight: int) -> Bound:
        degree = self._sizes.degree
        if code == Op.ONES:
            return Bound(1, degree)
        if code == Op.PULL:
            return _summed(self.dense[source], self._weight(weight), degree)
        if code == Op.GATHER:
            return self.dense[source]
        if code == Op.MULTIPLY:
            factor = self.local[source]
        else:
            factor = self._tables[source] if code == Op.WEIGH else self._bounds.arcs[source]
        return _product([self.local[target], factor], degree)

    def _of_graph(self, code: Op, target: int, source: int, weight: int) -> Bound:
        if code in (Op.PUSH, Op.WIDEN):
            vector = self.local[source] if code == Op.PUSH else self.dense[source]
            return _summed(vector, self._weight(weight), self._sizes.degree)
        if code == Op.PUSH_EDGES:
            return Bound(self._sizes.pairs, self._length * self._sizes.pairs)
        if code == Op.SCATTER:
            return self.local[source]
        if code == Op.COPY_DENSE:
            return self.dense[source]
        assert code in (Op.MULTIPLY_DENSE, Op.WEIGH_DENSE)
        factor = self.dense[source] if code == Op.MULTIPLY_DENSE else self._dense_tables[source]
        return _product([self.dense[target], factor], self._length)

    def _weight(self, table: int) -> int:
        return 1 if table < 0 else self._bounds.arcs[table].most


def _product(factors: Sequence[Bound], number: int) -> Bound:
    """Bound `number` products, each of one number of every factor."""
    most = prod(factor.most for factor in factors)
    rest = partial(_without, factors)
    totals = [factor.total * rest(place) for place, factor in enumerate(factors)]
    return Bound(most, min([number * most, *totals]))


def _without(factors: Sequence[Bound], place: int) -> int:
    return prod(factor.most for other, factor in enumerate(factors) if other != place)


def _summed(vector: Bound, weight: int, degree: int) -> Bound:
    """Bound the sums over neighbours of the numbers of a vector, each times a weight of at most `weight`."""
    return Bound(min(degree * vector.most, vector.total) * weight, degree * vector.total * weight)


def _least(bound: Bound, number: int) -> Bound:
    """Bound `number` numbers, each within the same bound."""
    return Bound(bound.most, min(bound.total, number * bound.most))
