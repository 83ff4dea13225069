"""Table programs: homomorphism counts of several patterns, by tables over vertices and arcs.

A *table* has a number for every vertex, or for every arc (v, x), of the graph. A table program makes tables of tables,
and then sums products over all *rows*. A row is that of a vertex v, whose entries are its neighbours x, or that of an
arc (v, x), whose entries are the arcs (v, y) to the common neighbours y of its ends: rows of arcs are neighbourhoods as
graphs of their own. Whatever runs on the graph therefore runs inside the neighbourhoods, too, where the tables over
arcs are what those over vertices are in the graph. A third kind of rows is that of an arc (v, x) with the same entries,
from which passes lead to the neighbours of their ends y in the whole graph.

A row program is what is computed for one row: the image of one pattern vertex is fixed such that the pattern without
it is a forest, and homomorphisms of the forest are counted by dynamic programming from the leaves, with vectors in
place of numbers: a *local* vector has an entry for every entry of the row, a *dense* one for every vertex of the graph
(with rows of arcs, for every arc of v). Engines run it for all rows.

This module only holds data; :mod:`longwall.pipeline.planning.homomorphisms.decompositions` builds it, and engines run
it.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any  # a NumPy or a CuPy array

MAX_SCALARS = 64  # room that engines have for them
Domain = Literal["vertices", "arcs", "common"]
"""Whose rows a row program runs over; those of arcs with passes among v's neighbours, or ("common") over the graph."""


class Op(IntEnum):
    """One vector operation: (code, target, source, weight).

    Weights of passes are tables over arcs, -1 for none; only rows of vertices have them. With arcs as rows,
    `vertex table` below means a table over arcs, which are the entries; with passes over the graph ("common") it
    does so except for WEIGH_DENSE, and passes have weights as well.
    """

    ONES = 0  # local[target] = 1
    PULL = 1  # local[target][x] = sum of weight[x, z] dense[source][z] over the neighbours z of x
    SCATTER = 2  # dense[target][x] = local[source][x] on the entries of the row, 0 elsewhere
    MULTIPLY = 3  # local[target] *= local[source]
    WEIGH = 4  # local[target][x] *= vertex table[source][x]
    PUSH = 5  # dense[target][z] = sum of weight[x, z] local[source][x] over the entries x that are neighbours of z
    COPY_DENSE = 6  # dense[target] = dense[source]
    MULTIPLY_DENSE = 7  # dense[target] *= dense[source]
    WEIGH_DENSE = 8  # dense[target][z] *= vertex table[source][z]
    WIDEN = 9  # dense[target][z] = sum of weight[z, y] dense[source][y] over the neighbours y of z
    SUM = 10  # scalar[target] = sum of local[source]
    SUM_DENSE = 11  # scalar[target] = sum of dense[source]
    GATHER = 12  # local[target][x] = dense[source][x]
    LOAD = 13  # scalar[target] = vertex table[source] at the row
    WEIGH_ARC = 14  # rows of vertices: local[target][x] *= arc table[source][v, x]
    STORE_LOCAL = 15  # rows of vertices: arc table[target][v, x] = local[source][x]
    PUSH_EDGES = 16  # rows of vertices: dense[target][z] = pairs (x, y) of adjacent common neighbours of v and z
    WEIGH_ACROSS = 17  # rows of arcs (v, x): local[target][y] *= arc table[source][x, y]


