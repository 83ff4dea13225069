"""What is left of a pattern while it is decomposed, and the expressions that stand for what was taken away.

:mod:`longwall.pipeline.planning.homomorphisms.decompositions` says what the expressions are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from longwall.kernels.interface.homomorphism_program import Domain
from longwall.pipeline.patterns.pattern import Pattern
from longwall.storage.graph.stats import GraphStats

Expression = tuple[Any, ...]
Table = Expression | None
_PASSES = ("pull", "push", "widen", "edges")
_VERTEX_STEPS, _ARC_STEPS, _WIDE_STEPS, _ENTRY_STEPS = 0.6, 0.3, 0.65, 1.2  # of what a search reads (measured)
_COMMON_STEPS = 1.5  # the same; common neighbours have higher degrees than ends of arcs
_TRIANGLE_SKEW = 3.0  # how much larger the mean square of the triangles of an arc is than the square of their mean


class NoDecomposition(Exception):
    """What is left of a pattern has no way to be counted by tables."""


@dataclass(frozen=True)
class PassCosts:
    """Elementary steps of passes over all rows.

    Attributes
    ----------
    vertices
        Of a pass over the rows of vertices: the sum of squared degrees.
    arcs
        Of a pass over the rows of arcs: the sum of squared common neighbours.
    wide
        Of a pass over the whole graph for each vertex.
    lists
        Whether the common neighbours of all arcs may be listed; else only rows of vertices are used.
    entries
        Of an operation on the entries of all rows.
    common
        Of a pass over the graph from the entries of the rows of arcs: the sum of the degrees of all common neighbours.
        It is that of the arcs of v's neighbourhood, for all arcs (v, x), as well.
    """

    vertices: float
    arcs: float
    wide: float
    lists: bool = True
    entries: float = 0.0
    common: float = 0.0

    def of(self, domain: Domain, passes: Iterable[Expression]) -> float:
        """Return the steps of passes over the rows of a domain."""
        rows, wide = self.row(domain), self.wide_row(domain)
        kinds = {"pull": rows, "push": rows, "widen": wide, "edges": self.arcs}
        return sum(kinds[one[0]] for one in passes)

    def row(self, domain: Domain) -> float:
        """Return the steps of a pass over the rows of the entries, for all rows of a domain."""
        return {"vertices": self.vertices, "arcs": self.arcs, "common": self.common}[domain]

    def wide_row(self, domain: Domain) -> float:
        """Return the steps of a pass over all that dense vectors have entries for, for all rows of a domain."""
        return self.common if domain == "arcs" else self.wide


def pass_costs(stats: GraphStats) -> PassCosts:
    """Return what passes over a graph cost."""
    arcs = 2.0 * max(stats.num_edges, 1)
    common = stats.closed_wedge_fraction * (stats.sum_degree_squared - arcs)
    return PassCosts(
        vertices=_VERTEX_STEPS * stats.sum_degree_squared,
        arcs=_ARC_STEPS * _TRIANGLE_SKEW * common * common / arcs,
        wide=_WIDE_STEPS * stats.num_vertices * arcs,
        entries=_ENTRY_STEPS * arcs,
        common=_COMMON_STEPS * common * stats.sum_degree_squared / arcs,
    )


class Sum(NamedTuple):
    """A number of homomorphisms: a product of scalars, summed over the rows of a domain."""

    domain: Domain
    scalars: tuple[Expression, ...]


def passes_of(expression: Any) -> set[Expression]:
    """Return the passes below the vectors of an expression, those of its tables left out."""
    if not isinstance(expression, tuple) or not expression:
        return set()
    if expression[0] in ("weigh", "warc", "across", "load"):
        return set()
    found = {expression} if expression[0] in _PASSES else set()
    parts = expression[1:2] if expression[0] in _PASSES else expression[1:]
    for part in parts:
        found |= passes_of(part)
    return found


def reversed_table(table: Expression) -> Expression:
    """Return the arc table whose number of (x, v) is that of (v, x)."""
    if table[0] in ("triangles", "paths", "cliques", "inner"):
        return table
    if table[0] == "rev":
        found: Expression = table[1]
        return found
    if table[0] in ("head", "tail"):
        return ("tail" if table[0] == "head" else "head", table[1])
    if table[0] == "tri":
        return ("tri", table[3], table[2], table[1])
    return ("rev", table)


def product(kind: str, factors: list[Expression]) -> Table:
    """Return the product of tables of a kind, "vprod" or "aprod"."""
    if len(factors) < 2:
        return factors[0] if factors else None
    return (kind, *sorted(factors, key=repr))


@dataclass
class Core:
    """What is left of a pattern, with the factors of what was taken away.

    Attributes
    ----------
    near
        Neighbours of each vertex.
    vertex
        Factors of each vertex: vertex tables.
    arc
        Factors of each edge (u, v), u < v: arc tables.
    """

    near: dict[int, set[int]]
    vertex: dict[int, list[Expression]] = field(default_factory=dict)
    arc: dict[tuple[int, int], list[Expression]] = field(default_factory=dict)

    @classmethod
    def of(cls, pattern: Pattern, weights: Mapping[int, Expression] | None = None) -> "Core":
        """Return a whole pattern, whose vertices may have weights."""
        near = {v: set(near) for v, near in enumerate(pattern.neighbours)}
        return cls(near, {v: [table] for v, table in (weights or {}).items()})

    def part(self, vertices: set[int], bare: tuple[int, ...] = ()) -> "Core":
        """Return the part of some vertices; without the factors at and between those of `bare`."""
        return Core(
            {v: self.near[v] & vertices for v in vertices},
            {v: list(found) for v, found in self.vertex.items() if v in vertices and v not in bare},
            {
                (u, v): list(found)
                for (u, v), found in self.arc.items()
                if {u, v} <= vertices and not {u, v} <= set(bare)
            },
        )

    def factors(self, v: int, w: int) -> list[Expression]:
        """Return the factors of an edge, as tables over arcs from v to w."""
        found = self.arc.get((min(v, w), max(v, w)), [])
        return list(found) if v < w else [reversed_table(table) for table in found]

    def table(self, v: int, w: int) -> Table:
        """Return the product of `factors`."""
        return product("aprod", self.factors(v, w))

    def weigh(self, v: int, w: int, table: Table) -> None:
        """Add a factor to an edge, a table over arcs from v to w."""
        if table is not None:
            self.arc.setdefault((min(v, w), max(v, w)), []).append(table if v < w else reversed_table(table))

    def is_bare(self, *vertices: int) -> bool:
        """Whether vertices, and the edges between them, have no factors."""
        return not any(self.vertex.get(v) for v in vertices) and not any(
            self.factors(v, w) for v, w in combinations(vertices, 2)
        )

    def remove(self, vertices: Iterable[int]) -> None:
        """Remove vertices with their edges."""
        for v in vertices:
            for w in self.near.pop(v):
                if w in self.near:
                    self.near[w].discard(v)
                self.arc.pop((min(v, w), max(v, w)), None)
            self.vertex.pop(v, None)

    def parts(self, without: set[int]) -> list[set[int]]:
        """Return the connected parts that are left without some vertices."""
        todo, found = set(self.near) - without, []
        while todo:
            part, frontier = set(), [min(todo)]
            while frontier:
                v = frontier.pop()
                if v not in part:
                    part.add(v)
                    frontier.extend(self.near[v] - without)
            todo -= part
            found.append(part)
        return found
