"""Plans that count by one kernel, and methods that count one shape of patterns by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.phases.range_count import RangeCount, RangePhase
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.stages.range_counting import CountRanges


@dataclass(frozen=True)
class PhasePlan(CountPlan):
    """A count by one phase.

    Attributes
    ----------
    phase
        The phase, which runs a kernel.
    """

    phase: RangePhase

    @property
    def streamed(self) -> RangePhase | None:
        """The phase itself, if it streams."""
        return self.phase if self.phase.count.streams else None

    @property
    def needs(self) -> str:
        """The method, as the kernel names it."""
        return self.phase.count.method

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts(self.phase.count.method)

    def describe(self) -> str:
        """The plan as text."""
        return self._title() + self.phase.describe()


@dataclass(frozen=True)
class KernelPlan(PhasePlan):
    """A count by a kernel that counts nothing else."""

    phase: RangeCount

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        found: int = self.phase.run(env)
        return found


class OneShape(Method):
    """A method for one pattern, which its degrees identify."""

    plain: ClassVar[bool] = True
    non_induced: ClassVar[bool] = True
    sure: ClassVar[bool] = True
    shape: ClassVar[str]
    degrees: ClassVar[list[int]]
    stage: ClassVar[type[CountRanges]]
    steps: ClassVar[float] = 1 / 4
    """Estimated steps, per unit of the sum of squared degrees."""
    plan: ClassVar[type[KernelPlan]] = KernelPlan

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel for the pattern."""
        if sorted(map(len, query.pattern.neighbours)) != self.degrees:
            return Refusal(f"the pattern is no {self.shape}")
        cost = float(facts.stats.sum_degree_squared) * self.steps
        return self.plan(query.pattern, cost, RangeCount(self.stage(), cost), method=self.name)
