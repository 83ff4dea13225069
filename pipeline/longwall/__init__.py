"""Longwall mines patterns out of graphs that outgrow a GPU."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longwall.pipeline.embeddings.aggregation import aggregate
    from longwall.pipeline.embeddings.calls import (
        edges,
        export,
        extend_edges,
        extend_vertices,
        filter,  # noqa: A004 - GAMMA's name
        vertices,
    )
    from longwall.pipeline.embeddings.embeddings import Embeddings
    from longwall.pipeline.execution.environment import PatternCount
    from longwall.pipeline.result import Result
    from longwall.pipeline.run import open_graph, resume, run
    from longwall.pipeline.workloads.base import Workload
    from longwall.pipeline.workloads.custom.algorithm import Algorithm, Found, GraphView
    from longwall.storage.errors import InputError, RunError
    from longwall.storage.generators.kinds import generate as generate_graph
    from longwall.storage.graph.graph import Graph
    from longwall.storage.ingest.objects.graph_of import graph

    __version__: str

__all__ = [
    "Algorithm",
    "Embeddings",
    "Found",
    "Graph",
    "GraphView",
    "InputError",
    "PatternCount",
    "Result",
    "RunError",
    "Workload",
    "__version__",
    "aggregate",
    "edges",
    "export",
    "extend_edges",
    "extend_vertices",
    "filter",
    "generate_graph",
    "graph",
    "open_graph",
    "resume",
    "run",
    "vertices",
]

# Where each public name lives. They are imported on first use: `import longwall` costs nothing.
_HOMES = {
    "Algorithm": ("longwall.pipeline.workloads.custom.algorithm", "Algorithm"),
    "Embeddings": ("longwall.pipeline.embeddings.embeddings", "Embeddings"),
    "Found": ("longwall.pipeline.workloads.custom.algorithm", "Found"),
    "Graph": ("longwall.storage.graph.graph", "Graph"),
    "GraphView": ("longwall.pipeline.workloads.custom.algorithm", "GraphView"),
    "InputError": ("longwall.storage.errors", "InputError"),
    "PatternCount": ("longwall.pipeline.execution.environment", "PatternCount"),
    "Result": ("longwall.pipeline.result", "Result"),
    "RunError": ("longwall.storage.errors", "RunError"),
    "Workload": ("longwall.pipeline.workloads.base", "Workload"),
    "aggregate": ("longwall.pipeline.embeddings.aggregation", "aggregate"),
    "edges": ("longwall.pipeline.embeddings.calls", "edges"),
    "export": ("longwall.pipeline.embeddings.calls", "export"),
    "extend_edges": ("longwall.pipeline.embeddings.calls", "extend_edges"),
    "extend_vertices": ("longwall.pipeline.embeddings.calls", "extend_vertices"),
    "filter": ("longwall.pipeline.embeddings.calls", "filter"),
    "generate_graph": ("longwall.storage.generators.kinds", "generate"),
    "graph": ("longwall.storage.ingest.objects.graph_of", "graph"),
    "open_graph": ("longwall.pipeline.run", "open_graph"),
    "resume": ("longwall.pipeline.run", "resume"),
    "run": ("longwall.pipeline.run", "run"),
    "vertices": ("longwall.pipeline.embeddings.calls", "vertices"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("longwall.storage.version").longwall_version()
    elif name in _HOMES:
        module, attribute = _HOMES[name]
        value = getattr(import_module(module), attribute)
    else:
        raise AttributeError(f"module 'longwall' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
