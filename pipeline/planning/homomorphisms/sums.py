"""Count embeddings through homomorphisms, without enumerating anything.

The number of injective homomorphisms of a pattern is a fixed linear combination of the numbers of all
homomorphisms of its quotients, the patterns that arise when non-adjacent vertices are merged (Lovasz; Curticapean,
Dell and Marx, STOC 2017). Quotients of several patterns are often the same, and are counted once; how each is counted
is found by :mod:`longwall.pipeline.planning.homomorphisms.decompositions`. Cliques, the cycle of five vertices, the
wheel of four spokes, the clique of five less an edge and the prism have kernels of their own, which count subgraphs,
each once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import factorial, prod
from typing import Literal, NamedTuple

from longwall.kernels.host.patterns.pattern_codes import MAX_VERTICES as MAX_CANONICAL
from longwall.kernels.host.patterns.pattern_codes import canonical_pattern
from longwall.kernels.interface.homomorphism_program import CodegreePattern, Domain, Make, RowProgram, TableProgram
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, isomorphic
from longwall.pipeline.planning.homomorphisms.decompositions import Decomposer
from longwall.pipeline.planning.homomorphisms.pairs import Edges, codegree_edges, codegree_patterns, merged_edges
from longwall.pipeline.planning.homomorphisms.pattern_core import Expression, NoDecomposition, PassCosts
from longwall.pipeline.planning.homomorphisms.set_partitions import set_partitions
from longwall.pipeline.planning.homomorphisms.table_compiler import compile_sums

MAX_VERTICES = 8  # 4,140 set partitions; the next size has 21,147
_TRIANGLE = 3
_FOUR_CLIQUE = tuple(combinations(range(4), 2))
# Of what makes a table over arcs, in units of squared degrees.
_STEPS = {Make.PATHS: 0.5, Make.ARC_TRIANGLES: 0.25, Make.CLIQUES: 0.25}  # in passes over the rows of vertices
_INNER_STEPS = 1.0  # in passes over the rows of arcs, of a table of what is among common neighbours
# Of pairs of vertices, in passes from common neighbours over the graph: what is taken of their tables (measured).
_PAIR_STEPS = {
    CodegreePattern.CHERRY: 0.15,
    CodegreePattern.FORK: 0.3,
    CodegreePattern.ENDS: 0.5,
    CodegreePattern.ZIGZAG: 0.6,
    CodegreePattern.TAIL: 0.6,
}
_OTHER_PAIR_STEPS = 0.25
_PRISM_STEPS = 0.5  # the same, of prisms
_STAR_STEPS = 0.6  # in squares of a pass over the rows of vertices, for an operation on all entries
_WEDGE_LISTS = 2.0  # passes over the rows of vertices that it takes to list the wedges of every vertex by their ends
_LISTS = 3.0  # passes over the rows of vertices that it takes to list common neighbours
Kind = Literal["cliques", "five-cycles", "wheels", "almost-cliques", "pairs", "prisms"]
"""What kernels of their own count."""
_BY_DEGREES: dict[tuple[int, ...], Kind] = {
    (2, 2, 2, 2, 2): "five-cycles",
    (3, 3, 3, 3, 4): "wheels",
    (3, 3, 4, 4, 4): "almost-cliques",
    (3, 3, 3, 3, 3, 3): "prisms",  # K(3,3) has the same degrees, and is looked for before
}
LISTED: tuple[Kind, ...] = ("wheels", "almost-cliques")
"""Those that read lists of common neighbours."""


class Term(NamedTuple):
    """One summand of a number of mappings."""

    coefficient: int
    kind: Literal["total", "whole", Kind]
    """A total of the program, a sum over all vertices, or what a kernel of its own counts as subgraphs."""
    number: int
    """Of the total; vertices of what a kernel counts, or what is beside pairs: a `CodegreePattern`."""


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
        """Elementary steps of the program, and of what it needs."""
        program, costs = self.program, self.costs
        total = sum(rows_cost(rows, domain, costs) for domain, rows in program.totals)
        for step in program.steps:
            if step.make in (Make.VERTEX_ROWS, Make.ARC_ROWS):
                domain: Domain = "vertices" if step.make == Make.VERTEX_ROWS else "arcs"
                total += rows_cost(program.rows[step.sources[0]], domain, costs)
            elif step.make == Make.INNER:
                total += costs.arcs * _INNER_STEPS
            elif step.make in _STEPS:
                total += costs.vertices * _STEPS[step.make]
        kinds = {term.kind for terms in self.terms for term in terms}
        # A wheel is found at its smallest vertex but the hub, and most wedges are at others.
        total += costs.arcs / 4 if "wheels" in kinds else 0.0
        total += costs.vertices / 4 if "almost-cliques" in kinds else 0.0
        total += costs.vertices if "five-cycles" in kinds else 0.0
        total += costs.common * _PRISM_STEPS if "prisms" in kinds else 0.0
        total += sum(pairs_cost(codegree, costs) for codegree in self.pairs)
        return total + (_LISTS * costs.vertices if program.needs_lists else 0.0)

    @property
    def pairs(self) -> tuple[CodegreePattern, ...]:
        """What is counted beside pairs of vertices."""
        return tuple(
            sorted({CodegreePattern(term.number) for terms in self.terms for term in terms if term.kind == "pairs"})
        )

    @property
    def listed(self) -> tuple[tuple[Kind, int], ...]:
        """What kernels count by lists of common neighbours: a kind and its vertices each."""
        found = {(term.kind, term.number) for terms in self.terms for term in terms if term.kind in LISTED}
        return tuple(sorted(found))

    def counted_text(self, kind: str, number: int) -> str:
        """Return what a term counts as text."""
        if kind == "total":
            return self.quotients[number].edge_text
        if kind == "pairs":
            return f"{_pattern(codegree_edges(CodegreePattern(number))).edge_text}, by vertex pairs"
        return f"{kind} of {number} vertices"

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
    needed = [without_multiples(quotients(pattern), lists=costs.lists) for pattern in patterns]
    kernels = {edges: kernel_of(edges, lists=costs.lists) for some in needed for edges, _ in some}
    wanted = sorted((edges for edges, kernel in kernels.items() if kernel is None), key=lambda one: (-len(one), one))
    decomposer = Decomposer(costs)
    try:
        sums = [decomposer.count(_pattern(edges)) for edges in wanted]
        # The sum of a table that the program makes anyway needs no kernel of its own.
        if _FOUR_CLIQUE in kernels and _reads(tuple(sums), ("cliques",)):
            kernels[_FOUR_CLIQUE] = None
            wanted.append(_FOUR_CLIQUE)
            sums.append(decomposer.count(_pattern(_FOUR_CLIQUE)))
        program, places = compile_sums(
            sums, lists=any(kernel is not None and kernel[0] in LISTED for kernel in kernels.values())
        )
    except NoDecomposition:
        return None
    of_total, place_of = dict(zip(places, wanted, strict=True)), dict(zip(wanted, places, strict=True))

    def term(edges: Edges, coefficient: int) -> Term:
        if (kernel := kernels[edges]) is not None:
            return Term(coefficient, *kernel)
        each = factorial(4) if edges == _FOUR_CLIQUE else 1  # a total counts mappings, the coefficient is for subgraphs
        return Term(coefficient // each, "total", place_of[edges])

    terms = tuple(tuple(term(edges, coefficient) for edges, coefficient in some) for some in needed)
    counts = tuple(_pattern(of_total[place]) for place in sorted(of_total))
    return HomomorphismSums(patterns, program, counts, terms, costs)


def _reads(expression: object, table: Expression) -> bool:
    """Return whether a table is part of an expression."""
    return isinstance(expression, tuple) and (expression == table or any(_reads(part, table) for part in expression))


def kernel_of(edges: Edges, *, lists: bool) -> tuple[Kind, int] | None:
    """Return which kernel counts the subgraphs of a pattern, None if there is none; with or without lists."""
    size = 1 + max(v for _, v in edges)
    if size > _TRIANGLE and len(edges) == size * (size - 1) // 2:
        return "cliques", size
    if edges in codegree_patterns():
        return "pairs", codegree_patterns()[edges]
    degrees = Counter(v for edge in edges for v in edge)
    kind = _BY_DEGREES.get(tuple(sorted(degrees.values())))
    return None if kind is None or (kind in LISTED and not lists) else (kind, size)


def without_multiples(some: Sequence[tuple[Edges, int]], *, lists: bool) -> list[tuple[Edges, int]]:
    """Write homomorphisms of patterns that kernels count as subgraphs by means of these."""
    found: Counter[Edges] = Counter()

    def add(edges: Edges, coefficient: int) -> None:
        kernel = kernel_of(edges, lists=lists)
        if kernel is None:
            found[edges] += coefficient
        elif kernel[0] == "cliques":
            found[edges] += coefficient * factorial(kernel[1])
        else:
            # All but the mappings are homomorphisms of other quotients.
            found[edges] += coefficient * _mappings_each(edges, *kernel)
            for quotient, multiple in quotients(_pattern(edges)):
                if quotient != edges:
                    add(quotient, -coefficient * multiple)
            if kernel[0] == "pairs" and (merged := merged_edges(CodegreePattern(kernel[1]))):
                for quotient, multiple in quotients(_pattern(merged)):
                    add(quotient, -coefficient * multiple)

    for edges, coefficient in some:
        add(edges, coefficient)
    return [(edges, coefficient) for edges, coefficient in found.items() if coefficient]


def _mappings_each(edges: Edges, kind: Kind, number: int) -> int:
    """Return how many mappings each of those is that a kernel counts."""
    return CodegreePattern(number).maps_each if kind == "pairs" else automorphism_count(_pattern(edges))


def _pattern(edges: Edges) -> Pattern:
    return Pattern(1 + max(v for _, v in edges), edges)


def loop_free_quotients(edges: Edges, size: int) -> Iterator[tuple[list[list[int]], Edges, int]]:
    """Yield the partitions of `size` vertices with no edge inside a block: blocks, their edges, the coefficient.

    The injective maps of a pattern are the sum of its quotients' homomorphisms, times these coefficients.
    """
    for partition in set_partitions(range(size)):
        merged = {v: i for i, block in enumerate(partition) for v in block}
        joined = {(min(merged[u], merged[v]), max(merged[u], merged[v])) for u, v in edges}
        if all(u != v for u, v in joined):
            coefficient = prod((-1) ** (len(block) - 1) * factorial(len(block) - 1) for block in partition)
            yield partition, tuple(sorted(joined)), coefficient


@lru_cache(maxsize=1 << 10)
def quotients(pattern: Pattern) -> tuple[tuple[Edges, int], ...]:
    """Return the canonical edges of all loop-free quotients of a pattern, with their coefficients."""
    found: Counter[Edges] = Counter()
    for partition, edges, coefficient in loop_free_quotients(pattern.edges, pattern.num_vertices):
        found[canonical_pattern(edges, None, len(partition))[0]] += coefficient
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


def pairs_cost(codegree: CodegreePattern, costs: PassCosts) -> float:
    """Return the elementary steps that it takes to count what is beside pairs of vertices."""
    lists = _WEDGE_LISTS * costs.vertices
    if codegree == CodegreePattern.STAR and costs.entries:
        # Walks of three steps from the vertices, of which there are about as many as cubed degrees.
        return lists + _STAR_STEPS * costs.vertices * costs.vertices / costs.entries
    return lists + _PAIR_STEPS.get(codegree, _OTHER_PAIR_STEPS) * costs.common


def rows_cost(rows: RowProgram, domain: Domain, costs: PassCosts) -> float:
    """Return the elementary steps of a row program over the rows of a domain."""
    passes = rows.passes * costs.row(domain) + rows.edge_passes * costs.arcs
    passes += rows.wide_passes * costs.wide_row(domain)
    return passes + len(rows.ops) * costs.entries
