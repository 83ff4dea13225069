"""Plans of single counts, by all methods or by some."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import ON_PARTS
from longwall.pipeline.planning.plan import Choice, CountPlan
from longwall.pipeline.planning.planner import METHODS, PLANNER
from longwall.pipeline.planning.query import Query
from longwall.storage.graph.graph import Graph

ON_WHOLE = (*ON_PARTS, "candidates")
"""Methods that a count in the whole graph goes without, by formulas, sums and searches alone."""


def plan_count(
    pattern: Pattern,
    graph: Graph,
    *,
    induced: bool = False,
    limit: int | None = None,
    without: tuple[str, ...] = ON_WHOLE,
) -> Choice:
    """Plan a count without some methods."""
    return PLANNER.but(*without).plan(Query(pattern, induced, limit), Facts.of(graph))


def proposed(method: str, query: Query, graph: Graph) -> Any:
    """Return the plan that a method proposes."""
    (one,) = (one for one in METHODS if one.name == method)
    plan = one.lacks(query) or one.propose(query, Facts.of(graph), PLANNER)
    assert isinstance(plan, CountPlan), plan
    return plan


def motifs(method: str, k: int, graph: Graph) -> Any:
    """Return the plan of a method for all connected patterns of a size."""
    return proposed(method, Query.of_motifs(k, "per_vertex" if method.startswith("orbit") else "count"), graph)


def methods_of(plan: CountPlan) -> list[str]:
    """The methods of a choice, in the order in which they are tried."""
    assert isinstance(plan, Choice)
    return [one.method for one in plan.plans]


def tried_first(plan: CountPlan, others: Choice) -> Choice:
    """Try a plan ahead of those of a choice."""
    return replace(others, plans=(plan, *others.plans))
