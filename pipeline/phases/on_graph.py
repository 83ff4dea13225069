"""Phases on a graph that every process makes of the run's graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import Phase
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.stages.base import Aggregation


@dataclass(frozen=True)
class OnGraph(Phase):
    """Another phase, on a graph that is made of the run's; a subclass makes it, for `tasks` and `open`.

    Attributes
    ----------
    phase
        The phase; its roots are those of the graph that is made.
    """

    phase: Phase

    @property
    @abstractmethod
    def suffix(self) -> str:
        """What distinguishes phases on the graph from those on others."""

    @property
    def name(self) -> str:
        """See `Phase`."""
        return self.phase.name + self.suffix

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return self.phase.activity

    @property
    def unit(self) -> str:
        """See `Phase`."""
        return self.phase.unit

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.phase.wanted_rows

    @property
    def aggregation(self) -> Aggregation[Any, Any] | None:
        """See `Phase`."""
        return self.phase.aggregation


class ExecutorOnGraph:
    """Has the phases of a coordinator done on the graph that is made, wherever others are done.

    Parameters
    ----------
    whole
        The run.
    on_graph
        Makes of a phase the one that is dispatched.
    """

    def __init__(self, whole: Coordinator, on_graph: Callable[[Phase], OnGraph]):
        self._whole, self._on_graph = whole, on_graph
        self.engines = whole.executor.engines

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:  # noqa: ARG002 - each process has its own
        """See `Executor`."""
        return self._whole.run(self._on_graph(phase))
