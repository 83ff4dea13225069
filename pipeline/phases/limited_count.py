"""Count the embeddings of a pattern up to a limit."""

from __future__ import annotations

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.by_label.plans import CountByLabel, plan_count
from longwall.pipeline.phases.count_plans import CountBySearch, CountPlan
from longwall.pipeline.planning.search_planner import plan_match
from longwall.storage.graph.graph import Graph

_STEPS = 50.0  # of an embedding and vertex, in elementary steps


def plan_limited_count(pattern: Pattern, graph: Graph, limit: int, *, induced: bool) -> CountPlan:
    """Plan how to count embeddings up to a limit.

    A search ends at the limit, and a formula does not: it counts all, unless that is more work. A search with a limit
    counts the last vertex of the pattern alone as a number: more vertices may lead to numbers that 64 bits do not hold,
    long after the limit.

    Parameters
    ----------
    pattern
        What to count.
    graph
        The data graph.
    limit
        The number of embeddings.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    """
    plan = plan_count(pattern, graph, induced=induced)
    inside, cost = plan, plan.cost
    if isinstance(plan, CountByLabel):
        inside, cost = plan.inside, cost + 2 * graph.num_edges  # laying out the graph by label reads all arcs
    if isinstance(inside, CountBySearch) or steps_to(limit, pattern) < cost:
        search = plan_match(pattern, graph.stats, induced=induced, longest_suffix=1)
        return CountBySearch(pattern, search.cost, search)
    return plan


def steps_to(limit: int, pattern: Pattern) -> float:
    """Return the steps in which a search finds `limit` embeddings."""
    return limit * pattern.num_vertices * _STEPS
