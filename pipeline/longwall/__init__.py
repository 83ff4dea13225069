"""Longwall mines patterns out of graphs that outgrow a GPU: triangles, cliques, motifs, queries, frequent patterns.

Make a graph: `graph` (of networkx, igraph, tables, arrays), `open_graph` (a file or a store), `generate_graph`,
`example` (a small one that is there).

Count: `triangles`, `cliques`, `motifs`, `count` (any pattern or several), `orbits` (of each vertex: features).

List: `match` (the embeddings of a pattern), `maximal_cliques`, `frequent` (patterns).

Describe a pattern: `pattern` reads, draws and checks one, such as "house", "clique-5" or "(a)-(b)-(c), (a)-(c)".

Look ahead: `explain` says how a question would be answered, and what that takes.

Work in a folder, with everything a config can say: `run` and `resume` return a `Result`.

Build your own: `vertices`, `edges`, `extend_vertices`, `extend_edges`, `filter`, `aggregate` and `export` work on
`Embeddings`; `Algorithm` and `Workload` are bases of new kinds of work.

Functions return numbers, a `Table`, `Matches` or a `Plan`; patterns and small graphs have a `Drawing`. All functions
take `Options`, such as engine="cpu" or memory="4GiB". Wrong input raises `InputError`, a run that fails `RunError`;
`DataNote` warns of data that was dropped.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
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
    from longwall.pipeline.functions.counts import cliques, count, frequent, motifs, orbits, triangles
    from longwall.pipeline.functions.matches import Matches, match, maximal_cliques
    from longwall.pipeline.functions.one_run import Options
    from longwall.pipeline.functions.plans import Plan, explain
    from longwall.pipeline.inputs import example, open_graph
    from longwall.pipeline.patterns.pattern import Pattern
    from longwall.pipeline.patterns.pattern_of import pattern
    from longwall.pipeline.result import Result
    from longwall.pipeline.run import resume, run
    from longwall.pipeline.table import Table
    from longwall.pipeline.workloads.base import Workload
    from longwall.pipeline.workloads.custom.algorithm import Algorithm, Found, GraphView
    from longwall.storage.errors import InputError, RunError
    from longwall.storage.generators.kinds import generate_graph
    from longwall.storage.graph.graph import Graph
    from longwall.storage.ingest.data_notes import DataNote
    from longwall.storage.ingest.objects.graph_of import graph
    from longwall.storage.system.drawing import Drawing

    __version__: str

__all__ = [
    "Algorithm",
    "DataNote",
    "Drawing",
    "Embeddings",
    "Found",
    "Graph",
    "GraphView",
    "InputError",
    "Matches",
    "Options",
    "Pattern",
    "PatternCount",
    "Plan",
    "Result",
    "RunError",
    "Table",
    "Workload",
    "__version__",
    "aggregate",
    "cliques",
    "count",
    "edges",
    "example",
    "explain",
    "export",
    "extend_edges",
    "extend_vertices",
    "filter",
    "frequent",
    "generate_graph",
    "graph",
    "match",
    "maximal_cliques",
    "motifs",
    "open_graph",
    "orbits",
    "pattern",
    "resume",
    "run",
    "triangles",
    "vertices",
]

# Where each public name lives. They are imported on first use: `import longwall` costs nothing.
_HOMES = {
    "Algorithm": ("longwall.pipeline.workloads.custom.algorithm", "Algorithm"),
    "DataNote": ("longwall.storage.ingest.data_notes", "DataNote"),
    "Drawing": ("longwall.storage.system.drawing", "Drawing"),
    "Embeddings": ("longwall.pipeline.embeddings.embeddings", "Embeddings"),
    "Found": ("longwall.pipeline.workloads.custom.algorithm", "Found"),
    "Graph": ("longwall.storage.graph.graph", "Graph"),
    "GraphView": ("longwall.pipeline.workloads.custom.algorithm", "GraphView"),
    "InputError": ("longwall.storage.errors", "InputError"),
    "Matches": ("longwall.pipeline.functions.matches", "Matches"),
    "Options": ("longwall.pipeline.functions.one_run", "Options"),
    "Pattern": ("longwall.pipeline.patterns.pattern", "Pattern"),
    "PatternCount": ("longwall.pipeline.execution.environment", "PatternCount"),
    "Plan": ("longwall.pipeline.functions.plans", "Plan"),
    "Result": ("longwall.pipeline.result", "Result"),
    "RunError": ("longwall.storage.errors", "RunError"),
    "Table": ("longwall.pipeline.table", "Table"),
    "Workload": ("longwall.pipeline.workloads.base", "Workload"),
    "aggregate": ("longwall.pipeline.embeddings.aggregation", "aggregate"),
    "cliques": ("longwall.pipeline.functions.counts", "cliques"),
    "count": ("longwall.pipeline.functions.counts", "count"),
    "edges": ("longwall.pipeline.embeddings.calls", "edges"),
    "example": ("longwall.pipeline.inputs", "example"),
    "explain": ("longwall.pipeline.functions.plans", "explain"),
    "export": ("longwall.pipeline.embeddings.calls", "export"),
    "extend_edges": ("longwall.pipeline.embeddings.calls", "extend_edges"),
    "extend_vertices": ("longwall.pipeline.embeddings.calls", "extend_vertices"),
    "filter": ("longwall.pipeline.embeddings.calls", "filter"),
    "frequent": ("longwall.pipeline.functions.counts", "frequent"),
    "generate_graph": ("longwall.storage.generators.kinds", "generate_graph"),
    "graph": ("longwall.storage.ingest.objects.graph_of", "graph"),
    "match": ("longwall.pipeline.functions.matches", "match"),
    "maximal_cliques": ("longwall.pipeline.functions.matches", "maximal_cliques"),
    "motifs": ("longwall.pipeline.functions.counts", "motifs"),
    "open_graph": ("longwall.pipeline.inputs", "open_graph"),
    "orbits": ("longwall.pipeline.functions.counts", "orbits"),
    "pattern": ("longwall.pipeline.patterns.pattern_of", "pattern"),
    "resume": ("longwall.pipeline.run", "resume"),
    "run": ("longwall.pipeline.run", "run"),
    "triangles": ("longwall.pipeline.functions.counts", "triangles"),
    "vertices": ("longwall.pipeline.embeddings.calls", "vertices"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("longwall.storage.system.version").longwall_version()
    elif name in _HOMES:
        module, attribute = _HOMES[name]
        value = getattr(import_module(module), attribute)
        if isinstance(value, FunctionType):
            value = import_module("longwall.pipeline.functions.public").public(value, name)
    else:
        raise AttributeError(f"module 'longwall' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
