"""Count patterns with leaves: sums over all vertices of a graph, and homomorphisms, with weights, inside its 2-core.

What is left of patterns when their leaves are eliminated (:mod:`longwall.pipeline.planning.leaves.elimination`) is
mapped into the 2-core, so its injective maps are sums of homomorphisms there (see
:mod:`longwall.pipeline.planning.homomorphisms.sums`), whose weights are tables over the vertices of the whole graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from longwall.kernels.interface.homomorphism_program import TableProgram
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.homomorphisms.decompositions import Decomposer
from longwall.pipeline.planning.homomorphisms.pattern_core import (
    Expression,
    NoDecomposition,
    PassCosts,
    Sum,
    Table,
    product,
)
from longwall.pipeline.planning.homomorphisms.sums import (
    MAX_VERTICES,
    HomomorphismSums,
    Term,
    kernel_of,
    loop_free_quotients,
    without_multiples,
)
from longwall.pipeline.planning.homomorphisms.table_compiler import compile_sums, compile_vertex_tables
from longwall.pipeline.planning.leaves.elimination import Weighed, canonical, without_leaves


@dataclass(frozen=True)
class LeafSums:
    """How the mappings of several patterns are put together.

    Attributes
    ----------
    patterns
        The patterns.
    whole
        Makes tables over the vertices of the whole graph.
    summed, given
        Those of its tables that are summed, and those that the core's program is given.
    core
        The sums that are counted in the 2-core.
    terms
        The summands of each pattern.
    """

    patterns: tuple[Pattern, ...]
    whole: TableProgram
    summed: tuple[int, ...]
    given: tuple[int, ...]
    core: HomomorphismSums
    terms: tuple[tuple[Term, ...], ...]

    @property
    def cost(self) -> float:
        """Elementary steps in the core."""
        return self.core.cost


@lru_cache(maxsize=64)
def plan_leaf_sums(patterns: tuple[Pattern, ...], costs: PassCosts) -> LeafSums | None:
    """Find sums for unlabelled patterns; None where there are none.

    Parameters
    ----------
    patterns
        The patterns, of 3 to `MAX_VERTICES` vertices.
    costs
        What passes over the core cost.
    """
    if any(pattern.labels is not None or pattern.num_vertices > MAX_VERTICES for pattern in patterns):
        return None
    needed = [_homomorphisms(pattern) for pattern in patterns]
    every = sorted({one for some in needed for one in some}, key=lambda one: (-len(one.edges), one.edges, repr(one)))
    alone = [one for one in every if one.size == 1]
    wanted = [one for one in every if one.size > 1 and (any(one.weights) or kernel_of(one.edges, lists=False) is None)]
    given = list(dict.fromkeys(table for one in wanted for table in map(_product, one.weights) if table is not None))
    decomposer, sums = Decomposer(costs), list[Sum]()
    try:
        for one in wanted:
            tables = [_product(weights) for weights in one.weights]
            weights = {v: ("given", given.index(table)) for v, table in enumerate(tables) if table is not None}
            sums.append(decomposer.count(Pattern(one.size, one.edges), weights))
        program, places = compile_sums(sums, lists=False)
    except NoDecomposition:
        return None
    whole, numbers = compile_vertex_tables([*(_product(one.weights[0]) for one in alone), *given])
    of_total = {one: Term(1, "total", place) for one, place in zip(wanted, places, strict=True)}
    of_total |= {one: Term(1, "whole", number) for number, one in enumerate(alone)}

    def term(one: Weighed, coefficient: int) -> Term:
        if one in of_total:
            return of_total[one]._replace(coefficient=coefficient)
        kernel = kernel_of(one.edges, lists=False)
        assert kernel is not None
        return Term(coefficient, *kernel)

    terms = tuple(tuple(term(*one) for one in some.items()) for some in needed)
    core = HomomorphismSums(patterns, program, (), (), costs)
    return LeafSums(patterns, whole, tuple(numbers[: len(alone)]), tuple(numbers[len(alone) :]), core, terms)


def _product(weights: tuple[Expression, ...]) -> Table:
    """Return the product of the weights of a vertex."""
    return product("vprod", list(weights))


@lru_cache(maxsize=1 << 10)
def _homomorphisms(pattern: Pattern) -> Counter[Weighed]:
    """Write the mappings of a pattern as homomorphisms of patterns with weights, and subgraphs that kernels count."""
    found: Counter[Weighed] = Counter()
    for one, coefficient in without_leaves(pattern.edges, pattern.num_vertices).items():
        for quotient, multiple in _quotients(one):
            found[quotient] += coefficient * multiple
    return Counter({one: coefficient for one, coefficient in found.items() if coefficient})


def _quotients(pattern: Weighed) -> Iterable[tuple[Weighed, int]]:
    """Return what the injective maps of a pattern are a sum of: homomorphisms of its quotients.

    Cliques and five-cycles without weights stand for the number of their subgraphs.
    """
    found: Counter[Weighed] = Counter()
    for partition, edges, coefficient in loop_free_quotients(pattern.edges, pattern.size):
        weights = tuple(
            tuple(sorted((factor for v in block for factor in pattern.weights[v]), key=repr)) for block in partition
        )
        found[canonical(edges, weights)] += coefficient
    plain = {one.edges: coefficient for one, coefficient in found.items() if one.size > 1 and not any(one.weights)}
    weighed = [(one, coefficient) for one, coefficient in found.items() if one.edges not in plain or any(one.weights)]
    counted = without_multiples(list(plain.items()), lists=False)
    return weighed + [(Weighed(edges, ((),) * (1 + max(v for _, v in edges))), number) for edges, number in counted]
