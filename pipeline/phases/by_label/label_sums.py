"""Sums of homomorphism counts for labelled patterns: a label weighs its vertex by a table of zeros and ones."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import factorial

from longwall.kernels.host.patterns.pattern_codes import canonical_pattern
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.planning.homomorphisms.decompositions import Decomposer
from longwall.pipeline.planning.homomorphisms.pattern_core import Expression, NoDecomposition, PassCosts
from longwall.pipeline.planning.homomorphisms.set_partitions import set_partitions
from longwall.pipeline.planning.homomorphisms.sums import MAX_VERTICES, HomomorphismSums, Term
from longwall.pipeline.planning.homomorphisms.table_compiler import compile_sums


@lru_cache(maxsize=256)
def plan_label_sums(pattern: Pattern, costs: PassCosts) -> HomomorphismSums | None:
    """Find a sum for the mappings of a pattern with labels of vertices; None if it has none.

    Parameters
    ----------
    pattern
        The pattern; its edges have no labels.
    costs
        What passes over the graph cost.
    """
    if pattern.num_vertices > MAX_VERTICES:
        return None
    decomposer, needed = Decomposer(costs), labelled_quotients(pattern)
    try:
        program, places = compile_sums([decomposer.count(one, _weights(one)) for one, _ in needed], lists=False)
    except NoDecomposition:
        return None
    terms = tuple(Term(coefficient, "total", place) for (_, coefficient), place in zip(needed, places, strict=True))
    counted = {place: one for (one, _), place in zip(needed, places, strict=True)}
    quotients = tuple(counted[place] for place in sorted(counted))
    return HomomorphismSums((pattern,), program, quotients, (terms,), costs)


def _weights(pattern: Pattern) -> dict[int, Expression]:
    labels = {v: pattern.label(v) for v in range(pattern.num_vertices)}
    return {v: ("label", label) for v, label in labels.items() if label != ANY_LABEL}


def labelled_quotients(pattern: Pattern) -> tuple[tuple[Pattern, int], ...]:
    """Return the canonical forms of all loop-free quotients of a pattern, with their coefficients.

    Vertices of two labels have no common image, so only those of one label, or of any, are merged; see
    :mod:`longwall.pipeline.planning.homomorphisms.sums`. The quotient with the most edges comes first.
    """
    found: Counter[Pattern] = Counter()
    for partition in set_partitions(range(pattern.num_vertices)):
        merged = {v: i for i, block in enumerate(partition) for v in block}
        edges = {(min(merged[u], merged[v]), max(merged[u], merged[v])) for u, v in pattern.edges}
        own = [{pattern.label(v) for v in block} - {ANY_LABEL} for block in partition]
        if any(u == v for u, v in edges) or any(len(labels) > 1 for labels in own):
            continue
        coefficient = 1
        for block in partition:
            coefficient *= (-1) ** (len(block) - 1) * factorial(len(block) - 1)
        labels = tuple(one.pop() if one else ANY_LABEL for one in own)
        found[Pattern(len(partition), *canonical_pattern(tuple(sorted(edges)), labels, len(partition)))] += coefficient
    left = [(quotient, coefficient) for quotient, coefficient in found.items() if coefficient]
    return tuple(sorted(left, key=lambda one: (-len(one[0].edges), one[0].edges, one[0].labels)))
