"""Phases on a graph that is laid out by label: each process makes it once, inside its budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from longwall.pipeline.execution.device_graph import release_graph
from longwall.pipeline.execution.environment import LAID_OUT, Coordinator, Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Phase, Task
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.stages.base import Aggregation
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.label_layout import LabelLayout, lay_out
from longwall.storage.memory.reservations import BudgetExceeded, Reservation
from longwall.storage.pages.placement import adjacency_maker

Place = TypeVar("Place", bound=Environment)


class LaidOut:
    """A process's graph of a layout, until it makes another one or the run is over.

    Attributes
    ----------
    layout
        The layout.
    env
        What works on the graph: its phases are dispatched as others are, each `OnLayout`.
    """

    def __init__(self, whole: Environment, layout: LabelLayout):
        self.layout = layout
        self._reserved: Reservation | None = None
        graph = whole.lent.get(layout)
        if graph is None:
            resources = whole.resources
            maker = adjacency_maker(resources, whole.spec.memory.access)
            try:
                graph, self._reserved = lay_out(whole.graph, layout, resources.host, maker)
            except BudgetExceeded as error:
                raise DoesNotFit from error
        self.env = replace(whole, graph=graph, device_graph=None, kept={})
        if isinstance(self.env, Coordinator):
            assert isinstance(whole, Coordinator)
            self.env.executor, self.env.suffix = _Executor(whole, layout), OnLayout.suffix_of(layout) + whole.suffix

    @property
    def lent(self) -> dict[LabelLayout, Graph]:
        """The graph, for another engine of the process; see `Environment.lent`."""
        return {self.layout: self.env.graph}

    def close(self) -> None:
        """Release the graph, on the engine, too."""
        self.env.close()
        if self.env.device_graph is not None:
            release_graph(self.env)
        if self._reserved is not None:
            self._reserved.release()


def laid_out(env: Place, layout: LabelLayout) -> Place:
    """Return what works on the graph of a layout; made where it is not there.

    Raises
    ------
    DoesNotFit
        If there is no room for it.
    """
    kept: Any = env.kept.get(LAID_OUT)
    if kept is None or kept.layout != layout:
        forget_layout(env)
        if env.device_graph is not None:
            release_graph(env)
        kept = env.kept[LAID_OUT] = LaidOut(env, layout)
    there: Place = kept.env
    return there


def forget_layout(env: Environment) -> None:
    """Release what `laid_out` keeps."""
    if LAID_OUT in env.kept:
        env.kept.pop(LAID_OUT).close()
        env.device_graph = None


class _Executor:
    """Has the phases of a coordinator done on the graph of a layout, wherever others are done."""

    def __init__(self, whole: Coordinator, layout: LabelLayout):
        self._whole, self._layout = whole, layout
        self.engines = whole.executor.engines

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:  # noqa: ARG002 - each process has its own
        """See `Executor`."""
        return self._whole.run(OnLayout(self._layout, phase))


@dataclass(frozen=True)
class OnLayout(Phase):
    """A phase on the graph of a layout.

    Attributes
    ----------
    layout
        The layout.
    phase
        The phase; its roots are those of the graph of the layout.
    """

    layout: LabelLayout
    phase: Phase

    @staticmethod
    def suffix_of(layout: LabelLayout) -> str:
        """Return what distinguishes phases on a layout from those on the graph, and on other layouts."""
        return f", by label {' '.join(map(str, layout.roles))}"

    @property
    def name(self) -> str:
        """See `Phase`."""
        return self.phase.name + self.suffix_of(self.layout)

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

    def tasks(self, env: Environment) -> Sequence[Task]:
        """See `Phase`."""
        with self._there(env) as there:
            return self.phase.tasks(there)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """See `Phase`."""
        with self._there(env) as there, self.phase.open(there) as make_worker:
            env.device_graph = there.device_graph  # where others look for what is on the engine
            yield make_worker

    @contextmanager
    def _there(self, env: Environment) -> Iterator[Environment]:
        """Have what works on the graph."""
        there = laid_out(env, self.layout)
        try:
            yield there
        finally:
            env.device_graph = there.device_graph
