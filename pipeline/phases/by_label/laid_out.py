"""Phases on a graph that is laid out by label: each process makes it once, inside its budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from longwall.pipeline.execution.device_graph import keep_made, release_graph
from longwall.pipeline.execution.environment import LAID_OUT, Coordinator, Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Task
from longwall.pipeline.phases.by_label.on_device import MadeOnDevice, lay_out_on_device
from longwall.pipeline.phases.on_graph import ExecutorOnGraph, OnGraph
from longwall.storage.graph.derived.label_layout import LabelLayout, lay_out
from longwall.storage.graph.graph import Graph
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
        graph, made = whole.lent.get(layout), None
        if graph is None:
            try:
                graph, made = self._make(whole)
            except BudgetExceeded as error:
                raise DoesNotFit from error
        self.env = replace(whole, graph=graph, device_graph=None, kept={})
        if made is not None:
            keep_made(self.env, made.there, made.room)
        if isinstance(self.env, Coordinator):
            assert isinstance(whole, Coordinator)
            self.env.executor, self.env.suffix = (
                ExecutorOnGraph(whole, partial(OnLayout, layout=layout)),
                OnLayout.suffix_of(layout) + whole.suffix,
            )

    def _make(self, whole: Environment) -> tuple[Graph, MadeOnDevice | None]:
        """Make the graph; return what is on the device, too, where it was made there."""
        made = lay_out_on_device(whole, self.layout)
        if made is not None:
            self._reserved = made.reserved
            return made.graph, made
        if whole.device_graph is not None:
            release_graph(whole)
        resources = whole.resources
        maker = adjacency_maker(resources, whole.spec.memory.access)
        graph, self._reserved = lay_out(whole.graph, self.layout, resources.host, maker)
        return graph, None

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
        kept = env.kept[LAID_OUT] = LaidOut(env, layout)
    there: Place = kept.env
    return there


def forget_layout(env: Environment) -> None:
    """Release what `laid_out` keeps."""
    if LAID_OUT in env.kept:
        env.kept.pop(LAID_OUT).close()
        env.device_graph = None


@dataclass(frozen=True)
class OnLayout(OnGraph):
    """A phase on the graph of a layout.

    Attributes
    ----------
    layout
        The layout.
    """

    layout: LabelLayout

    @staticmethod
    def suffix_of(layout: LabelLayout) -> str:
        """Return what distinguishes phases on a layout from those on the graph, and on other layouts."""
        return f", by label {' '.join(map(str, layout.roles))}"

    @property
    def suffix(self) -> str:
        """See `OnGraph`."""
        return self.suffix_of(self.layout)

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
