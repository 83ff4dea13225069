"""Count embeddings through homomorphisms, without enumerating anything.

The number of injective homomorphisms of a pattern is a fixed linear combination of the numbers of all
homomorphisms of its quotients, the patterns that arise when non-adjacent vertices are merged (Lovasz; Curticapean,
Dell and Marx, STOC 2017). Quotients of several patterns are often the same, and are counted once; how each is counted
is found by :mod:`longwall.pipeline.planning.decompositions`. Cliques and the cycle of five vertices have kernels of
their own, which count subgraphs in the order of their degrees.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import factorial
from typing import Literal, NamedTuple

from longwall.kernels.interface.homomorphism_program import Make, RowProgram, TableProgram
from longwall.kernels.patterns.pattern_codes import MAX_VERTICES as MAX_CANONICAL
from longwall.kernels.patterns.pattern_codes import canonical_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import isomorphic
from longwall.pipeline.planning.decompositions import Decomposer
from longwall.pipeline.planning.pattern_core import NoDecomposition, PassCosts, Sum
from longwall.pipeline.planning.set_partitions import set_partitions
from longwall.pipeline.planning.table_compiler import compile_sums

MAX_VERTICES = 8  # 4,140 set partitions; the next size has 21,147
_TRIANGLE, _CYCLE = 3, 5
_STEPS = {Make.PATHS: 0.5, Make.TRIANGLES: 0.25}  # of what makes a table over arcs, in units of squared degrees
Edges = tuple[tuple[int, int], ...]


class Term(NamedTuple):
    """One summand of a number of mappings."""

    coefficient: int
    kind: Literal["total", "cliques", "five-cycles"]
    """A total of the program, or what a kernel of its own counts as subgraphs."""
    number: int
    """Of the total; vertices of the cliques."""


@dataclass(frozen=True)
class HomomorphismSums:
    """How the mappings (injective homomorphisms) of several patterns are put together.

    Attributes
    ----------
    patterns
        The patterns.
    program
        Counts homomorphisms.
    quotients
        The quotient that each total of the program counts.
    terms
        The summands of each pattern.
    costs
        What passes over the graph cost.
    """

    patterns: tuple[Pattern, ...]
    program: TableProgram
    quotients: tuple[Pattern, ...]
    terms: tuple[tuple[Term, ...], ...]
    costs: PassCosts

    @property
    def cost(self) -> float:
        """Elementary steps of the program."""
        program, costs = self.program, self.costs
        total = rows_cost(program.vertices, costs.vertices, costs) + rows_cost(program.arcs, costs.arcs, costs)
        for step in program.steps:
            if step.make in (Make.VERTEX_ROWS, Make.ARC_ROWS):
                unit = costs.vertices if step.make == Make.VERTEX_ROWS else costs.arcs
                total += rows_cost(program.rows[step.sources[0]], unit, costs)
            elif step.make in _STEPS:
                total += costs.vertices * _STEPS[step.make]
        return total + (costs.vertices if program.needs_lists else 0.0)

    @property
    def tables_text(self) -> str:
        """What is made before rows are counted."""
        program = self.program
        kinds = Counter(step.make for step in program.steps)
        made = ", ".join(f"{number} x {make.name.lower().replace('_', ' ')}" for make, number in kinds.items())
        lists = "the common neighbours of every edge; " if program.needs_lists else ""
        return f"tables       {lists}{program.vertex_tables} over vertices and {program.arc_tables} over arcs" + (
            f": {made}" if made else ""
        )


@lru_cache(maxsize=256)
def plan_homomorphisms(patterns: tuple[Pattern, ...], costs: PassCosts) -> HomomorphismSums | None:
    """Find sums for unlabelled patterns; None where one of them has none.

    Parameters
    ----------
    patterns
        The patterns, of at most `MAX_VERTICES` vertices.
    costs
        What passes over the graph cost.
    """
    if any(pattern.labels is not None or pattern.num_vertices > MAX_VERTICES for pattern in patterns):
        return None
    needed = [quotients(pattern) for pattern in patterns]
    wanted = sorted({edges for some in needed for edges, _ in some}, key=lambda edges: (-len(edges), edges))
    decomposer = Decomposer(costs)
    sums: list[Sum] = []
    counted: dict[Edges, int] = {}
    try:
        for edges in wanted:
            if _kernel(edges) is None:
                counted[edges] = len(sums)
                sums.append(decomposer.count(_pattern(edges)))
        program, places = compile_sums(sums)
    except NoDecomposition:
        return None
    of_total = dict(zip(places, counted, strict=True))
    terms = tuple(
        tuple(
            Term(coefficient, *(_kernel(edges) or ("total", places[counted[edges]])))
            for edges, coefficient in _without_multiples(some)
        )
        for some in needed
    )
    counts = tuple(_pattern(of_total[place]) for place in sorted(of_total))
    return HomomorphismSums(patterns, program, counts, terms, costs)


def _kernel(edges: Edges) -> tuple[Literal["cliques", "five-cycles"], int] | None:
    """Return which kernel counts the subgraphs of a pattern, None if there is none."""
    size = 1 + max(v for _, v in edges)
    if size > _TRIANGLE and len(edges) == size * (size - 1) // 2:
        return "cliques", size
    degrees = Counter(v for edge in edges for v in edge)
    return ("five-cycles", _CYCLE) if size == len(edges) == _CYCLE and set(degrees.values()) == {2} else None


def _without_multiples(some: Sequence[tuple[Edges, int]]) -> list[tuple[Edges, int]]:
    """Write homomorphisms of patterns that kernels count as subgraphs by means of these."""
    found: Counter[Edges] = Counter()
    for edges, coefficient in some:
        kernel = _kernel(edges)
        if kernel is None:
            found[edges] += coefficient
        elif kernel[0] == "cliques":
            found[edges] += coefficient * factorial(kernel[1])
        else:
            # All but the mappings: 5 and 10 times two of the vertices, or two pairs of them, have one image.
            found[edges] += coefficient * 2 * _CYCLE
            for quotient, multiple in quotients(_pattern(edges)):
                if quotient != edges:
                    found[quotient] -= coefficient * multiple
    return [(edges, coefficient) for edges, coefficient in found.items() if coefficient]


def _pattern(edges: Edges) -> Pattern:
    return Pattern(1 + max(v for _, v in edges), edges)


@lru_cache(maxsize=1 << 10)
def quotients(pattern: Pattern) -> tuple[tuple[Edges, int], ...]:
    """Return the canonical edges of all loop-free quotients of a pattern, with their coefficients."""
    found: Counter[Edges] = Counter()
    for partition in set_partitions(range(pattern.num_vertices)):
        merged = {v: i for i, block in enumerate(partition) for v in block}
        edges = {(min(merged[u], merged[v]), max(merged[u], merged[v])) for u, v in pattern.edges}
        if any(u == v for u, v in edges):
            continue
        coefficient = 1
        for block in partition:
            coefficient *= (-1) ** (len(block) - 1) * factorial(len(block) - 1)
        found[canonical_pattern(tuple(sorted(edges)), None, len(partition))[0]] += coefficient
    return tuple((edges, coefficient) for edges, coefficient in found.items() if coefficient)


def denser(pattern: Pattern) -> tuple[tuple[Pattern, int], ...]:
    """Return the patterns with the same vertices and more edges, with the signs of inclusion-exclusion."""
    pairs = sorted(set(combinations(range(pattern.num_vertices), 2)) - set(pattern.edges))
    found: dict[Pattern, int] = {}
    for size in range(len(pairs) + 1):
        for added in combinations(pairs, size):
            more = _canonical(Pattern(pattern.num_vertices, tuple(sorted({*pattern.edges, *added}))), found)
            found[more] = found.get(more, 0) + (-1) ** size
    return tuple((more, coefficient) for more, coefficient in found.items() if coefficient)


def _canonical(pattern: Pattern, known: Iterable[Pattern]) -> Pattern:
    """Return the canonical form of a pattern; where it has many vertices, the same one among those that are known."""
    if pattern.num_vertices <= MAX_CANONICAL:
        return _pattern(canonical_pattern(pattern.edges, None, pattern.num_vertices)[0])
    return next((one for one in known if isomorphic(one, pattern)), pattern)


def rows_cost(rows: RowProgram, unit: float, costs: PassCosts) -> float:
    """Return the elementary steps of a row program whose passes take `unit` steps."""
    return rows.passes * unit + rows.edge_passes * costs.arcs + rows.wide_passes * costs.wide
