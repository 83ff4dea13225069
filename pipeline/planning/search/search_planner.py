"""Choose a matching order: candidate orders by beam search, the cheapest by a cost estimate.

The estimate follows GraphPi (SC 2020): the number of partial embeddings per level times the work of the set
operations there, with candidate sets sized by the mean degree of a neighbour (degrees are skewed) and by how
often wedges are closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice

from longwall.kernels.interface.search_program import SearchProgram, SetKind
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, restrictions
from longwall.pipeline.planning.search.search_compiler import compile_program
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.stages.filtering import VerifyLabels
from longwall.storage.graph.stats import GraphStats

BEAM = 24
ROW_STEPS = 50.0  # what one row costs beside its set operations, in set elements read (measured)
LEAST_OF_CANDIDATES = 9  # vertices of a labelled query that is searched in lists; smaller ones have few orders
MAX_SUFFIX = 6
_MOST_PLANS = 128  # that a process keeps; the largest take some hundred KB
_WIDE = 16  # vertices of patterns whose orders are compared; those of larger ones would take seconds
_Beginning = tuple[float, float, tuple[int, ...]]  # cost and rows so far, and the order
_Looks = dict[tuple[int, ...], list[int]]  # by beginning of an order, what each vertex looks like


@dataclass(frozen=True)
class _Sizes:
    """What the estimate knows of the graph."""

    vertices: float
    degree: float  # mean degree of a random vertex
    neighbour_degree: float  # mean degree of a random neighbour
    closure: float  # how often a wedge is closed
    label_shares: tuple[tuple[int, float], ...]  # of the pattern's labels

    @cached_property
    def _share_of(self) -> dict[int, float]:
        return dict(self.label_shares)

    def share(self, label: int) -> float:
        return 1.0 if label < 0 else self._share_of.get(label, 0.0)

    def candidates(self, neighbours: int, label: int) -> float:
        return self.neighbour_degree * self.closure ** (neighbours - 1) * self.share(label)


def _sizes(stats: GraphStats, pattern: Pattern) -> _Sizes:
    n = max(stats.num_vertices, 1)
    mean = max(2 * stats.num_edges / n, 1e-9)
    return _Sizes(
        vertices=n,
        degree=mean,
        neighbour_degree=max(stats.sum_degree_squared / max(2 * stats.num_edges, 1), 1.0),
        closure=min(max(stats.closed_wedge_fraction, 1e-4), 0.9),
        label_shares=tuple(
            (label, stats.label_counts.get(label, 0) / n) for label in sorted(set(pattern.labels or ()))
        ),
    )


def _orders(pattern: Pattern, sizes: _Sizes) -> list[tuple[int, ...]]:
    """Connected orders, the most promising ones where there are many."""

    def grow(beam: list[_Beginning]) -> Iterator[_Beginning]:
        for cost, rows, order in beam:
            for v in range(pattern.num_vertices):
                backward = len(pattern.neighbours[v].intersection(order))
                if v in order or (order and not backward):
                    continue
                if order:
                    new = rows * sizes.candidates(backward, pattern.label(v))
                else:
                    new = sizes.vertices * sizes.share(pattern.label(v))
                yield cost + new, new, (*order, v)

    beam: list[_Beginning] = [(0.0, 1.0, ())]
    looks: _Looks = {(): _first_looks(pattern)}
    for _ in range(pattern.num_vertices):
        seen: _Looks = {}
        beam = list(islice(_distinct(pattern, sorted(grow(beam)), looks, seen), BEAM * 4))
        looks = seen
    return [order for _, _, order in beam[:BEAM]]


def _greedy_order(pattern: Pattern, sizes: _Sizes) -> tuple[int, ...]:
    """Return a connected order whose next vertex has the fewest candidates each time, and then the most neighbours."""
    size = pattern.num_vertices
    near, shares = pattern.neighbours, [sizes.share(pattern.label(v)) for v in range(size)]
    order = [min(range(size), key=lambda v: (shares[v] / len(near[v]), v))]
    backward = [0] * size
    while len(order) < size:
        for w in near[order[-1]]:
            backward[w] += 1
        left = set(range(size)).difference(order)
        order.append(
            min(
                (v for v in left if backward[v]),
                key=lambda v: (sizes.candidates(backward[v], ANY_LABEL) * shares[v], -len(near[v]), v),
            )
        )
    return tuple(order)


def _first_looks(pattern: Pattern) -> list[int]:
    """Return a number for the label and the degree of each vertex, above the bits of the places in an order."""
    kinds = [(pattern.label(v), len(near)) for v, near in enumerate(pattern.neighbours)]
    number = {kind: at for at, kind in enumerate(dict.fromkeys(kinds))}
    return [number[kind] << pattern.num_vertices for kind in kinds]


def _distinct(pattern: Pattern, beam: list[_Beginning], before: _Looks, seen: _Looks) -> Iterator[_Beginning]:
    """Yield the beginnings of orders that look different, to the vertices that are left, too.

    Those that an automorphism makes of each other look the same, and lead to the same programs; they would fill the
    beam of a symmetric pattern. What a vertex looks like is its label, its degree, and a bit for each vertex of the
    order that it is adjacent to: `before` has it for orders without their last vertex, `seen` receives it for those
    that are yielded.
    """
    kept: set[tuple[int, ...]] = set()
    for beginning in beam:
        order = beginning[-1]
        looks = before[order[:-1]].copy()
        for v in pattern.neighbours[order[-1]]:
            looks[v] |= 1 << (len(order) - 1)
        own = [looks[v] for v in order]
        rest = looks.copy()
        for v in order:
            rest[v] = -1
        rest.sort()
        look = (*own, *rest)
        if look not in kept:
            kept.add(look)
            seen[order] = looks
            yield beginning


def _estimate(
    program: SearchProgram, order: tuple[int, ...], pattern: Pattern, sizes: _Sizes
) -> tuple[float, list[float]]:
    """Estimated steps of a program, and its rows per depth."""
    members: list[int] = []  # matched vertices behind each set
    for op in program.sets:
        base = 0 if op.source < 0 else members[op.source]
        members.append(base + (op.kind != SetKind.SUBTRACT))
    rows, cost, per_depth = 0.0, 0.0, []
    for depth, level in enumerate(program.levels):
        label = pattern.label(order[depth])
        bounds = (level.below | level.above).bit_count()
        if level.candidates >= 0:
            op = program.sets[level.candidates]
            bounds += (op.below | op.above).bit_count()
            size = sizes.candidates(members[level.candidates], label)
        else:
            size = sizes.degree * sizes.share(label) if depth else sizes.vertices * sizes.share(label)
        rows = (rows if depth else 1.0) * size / (1 + bounds)
        per_depth.append(rows)
        steps = ROW_STEPS
        for op in program.sets:
            if op.depth == depth and op.kind != SetKind.ADJACENCY:
                trimmed = 1 + (op.below | op.above).bit_count()
                steps += sizes.neighbour_degree / trimmed
        cost += rows * steps
    return cost, per_depth


def plan_match(
    pattern: Pattern,
    stats: GraphStats,
    *,
    induced: bool = False,
    counting: bool = True,
    longest_suffix: int = MAX_SUFFIX,
) -> MatchPlan:
    """Plan the search for a pattern.

    Parameters
    ----------
    pattern
        What to search for.
    stats
        Statistics of the data graph.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    counting
        Whether only the number of embeddings is wanted; then the last levels are fused into a count.
    longest_suffix
        The most vertices that are counted instead of enumerated.

    Returns
    -------
    MatchPlan
        The plan with the smallest estimated cost.
    """
    return _cheapest(pattern, _sizes(stats, pattern), induced, counting, longest_suffix)


@lru_cache(_MOST_PLANS)
def _cheapest(pattern: Pattern, sizes: _Sizes, induced: bool, counting: bool, longest_suffix: int) -> MatchPlan:
    """Return the plan of `plan_match`, which takes milliseconds, and does not depend on anything else."""
    automorphisms = automorphism_count(pattern)
    best: MatchPlan | None = None
    wide = pattern.num_vertices > _WIDE
    for order in [_greedy_order(pattern, sizes)] if wide else _orders(pattern, sizes):
        lengths = _suffixes(pattern, order, induced=induced, counting=counting)
        lengths = [length for length in lengths if length <= longest_suffix] or lengths[:1]
        for suffix in lengths[-1:] if wide else lengths:
            pairs, redundancy = restrictions(pattern, order, suffix if suffix > 1 else 0)
            program = compile_program(pattern, order, pairs, induced=induced, suffix=suffix, descending=True)
            # Which sets have bounds does not depend on the direction, so the first program tells.
            descending = _prefers_descending(program)
            if not descending:
                program = compile_program(pattern, order, pairs, induced=induced, suffix=suffix, descending=False)
            cost, rows = _estimate(program, order, pattern, sizes)
            if best is None or cost < best.cost:
                best = MatchPlan(
                    pattern,
                    induced,
                    counting,
                    order,
                    suffix,
                    tuple(pairs),
                    redundancy,
                    descending,
                    automorphisms,
                    program,
                    cost,
                    tuple(rows),
                )
    assert best is not None, "a connected pattern has a connected order"
    return best


def plan_edge_joins(pattern: Pattern, stats: GraphStats, *, induced: bool = False, counting: bool = True) -> MatchPlan:
    """Plan the matching of a pattern by binary joins with the edges, one edge of the pattern at a time.

    Rows are extended along a spanning tree of the pattern, in the matching order of the search; every other edge is
    verified when both of its vertices are matched. Parameters as of `plan_match`.
    """
    from longwall.stages.filtering import Verify

    order = plan_match(pattern, stats, induced=induced, counting=False).order
    position = {vertex: level for level, vertex in enumerate(order)}
    tree, joined = [(order[0], order[1])], []
    for level, vertex in enumerate(order[2:], 2):
        earlier = sorted(position[other] for other in pattern.neighbours[vertex] if position[other] < level)
        tree.append((order[earlier[0]], vertex))
        absent = sorted(set(range(level)) - set(earlier)) if induced else []
        if earlier[1:] or absent:
            joined.append(Verify(level, tuple(earlier[1:]), tuple(absent)))
    spanning = Pattern(pattern.num_vertices, tuple(sorted((min(pair), max(pair)) for pair in tree)), pattern.labels)
    pairs, redundancy = restrictions(pattern, order, 0)
    program = compile_program(spanning, order, pairs, induced=False, suffix=0, descending=True)
    cost, rows = _estimate(program, order, pattern, _sizes(stats, pattern))
    return MatchPlan(
        pattern,
        induced,
        counting,
        order,
        0,
        tuple(pairs),
        redundancy,
        True,
        automorphism_count(pattern),
        program,
        cost,
        tuple(rows),
        tuple(joined),
    )


def _suffixes(pattern: Pattern, order: tuple[int, ...], *, induced: bool, counting: bool) -> list[int]:
    """Lengths of the suffix that may be counted instead of enumerated."""
    k = pattern.num_vertices
    if not counting or k == 2:
        return [0]
    lengths = [1]
    for length in range(2, min(k - 2, MAX_SUFFIX) + 1):
        last = set(order[k - length :])
        if induced or any(pattern.neighbours[v] & last for v in last):
            break
        lengths.append(length)
    labels = [pattern.label(vertex) for vertex in order]
    if ANY_LABEL not in labels or set(labels) == {ANY_LABEL}:
        return lengths
    # A vertex that may have any label is in the set of a labelled block or not, which only its own label says.
    return [length for length in lengths if set(labels[-length:]) == {ANY_LABEL}] or [0]


def _prefers_descending(program: SearchProgram) -> bool:
    """Whether bounds should point to high degrees.

    Descending ids towards hubs make trimmed sets short; but where a set is read untrimmed, the hub should come
    first, so that the short list of the later vertex is scanned against it.
    """
    read = [op for op in program.sets if op.kind != SetKind.ADJACENCY]
    return all(op.below | op.above for op in read)


def plan_labelled_edges(
    pattern: Pattern, stats: GraphStats, *, induced: bool, counting: bool, joining: bool = False
) -> MatchPlan:
    """Plan the search for a pattern with labels of edges.

    Every vertex is enumerated, so that the labels of all its edges can be looked at: no formula, no kernel for cliques
    and no fused count knows them.

    Parameters
    ----------
    pattern
        The pattern; its labels are numbers.
    stats
        Statistics of the data graph.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    counting
        Whether only the number of embeddings is wanted.
    joining
        Whether rows are extended by an edge at a time, see `plan_edge_joins`.
    """
    plan_search = plan_edge_joins if joining else plan_match
    plan = plan_search(pattern, stats, induced=induced, counting=False)
    position = {vertex: level for level, vertex in enumerate(plan.order)}
    known: dict[int, list[tuple[int, int]]] = {}
    for edge, label in zip(pattern.edges, pattern.edge_labels or (), strict=True):
        if label is not None:
            assert isinstance(label, int), "labels are numbers by now"
            first, last = sorted(position[vertex] for vertex in edge)
            known.setdefault(last, []).append((first, label))
    labels = tuple(VerifyLabels(level, tuple(sorted(pairs))) for level, pairs in sorted(known.items()))
    return replace(plan, counting=counting, joined=(*plan.joined, *labels))
