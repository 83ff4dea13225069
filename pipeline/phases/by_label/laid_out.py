"""The graph laid out by label: every process derives it once, inside its budgets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import derived
from longwall.pipeline.execution.device_graph import keep_made, release_graph
from longwall.pipeline.execution.environment import DeviceGraph, Environment
from longwall.pipeline.phases.by_label.on_device import lay_out_on_device
from longwall.pipeline.phases.derived_graph import DerivedGraph, GraphDerivation
from longwall.storage.graph.derived.label_layout import LabelLayout, lay_out
from longwall.storage.pages.placement import adjacency_maker


@dataclass(frozen=True)
class ByLabel(GraphDerivation[None]):
    """The graph of a layout; on the engine it replaces the graph of the run."""

    in_place: ClassVar[bool] = True

    layout: LabelLayout

    @property
    def suffix(self) -> str:
        """See `GraphDerivation`."""
        return f", by label {' '.join(map(str, self.layout.roles))}"

    def build(self, env: Environment) -> DerivedGraph[None]:
        """Take the graph that is lent; else make it, on the engine if possible."""
        graph, memory, made = env.lent.get(self), None, None
        if graph is None:
            made = lay_out_on_device(env, self.layout)
            if made is not None:
                graph, memory = made.graph, made.reserved
            else:
                if env.device_graph is not None:
                    release_graph(env)
                resources = env.resources
                maker = adjacency_maker(resources, env.spec.memory.access)
                graph, memory = lay_out(env.graph, self.layout, resources.host, maker)
        result = DerivedGraph(env, self, None, graph, memory)
        if made is not None:
            assert result.env is not None
            keep_made(result.env, made.there, made.capacity)
            result.whole_on_device, env.device_graph = env.device_graph, None
        return result

    @contextmanager
    def entered(self, env: Environment) -> Iterator[Environment]:
        """See `GraphDerivation`; a graph without an edge is entered, too."""
        there = derived(env, self).env
        assert there is not None
        env.device_graph = None  # else what `there` gives up for another part of the graph would stay
        try:
            yield there
        finally:
            self.opened(env, there)

    def opened(self, env: Environment, there: Environment) -> None:
        """Record the graph on the engine in the run's environment; the derived graph releases its memory."""
        on_engine: DeviceGraph | None = there.device_graph
        env.device_graph = None if on_engine is None else replace(on_engine, charged=(0, 0))


def laid_out(env: Coordinator, layout: LabelLayout) -> Coordinator:
    """Return the environment of the graph of a layout.

    Raises
    ------
    NotEnoughMemory
        If a budget has no room for the graph.
    """
    there = derived(env, ByLabel(layout)).env
    assert isinstance(there, Coordinator)
    return there
