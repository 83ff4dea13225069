"""Plans that count by a kernel for one shape of patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.phases.range_count import RangeCount, RangePhase
from longwall.pipeline.planning.plan import CountPlan


@dataclass(frozen=True)
class KernelPlan(CountPlan):
    """A count that a kernel of its own takes.

    Attributes
    ----------
    phase
        The phase that runs the kernel.
    """

    phase: RangeCount

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

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        found: int = self.phase.run(env)
        return found
