"""Motifs by enumeration: the connected induced subgraphs of k vertices, whatever their pattern, are counted by pattern.

:mod:`longwall.stages.motif_counting` has how.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from longwall.kernels.host.patterns.pattern_codes import growth
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.motifs.census import CensusPlan
from longwall.stages.motif_counting import CountMotifClasses


@dataclass(frozen=True)
class EnumerationPlan(CensusPlan):
    """Motifs of `k` vertices by enumeration."""

    @property
    def kernels(self) -> tuple[Any, ...]:
        """Those that list the connected patterns, and what counts them."""
        from longwall.kernels.host.patterns.canonical_kernel import canonical_codes, count_removable

        return (canonical_codes, count_removable, *self.phase.count.kernels)

    @property
    def phase(self) -> RangeCount:
        """What counts them."""
        return RangeCount(CountMotifClasses(self.k), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "motif enumeration", "k": self.k, "estimated_cost": self.cost}

    def describe(self) -> str:
        """The plan as text."""
        patterns = len(growth(self.k - 1).codes)
        return (
            f"motifs       {patterns:,} connected patterns of {self.k} vertices, induced\n"
            f"{self.phase.describe()}\n"
            f"estimate     {self.cost:.3g} elementary steps"
        )

    def counts(self, env: Coordinator) -> list[int]:
        """Count the induced subgraphs of every connected pattern, in the order of the pattern codes."""
        size = 2 * 8 * prod(CountMotifClasses(self.k).shape)
        with env.resources.host.reserve(size, "the motifs' counts"):
            found: list[int] = self.phase.run(env)
        return found
