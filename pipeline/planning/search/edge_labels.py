"""Plans for patterns with labels of edges: a search whose rows are verified as soon as such an edge is in them."""

from dataclasses import replace

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import plan_edge_joins, plan_match
from longwall.stages.filtering import VerifyLabels
from longwall.storage.graph.stats import GraphStats


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
