"""Phases on a graph that is laid out by label: each process makes it once, inside its budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from longwall.pipeline.execution.device_graph import keep_made, release_graph
from longwall.pipeline.execution.environment import LAID_OUT, DeviceGraph, Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Task
from longwall.pipeline.phases.by_label.on_device import lay_out_on_device
from longwall.pipeline.phases.on_graph import OnGraph, OwnGraph, Place
from longwall.storage.graph.derived.label_layout import LabelLayout, lay_out
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.pages.placement import adjacency_maker


def _make(whole: Place, layout: LabelLayout) -> OwnGraph[LabelLayout, Place]:
    """Make the graph, on the engine, too, where it can be made there; or take the one that is lent."""
    graph, memory, made = whole.lent.get(layout), None, None
    if graph is None:
        made = lay_out_on_device(whole, layout)
        if made is not None:
            graph, memory = made.graph, made.reserved
        else:
            if whole.device_graph is not None:
                release_graph(whole)
            resources = whole.resources
            maker = adjacency_maker(resources, whole.spec.memory.access)
            graph, memory = lay_out(whole.graph, layout, resources.host, maker)
    own = OwnGraph(whole, layout, graph, memory, partial(OnLayout, layout=layout), OnLayout.suffix_of(layout))
    if made is not None:
        keep_made(own.env, made.there, made.room)
    return own


def laid_out(env: Place, layout: LabelLayout) -> Place:
    """Return what works on the graph of a layout; made where it is not there.

    Raises
    ------
    DoesNotFit
        If there is no room for it.
    """
    kept: Any = env.kept.get(LAID_OUT)
    if kept is None or kept.what != layout:
        env.forget_layout()
        try:
            kept = env.kept[LAID_OUT] = _make(env, layout)
        except BudgetExceeded as error:
            raise DoesNotFit from error
    there: Place = kept.env
    return there


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
            env.device_graph = _lent(there)  # where others look for what is on the engine
            yield make_worker

    @contextmanager
    def _there(self, env: Environment) -> Iterator[Environment]:
        """Have what works on the graph."""
        there = laid_out(env, self.layout)
        env.device_graph = None  # else what `there` gives up for another part of the graph would stay
        try:
            yield there
        finally:
            env.device_graph = _lent(there)


def _lent(there: Environment) -> DeviceGraph | None:
    """Return the graph on the engine for others to see: what it takes, its `OwnGraph` gives back."""
    return None if there.device_graph is None else replace(there.device_graph, charged=(0, 0))
