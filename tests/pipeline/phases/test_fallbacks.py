"""Where there is no room for one way of counting, nothing of it is left while another one counts."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.by_label.plans import plan_count
from longwall.pipeline.phases.cores import core_plan
from longwall.pipeline.phases.count_plans import CountByHomomorphisms, CountPlan
from longwall.pipeline.phases.queries import plans as query_plans
from longwall.pipeline.phases.stars import star_plan

COST = 1e30


@dataclass
class Otherwise:
    """Another way of counting, which looks at what is handled as it counts: its traceback holds what it came from."""

    cost: float = COST
    handled: list[BaseException | None] = field(default_factory=list)

    def count(self, env: Any) -> int:
        self.handled.append(sys.exc_info()[1])
        return 7


def refuse(*_: Any) -> NoReturn:
    raise DoesNotFit


@pytest.mark.parametrize("way", ["core", "stars", "homomorphisms", "candidates"])
def test_nothing_is_left_of_what_had_no_room(way: str, lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, otherwise = lab.graph([(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)]), Otherwise()
    env, whole = lab.context(graph), otherwise
    plan: CountPlan
    if way == "core":
        monkeypatch.setattr(core_plan, "pays_on_engine", lambda *_: True)
        monkeypatch.setattr(core_plan, "find_core", refuse)
        plan = core_plan.CountInCore(parse_pattern("cycle-5"), COST, whole, induced=False)
    elif way == "stars":
        monkeypatch.setattr(star_plan, "pays_on_engine", lambda *_: True)
        env.run = refuse
        plan = star_plan.CountStarsByCentre(parse_pattern("star-3"), COST, whole, induced=True)
    elif way == "homomorphisms":
        plan = plan_count(parse_pattern("path-5"), graph)
        assert isinstance(plan, CountByHomomorphisms)
        monkeypatch.setattr(type(plan.counted), "mappings", refuse)
        monkeypatch.setattr(CountByHomomorphisms, "_otherwise", lambda _, env: otherwise.count(env))
    else:
        plan = query_plans.CountByCandidates(parse_pattern("path-5"), COST, induced=False)
        monkeypatch.setattr(query_plans.CountByCandidates, "_all", refuse)
        monkeypatch.setattr(query_plans, "CountBySearch", lambda *_: otherwise)
    assert plan.count(env) == 7
    assert otherwise.handled == [None]
