"""Phases on a graph that every process makes of the run's graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from longwall.pipeline.execution.device_graph import release_graph
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import Phase
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.stages.base import Aggregation
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import Reservation

What = TypeVar("What")
Place = TypeVar("Place", bound=Environment)


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

    @property
    def keeps_workers(self) -> bool:
        """See `Phase`."""
        return self.phase.keeps_workers


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


class OwnGraph(Generic[What, Place]):
    """A graph that a process made of the run's, and what works on it, until the process makes another or ends the run.

    Parameters
    ----------
    whole
        What works on the graph of which it is made.
    what
        What it is.
    graph
        The graph.
    memory
        Its bytes of the host, which it releases; None: it has none.
    on_graph, suffix
        Makes of a phase on the graph the one that is dispatched, and what distinguishes their names.

    Attributes
    ----------
    whole, what
        See above.
    env
        What works on the graph: a phase is dispatched as others are, each an `OnGraph`.
    """

    def __init__(
        self,
        whole: Place,
        what: What,
        graph: Graph,
        memory: Reservation | None,
        on_graph: Callable[[Phase], OnGraph],
        suffix: str,
    ):
        self.whole, self.what, self._memory = whole, what, memory
        self.env = replace(whole, graph=graph, device_graph=None, kept={}, lent={}, own=self)
        if isinstance(self.env, Coordinator):
            assert isinstance(whole, Coordinator)
            self.env.executor, self.env.suffix = ExecutorOnGraph(whole, on_graph), suffix + whole.suffix

    def close(self) -> None:
        """Release the graph, on the engine, too."""
        self.env.close()
        release_graph(self.env)
        self.env.own = None  # in a cycle, the graph would stay until Python looks for garbage
        if self._memory is not None:
            self._memory.release()
