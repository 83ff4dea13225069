"""Graphs that every process derives from the graph of the run, and phases on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import Derivation, derived, made
from longwall.pipeline.execution.device_graph import forget_graph
from longwall.pipeline.execution.environment import DeviceGraph, Environment
from longwall.pipeline.execution.phase import MakeWorker, NotEnoughMemory, Phase, Task
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import Reservation

Found = TypeVar("Found")


class DerivedGraph(Generic[Found]):
    """A graph that a process derived, and the environment of the phases on it.

    Parameters
    ----------
    whole
        The environment of the graph that it is derived from.
    how
        Identifies the graph in every process.
    found
        The result of the derivation: the graph and further facts.
    graph
        The graph; None if it has no edge.
    memory
        The reservation of its bytes of the host, which `close` releases; None: it has none.

    Attributes
    ----------
    whole, found
        See above.
    env
        The environment of phases on the graph, each dispatched as an `OnDerivedGraph`; None without a graph.
    whole_on_device
        The graph that it is derived from, if that stays on the engine; `whole` gets it back in the end.
    """

    whole_on_device: DeviceGraph | None = None

    def __init__(
        self,
        whole: Environment,
        how: GraphDerivation[Found],
        found: Found,
        graph: Graph | None,
        memory: Reservation | None,
    ):
        self.whole, self.found, self._memory = whole, found, memory
        self.env: Environment | None = None
        if graph is not None:
            self.env = replace(whole, graph=graph, device_graph=None, derived={}, lent={}, own=self)
        if isinstance(self.env, Coordinator):
            assert isinstance(whole, Coordinator)
            self.env.executor, self.env.suffix = _ExecutorOnGraph(whole, how), how.suffix + whole.suffix

    def close(self) -> None:
        """Release the graph, on the engine, too."""
        if self.env is not None:
            self.env.close()
            if self.env.device_graph is not None:
                forget_graph(self.env)
            self.env.own = None  # in a cycle, the graph would stay until Python looks for garbage
        if self._memory is not None:
            self._memory.release()


class GraphDerivation(Derivation[DerivedGraph[Found]]):
    """Identifies a graph that is derived from the graph of the run."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The end of the names of phases on this graph; other graphs have another."""

    @contextmanager
    def entered(self, env: Environment) -> Iterator[Environment]:
        """Yield the environment of the graph, to a phase that begins or works on it.

        Raises
        ------
        NotEnoughMemory
            If a budget has no room for the graph, or the graph has no edge.
        """
        there = derived(env, self).env
        if there is None:
            raise NotEnoughMemory("the derived graph does not fit the device")
        yield there

    def opened(self, env: Environment, there: Environment) -> None:
        """Called once a phase is open on the graph."""


class _ExecutorOnGraph:
    """Dispatches the phases of a coordinator on a derived graph, by the executor of the run."""

    def __init__(self, whole: Coordinator, graph: GraphDerivation[Any]):
        self._whole, self._graph = whole, graph
        self.engines = whole.executor.engines

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:  # noqa: ARG002 - each process has its own
        """See `Executor`."""
        return self._whole.run(OnDerivedGraph(phase, self._graph))


@dataclass(frozen=True)
class OnDerivedGraph(Phase):
    """Another phase, on a graph that each process derives.

    Attributes
    ----------
    phase
        The phase; its roots are those of the derived graph.
    graph
        Identifies the derived graph.
    """

    phase: Phase
    graph: GraphDerivation[Any]

    @property
    def name(self) -> str:
        """See `Phase`."""
        return self.phase.name + self.graph.suffix

    activity = property(attrgetter("phase.activity"))
    unit = property(attrgetter("phase.unit"))
    wanted_rows = property(attrgetter("phase.wanted_rows"))
    aggregation = property(attrgetter("phase.aggregation"))
    keeps_workers = property(attrgetter("phase.keeps_workers"))

    def brief(self, env: Environment) -> bool:
        """See `Phase`; the derived graph has been made by then."""
        there = made(env, self.graph).env
        assert there is not None
        return self.phase.brief(there)

    def prepare(self, env: Environment) -> None:
        """Derive the graph, and prepare the phase on it."""
        with self.graph.entered(env) as there:
            self.phase.prepare(there)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the roots of the derived graph."""
        there = made(env, self.graph).env
        assert there is not None
        return self.phase.tasks(there)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Open the phase on the derived graph."""
        with self.graph.entered(env) as there, self.phase.open(there) as make_worker:
            self.graph.opened(env, there)
            yield make_worker
