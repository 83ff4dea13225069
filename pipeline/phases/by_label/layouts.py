"""Which layout of a labelled graph suits a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, combinations_with_replacement

from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.storage.graph.derived.label_layout import ANY, LabelLayout
from longwall.storage.graph.stats import GraphStats

_MOST_EDGES = 8.0  # of a layout for cliques, per edge of the graph: with 6 a count takes a third of a search's time


def search_layout(plan: MatchPlan) -> LabelLayout | None:
    """Return the layout for a search: the pattern's labels, in the order in which they are matched, and its edges.

    Parameters
    ----------
    plan
        The search.

    Returns
    -------
    LabelLayout or None
        None where the search reads all of the graph alike: no vertex of the pattern has a label, nor all of its edges.
    """
    pattern, kinds = plan.pattern, plan.pattern.edge_labels or (None,) * len(plan.pattern.edges)
    if pattern.labels is None or set(pattern.labels) == {ANY_LABEL}:
        if plan.induced or None in kinds:
            return None
        return LabelLayout((ANY,), tuple((0, 0, kind) for kind in sorted(set(_numbers(kinds)))))
    roles = list(dict.fromkeys(label for vertex in plan.order if (label := pattern.label(vertex)) != ANY_LABEL))
    if ANY_LABEL in pattern.labels:
        roles.append(ANY)
    if plan.induced or ANY in roles:  # what is not adjacent is read, too
        every = tuple((a, b, ANY) for a, b in combinations_with_replacement(range(len(roles)), 2))
        return LabelLayout(tuple(roles), every)
    edges = set()
    for (u, v), kind in zip(pattern.edges, _numbers(kinds), strict=True):
        first, second = sorted((roles.index(pattern.label(u)), roles.index(pattern.label(v))))
        edges.add((first, second, kind))
    return LabelLayout(tuple(roles), tuple(sorted(edges)))


def _numbers(kinds: Iterable[int | str | None]) -> list[int]:
    """Return the labels of edges, `ANY` for any."""
    found = []
    for kind in kinds:
        assert not isinstance(kind, str), "labels are numbers by now"
        found.append(ANY if kind is None else kind)
    return found


def one_label(pattern: Pattern) -> LabelLayout | None:
    """Return the layout of the vertices of a label, where all vertices of the pattern have it."""
    labels = set(pattern.labels or ())
    if len(labels) != 1 or labels == {ANY_LABEL} or pattern.edge_labels is not None:
        return None
    return LabelLayout((labels.pop(),), ((0, 0, ANY),), sliced=False)


def clique_layout(pattern: Pattern, stats: GraphStats) -> LabelLayout | None:
    """Return the layout in which cliques are those of the pattern: a role for each of its vertices.

    Roles have no edges inside, so a clique has a vertex of each; of vertices with one label, the first role has that of
    the smaller id. So each clique with the pattern's labels is there once.

    Returns
    -------
    LabelLayout or None
        None where the pattern is none that it serves, or too many roles have one label, so that edges become many.
    """
    labels = tuple(sorted(pattern.labels or ()))
    if not pattern.is_clique or pattern.num_vertices < 3 or ANY_LABEL in labels or pattern.edge_labels is not None:
        return None
    n = max(stats.num_vertices, 1)
    share = [stats.label_counts.get(label, 0) / n for label in labels]
    pairs = list(combinations(range(len(labels)), 2))
    edges = sum(share[a] * share[b] * (1 if labels[a] == labels[b] else 2) for a, b in pairs)
    if edges > _MOST_EDGES:
        return None
    return LabelLayout(labels, tuple((a, b, ANY) for a, b in pairs), sliced=False)


def layout_of(search: MatchPlan, stats: GraphStats) -> LabelLayout | None:
    """Return the layout for a search; None where labels do not matter, or the graph has not all of them."""
    return search_layout(search) if labels_are_there(search.pattern, stats) else None


def labels_are_there(pattern: Pattern, stats: GraphStats) -> bool:
    """Whether the graph has vertices with each label of the pattern; if not, a search finds nothing at once."""
    return all(stats.label_counts.get(label) for label in pattern.labels or () if label != ANY_LABEL)
