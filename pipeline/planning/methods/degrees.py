"""Stars, counted by the degrees of their centres."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.phases.degree_sums import count_stars
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query


@dataclass(frozen=True)
class DegreesPlan(CountPlan):
    """Stars of three leaves or more: every vertex of degree d has as many as there are choices of its neighbours."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts("degrees")

    def describe(self) -> str:
        """The plan as text."""
        leaves = self.pattern.num_vertices - 1
        return f"{self._title()}count        degrees: a vertex of degree d is the centre of (d choose {leaves}) stars"

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        began = time.perf_counter()
        total = count_stars(env.graph, self.pattern.num_vertices - 1)
        env.metrics.record("degrees", 0, env.graph.num_vertices, total, time.perf_counter() - began)
        return total


class Degrees(Method):
    """Stars by the degrees of their centres."""

    name: ClassVar[str] = "degrees"
    plain: ClassVar[bool] = True
    non_induced: ClassVar[bool] = True
    sure: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the sum over degrees for a star of three leaves or more."""
        pattern = query.pattern
        if pattern.num_vertices < 4 or sorted(map(len, pattern.neighbours))[-2] != 1:
            return Refusal("the pattern is no star of three leaves or more")
        return DegreesPlan(pattern, float(facts.stats.num_vertices), method=self.name)
