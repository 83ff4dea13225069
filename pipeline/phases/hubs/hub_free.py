"""The graph without its hubs: every process derives it once, and keeps it for all phases on it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from longwall.pipeline.execution.device_graph import load_graph, release_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.phases.derived_graph import DerivedGraph, GraphDerivation
from longwall.storage.graph.derived.hubs import (
    HubFree,
    degrees_without,
    hub_bytes,
    hub_masks,
    without_hubs,
    without_hubs_bytes,
)

_WHAT = "the graph without its hubs"


@dataclass(frozen=True)
class WithoutHubs(GraphDerivation[HubFree]):
    """The graph without its `hubs` vertices of the highest degrees."""

    hubs: int

    @property
    def suffix(self) -> str:
        """See `GraphDerivation`."""
        return f", without {self.hubs} hubs"

    def build(self, env: Environment) -> DerivedGraph[HubFree]:
        """Remove the hubs, and bring the remaining graph to the engine."""
        host, graph, loaded = env.resources.host, env.graph, env.device_graph
        if loaded is not None and loaded.placement.access != "resident":
            release_graph(env)  # the page cache takes the rest of the device's memory
        with ExitStack() as opened:
            memory = opened.enter_context(host.reserve(hub_bytes(graph), _WHAT))
            masks = hub_masks(graph, self.hubs)
            degrees = degrees_without(graph, self.hubs, masks)
            memory.resize(masks.nbytes + degrees.nbytes + without_hubs_bytes(graph, degrees), _WHAT)
            found = without_hubs(graph, self.hubs, masks, degrees)
            memory.resize(found.nbytes, _WHAT)
            made = DerivedGraph(env, self, found, None if found.part is None else found.part.graph, memory)
            opened.callback(made.close)
            if made.env is not None:
                load_graph(made.env)
            opened.pop_all()
        return made
