"""Where there is no room for one way of counting, nothing of it is left while another one counts."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest
from plans import plan_count

from longwall.pipeline.execution.phase import NotEnoughMemory
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.methods import star_leaves
from longwall.pipeline.planning.methods.candidates import CandidatesPlan
from longwall.pipeline.planning.methods.homomorphisms import HomomorphismsPlan
from longwall.pipeline.planning.plan import Choice, CountPlan
from longwall.pipeline.planning.planner import PLANNER
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.rewrites import k_core

COST = 1e30


@dataclass(frozen=True)
class Otherwise(CountPlan):
    """Another plan; it keeps the exception that is handled while it counts, whose traceback holds the first plan."""

    handled: list[BaseException | None] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {}

    def describe(self) -> str:
        return ""

    def count(self, env: Any) -> int:
        self.handled.append(sys.exc_info()[1])
        return 7


def refuse(*_: Any) -> NoReturn:
    raise NotEnoughMemory


def first_of(way: str, query: Query, graph: Any, monkeypatch: pytest.MonkeyPatch) -> CountPlan:
    """A plan that has no room."""
    if way == "core":
        monkeypatch.setattr(k_core, "find_core", refuse)
        return k_core.InCorePlan(query.pattern, COST, query, 2, PLANNER, method="k-core")
    if way == "stars":
        return star_leaves.StarLeavesPlan(query.pattern, COST, induced=True, method="star-leaves")
    if way == "homomorphisms":
        (plan,) = (plan for plan in plan_count(query.pattern, graph).plans if isinstance(plan, HomomorphismsPlan))
        monkeypatch.setattr(type(plan.counted), "mappings", refuse)
        return plan
    monkeypatch.setattr(CandidatesPlan, "_all", refuse)
    return CandidatesPlan(query.pattern, COST, induced=False, method="candidates")


@pytest.mark.parametrize(
    ("way", "pattern"),
    [("core", "cycle-5"), ("stars", "star-3"), ("homomorphisms", "path-5"), ("candidates", "path-5")],
)
def test_nothing_is_left_of_a_plan_that_has_no_room(
    way: str, pattern: str, lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = lab.graph([(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)])
    env, notes = lab.context(graph), list[str]()
    env.observer.note = notes.append
    query = Query(parse_pattern(pattern), induced=way == "stars")
    first, second = first_of(way, query, graph, monkeypatch), Otherwise(query.pattern, COST, method="other")
    if way == "stars":
        env.run = refuse
    assert Choice(query.pattern, COST, query, (first, second), PLANNER).count(env) == 7
    assert second.handled == [None]
    assert notes == [f"the budget has no room for {first.needs}: counting by other instead"]
    assert env.counted_by == "other"


def test_a_count_that_no_plan_has_room_for_is_refused(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lab.graph([(0, 1), (1, 2), (2, 3), (3, 4)])
    query = Query(parse_pattern("path-5"))
    plan = PLANNER.but("search").plan(query, Facts.of(graph))
    monkeypatch.setattr(HomomorphismCount, "mappings", refuse)
    with pytest.raises(NotEnoughMemory):
        plan.count(lab.context(graph))
