"""Plans of single counts, by all methods or by some."""

from __future__ import annotations

from dataclasses import replace

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import ON_PARTS
from longwall.pipeline.planning.plan import Choice, CountPlan
from longwall.pipeline.planning.planner import PLANNER
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


def methods_of(plan: CountPlan) -> list[str]:
    """The methods of a choice, in the order in which they are tried."""
    assert isinstance(plan, Choice)
    return [one.method for one in plan.plans]


def tried_first(plan: CountPlan, others: Choice) -> Choice:
    """Try a plan ahead of those of a choice."""
    return replace(others, plans=(plan, *others.plans))