@dataclass(frozen=True)
class RowProgram:
    """Vector operations for one row, and what they add up to.

    Attributes
    ----------
    ops
        (code, target, source, weight) each, in order.
    num_local, num_dense, num_scalars
        How many vectors and scalars the operations use.
    products
        The scalars whose product is summed over all rows.
    stored
        (product, table): at each row, the product is an entry of a table over the rows.
    symmetric
        Whether dense vectors are only computed up to the vertex of the row: those of two vertices have the same number
        at each other. SUM_DENSE counts all but the last one twice.
    passes
        Number of PULL and PUSH operations: the cost, in units of the sum of squared lengths of the rows.
    edge_passes
        Number of PUSH_EDGES operations: the cost, in units of the sum of squared triangles per arc.
    wide_passes
        Number of WIDEN operations: the cost, in units of vertices times arcs or, with rows of arcs, of the sum of the
        arcs of the neighbourhood of v, at most. Its vector may have a number for every vertex (for every arc of v), not
        only for those within two steps of v; on a device all vectors of such a program are taken to have.
    """

    ops: tuple[tuple[int, int, int, int], ...]
    num_local: int
    num_dense: int
    num_scalars: int
    products: tuple[tuple[int, ...], ...]
    stored: tuple[tuple[int, int], ...] = ()
    symmetric: bool = False
    passes: int = 0
    edge_passes: int = 0
    wide_passes: int = 0

    def __hash__(self) -> int:
        return hash((self.products, len(self.ops)))  # hashing all operations takes 5 us

    def packed(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The operations (int64[n, 4]), products (int64[m, width], padded with -1), and stored (int64[s, 2])."""
        width = max([len(p) for p in self.products] + [1])
        products = [[*p, *[-1] * (width - len(p))] for p in self.products]
        return (
            np.array(self.ops, np.int64).reshape(-1, 4),
            np.array(products, np.int64).reshape(-1, width),
            np.array(self.stored, np.int64).reshape(-1, 2),
        )


class TotalRows(NamedTuple):
    """A row program whose products are totals, and the domain of its rows."""

    domain: Domain
    rows: RowProgram


class Make(IntEnum):
    """How a table is made, and of which sources."""

    MULTIPLY_VERTICES = 0  # vertex table = product of vertex tables; ones, if of none
    MULTIPLY_ARCS = 1  # arc table = product of arc tables; ones, if of none
    SUM_NEIGHBOURS = 2  # vertex table[v] = sum of arc table[v, x] * vertex table[x] over v's neighbours; -1: ones
    HEADS = 3  # arc table[v, x] = vertex table[x]
    TAILS = 4  # arc table[v, x] = vertex table[v]
    REVERSE = 5  # arc table[v, x] = arc table[x, v]
    ARC_TRIANGLES = 6  # arc table[v, x] = number of common neighbours
    PATHS = 7  # arc table[v, x] = number of walks of three steps from v to x
    VERTEX_ROWS = 8  # what a row program over vertices stores; source: its number
    ARC_ROWS = 9  # what a row program over arcs stores
    CLIQUES = 10  # arc table[v, x] = number of ordered pairs of adjacent common neighbours
    GIVEN = 11  # vertex table = one that the program is given; source: its number
    LABEL = 12  # vertex table = 1 where a vertex has a label, else 0; source: the label
    INNER = 13  # arc table[v, x] = homomorphisms of a small pattern to the common neighbours; source: an `Inner`


class Inner(IntEnum):
    """What is counted among the common neighbours of the ends of an arc."""

    TRIANGLES = 0
    PAWS = 1  # a triangle with a tail
    CYCLES = 2  # of four vertices
    DIAMONDS = 3


class CodegreePattern(IntEnum):
    """What four vertices are beside two others, a and b, that need not be adjacent: a pattern of six vertices.

    Vertices that are adjacent to both are common ones. If nothing else is said, all others are adjacent to a alone.
    """

    CHERRY = 0  # a path of three vertices and one more, all common
    TRIANGLE = 1  # a triangle and one more vertex, all common
    PATH = 2  # of four common vertices
    PAW = 3  # a triangle with a tail, all common
    CYCLE = 4  # of four common vertices
    ENDS = 5  # a path of four, whose ends are common
    FORK = 6  # a path of three, whose ends are common, and one more common vertex
    ZIGZAG = 7  # a path of four, all common but the second
    TAIL = 8  # a triangle with a tail, all common but the vertex with the tail
    STAR = 9  # three common vertices, and one that is adjacent to these alone
    CROSS = 10  # three common vertices, and one that is adjacent to two of them alone; it may be the third
    SPLIT = 11  # two common vertices, one adjacent to a and the first, and one to that and the second; it may be b

    @property
    def symmetric(self) -> bool:
        """Whether a and b are alike, and only pairs with b < a are looked at."""
        return self <= CodegreePattern.CYCLE or self == CodegreePattern.STAR

    @property
    def common(self) -> int:
        """The fewest common neighbours of a pair that counts."""
        fewer = {
            CodegreePattern.ENDS: 2,
            CodegreePattern.FORK: 3,
            CodegreePattern.ZIGZAG: 3,
            CodegreePattern.TAIL: 3,
            CodegreePattern.STAR: 3,
        }
        return fewer.get(self, 2 if self in (CodegreePattern.CROSS, CodegreePattern.SPLIT) else 4)

    @property
    def maps_each(self) -> int:
        """How many maps are counted as one: those of pairs, or of three vertices, in any order."""
        return 6 if self == CodegreePattern.STAR else 1 + self.symmetric

    @property
    def has_codegrees(self) -> bool:
        """Whether the common neighbours of every two neighbours of a are counted."""
        return self in (CodegreePattern.CROSS, CodegreePattern.SPLIT)


def largest_part(num_arcs: int, max_degree: int) -> int:
    """Bound the maps that a counter of pairs adds up at once: for one pair, with one vertex or an edge fixed.

    A sum has at most min(2m, d^2) addends, one for each arc between neighbours of a vertex of degree d. An addend is a
    product of two numbers that are at most the largest degree.
    """
    return min(num_arcs, max_degree**2) * max_degree**2


class Step(NamedTuple):
    """One table from others."""

    make: Make
    target: int
    sources: tuple[int, ...] = ()


@dataclass(frozen=True)
class TableProgram:
    """Tables, one after the other, and what is summed over rows in the end.

    Attributes
    ----------
    vertex_tables, arc_tables
        How many tables there are.
    steps
        What makes them, in order.
    rows
        The row programs of the steps.
    totals
        The sums over rows. The totals of the program are the products of these row programs, in order.
    lists
        Whether something besides the rows reads the lists of common neighbours.
    """

    vertex_tables: int
    arc_tables: int
    steps: tuple[Step, ...]
    rows: tuple[RowProgram, ...]
    totals: tuple[TotalRows, ...] = ()
    lists: bool = False

    def __hash__(self) -> int:
        return hash((self.vertex_tables, self.arc_tables, len(self.steps), self.rows))  # hashing all steps takes 10 us

    @property
    def every_rows(self) -> tuple[RowProgram, ...]:
        """The row programs of the steps, and those of the totals."""
        return (*self.rows, *(total.rows for total in self.totals))

    @cached_property
    def needs_lists(self) -> bool:
        """Whether the common neighbours of all arcs are listed."""
        lists = any(step.make in (Make.ARC_ROWS, Make.INNER) for step in self.steps)
        edges = any(op[0] == Op.PUSH_EDGES for rows in self.every_rows for op in rows.ops)
        return self.lists or lists or edges or any(total.domain != "vertices" for total in self.totals)

    @cached_property
    def needs_reverse(self) -> bool:
        """Whether the place of every arc's reverse is listed."""
        across = (Op.WEIGH_ACROSS, Op.PUSH_EDGES)
        rows = any(op[0] in across for rows in self.every_rows for op in rows.ops)
        return rows or any(step.make in (Make.REVERSE, Make.INNER) for step in self.steps)

    @cached_property
    def reads_arcs(self) -> bool:
        """Whether kernels read the graph from many places at once, and so all of it has to be there."""
        return (
            self.needs_lists
            or self.needs_reverse
            or any(step.make in (Make.ARC_TRIANGLES, Make.PATHS, Make.CLIQUES) for step in self.steps)
        )


FLOATING = -1
"""In place of a modulus: counts in floating point, which say how large they are."""
WORD = 0
"""In place of a modulus: counts modulo 2**64."""


@dataclass(frozen=True)
class RowTables:
    """Tables and lists, where an engine's kernels read them.

    Attributes
    ----------
    modulus
        Modulus of all numbers: a prime below 2**31, `WORD`, or `FLOATING`.
    vertices : int64[vertex tables, num_vertices] or float64
    arcs : int64[arc tables, num_arcs] or float64
    reverse : uint32[num_arcs] or uint32[0]
        Place of the arc (x, v) for every arc (v, x).
    common_indptr : int64[num_arcs + 1] or int64[0]
    common : uint32[6 * triangles] or uint32[0]
        For every arc (v, x) the places of the arcs (v, y) to the common neighbours y of its ends, ascending.
    longest
        The most common neighbours of an arc.
    """

    modulus: int
    vertices: Array
    arcs: Array
    reverse: Array
    common_indptr: Array
    common: Array
    longest: int

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.vertices, self.arcs, self.reverse, self.common_indptr, self.common)
        return sum(int(array.nbytes) for array in arrays)
