"""The base of plans that count all connected patterns of a size."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.planning.plan import CountPlan


@dataclass(frozen=True)
class CensusPlan(CountPlan):
    """The counts of all connected patterns of a size, of which `pattern` is the clique; they are induced."""

    @property
    def k(self) -> int:
        """Number of vertices."""
        return self.pattern.num_vertices

    def count(self, env: Coordinator) -> int:
        """Count the connected induced subgraphs of all patterns together."""
        return sum(self.counts(env))

    @abstractmethod
    def counts(self, env: Coordinator) -> list[int]:
        """Count the induced subgraphs of every connected pattern, in the order of the pattern codes."""
