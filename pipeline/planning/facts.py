"""The facts that the choice of a method may depend on: the graph and, once it is known, the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.device_graph import holds_part
from longwall.stages.source import host_arrays
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import GraphStats
from longwall.storage.memory.resources import Resources
from longwall.storage.pages.placement import Wanted, access_of
from longwall.storage.streaming.stored_graph import StoredGraph

Residency = Literal["resident", "paged", "mapped", "stored"]


@dataclass(frozen=True)
class Facts:
    """Facts about a graph and a machine.

    Attributes
    ----------
    stats
        Statistics of the graph.
    graph
        The graph; None: it is not made yet, and `stats` are estimates.
    on_device
        Whether the engine is a GPU.
    residency
        Where the engine finds the graph: in its memory (`resident`), there in part (`paged`), in files that are mapped
        into memory (`mapped`), or in its store (`stored`).
    rewriting
        Whether a count may be made on a graph that is derived from this one.
    """

    stats: GraphStats
    graph: Graph | None = None
    on_device: bool = False
    residency: Residency = "resident"
    rewriting: bool = True

    @classmethod
    def of(cls, graph: Graph) -> Facts:
        """Return the facts about a graph on any machine."""
        return cls(graph.stats, graph, residency="stored" if isinstance(graph, StoredGraph) else "resident")

    @classmethod
    def on(cls, graph: Graph, resources: Resources, access: Wanted) -> Facts:
        """Return the facts about a graph that is not on the engine yet, and a machine."""
        paged = access_of(host_arrays(graph), resources, access) != "resident" if resources.on_device else False
        return cls(graph.stats, graph, resources.on_device, _residency(graph, paged=paged))

    @classmethod
    def there(cls, env: Coordinator) -> Facts:
        """Return the facts about the graph of a run and its machine."""
        residency = _residency(env.graph, paged=holds_part(env))
        return cls(env.graph.stats, env.graph, env.resources.on_device, residency, rewriting=not env.whole)


def _residency(graph: Graph, *, paged: bool) -> Residency:
    if isinstance(graph, StoredGraph):
        return "stored"
    if paged:
        return "paged"
    return "resident" if graph.files is None else "mapped"
