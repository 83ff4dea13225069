"""Induced counts as signed sums of non-induced counts of the patterns with more edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.homomorphisms.sums import denser
from longwall.pipeline.planning.method import ON_PARTS, Method
from longwall.pipeline.planning.methods.homomorphisms import induced_by_denser
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query


@dataclass(frozen=True)
class InclusionExclusionPlan(CountPlan):
    """An induced count as a signed sum of non-induced counts of the patterns with more edges.

    Attributes
    ----------
    terms
        Coefficients and plans; coefficients apply to numbers of injective homomorphisms (mappings).
    """

    terms: tuple[tuple[int, CountPlan], ...]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts("induced sum") | {
            "terms": [{"coefficient": c, "plan": plan.to_dict()} for c, plan in self.terms]
        }

    def describe(self) -> str:
        """The plan as text."""
        terms = "\n".join(
            f"{c:+d} x mappings of\n" + "\n".join("    " + line for line in plan.describe().splitlines())
            for c, plan in self.terms
        )
        return (
            f"{self._title()}matching     induced, as a signed sum of non-induced counts divided by "
            f"{self.automorphisms}:\n{terms}"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        mappings = sum(c * plan.automorphisms * plan.count(env) for c, plan in self.terms)
        return mappings // self.automorphisms


class InclusionExclusion(Method):
    """Induced counts by the non-induced counts of all patterns with more edges, each by its own plan."""

    name: ClassVar[str] = "inclusion-exclusion"
    plain: ClassVar[bool] = True
    family: ClassVar[str] = "sums"

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:
        """Propose the sum for an induced pattern without labels."""
        if not query.induced:
            return Refusal("the count is not induced")
        if query.pattern.num_vertices < 3 or not induced_by_denser(query.pattern):
            return Refusal("too many patterns have more edges")
        whole = planner.but(*ON_PARTS)
        parts = tuple((sign, whole.plan(Query(one), facts)) for one, sign in denser(query.pattern))
        return InclusionExclusionPlan(query.pattern, sum(plan.cost for _, plan in parts), parts, method=self.name)
