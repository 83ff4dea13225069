"""The rivals that a Python user has today, each in the process that is measured."""

import os
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import longwall
from benchmarks.lib.rows import BY_NAME, Row
from longwall.pipeline.patterns.parse import parse_pattern

"""Rival -> rows that it has an answer for."""


def igraph_counts(store: str, row: str) -> dict[str, Any]:
    """Count with igraph's quickest way: triangle and clique lists, or a census of all small subgraphs."""
    import igraph

    _limit_memory()
    wanted = BY_NAME[row]
    graph = _igraph(store)
    if row == "triangles":
        return _timed(lambda: [len(graph.list_triangles())])
    if row.endswith("-clique"):
        size = wanted.workloads[0]["k"]
        return _timed(lambda: [len(graph.cliques(size, size))])
    patterns = _patterns(wanted)

    def census() -> list[int]:
        size = patterns[0].vcount()
        found = graph.motifs_randesu(size)
        if wanted.induced:
            return [int(found[pattern.isoclass()]) for pattern in patterns]
        classes = [(igraph.Graph.Isoclass(size, i), n) for i, n in enumerate(found) if n > 0]
        return [
            sum(int(n) * (one.count_subisomorphisms_vf2(p) // _automorphisms(p)) for one, n in classes)
            for p in patterns
        ]

    return _timed(census)


def igraph_vf2_counts(store: str, row: str) -> dict[str, Any]:
    """Count with igraph by listing every mapping: for small graphs; non-induced rows only."""
    _limit_memory()
    graph = _igraph(store)
    patterns = _patterns(BY_NAME[row])
    return _timed(lambda: [graph.count_subisomorphisms_vf2(p) // _automorphisms(p) for p in patterns])


def networkx_counts(store: str, row: str) -> dict[str, Any]:
    """Count triangles with networkx."""
    import networkx as nx

    _limit_memory()
    _, edges = _edges(store)
    graph = nx.Graph()
    graph.add_edges_from(edges.tolist())
    return _timed(lambda: [sum(nx.triangles(graph).values()) // 3])


def rival_version(name: str) -> str:
    """Give the version of a rival's package."""
    from importlib import import_module
    from importlib.metadata import version

    import_module(name)
    return version(name)


def _timed(count: Callable[[], list[int]]) -> dict[str, Any]:
    began = time.perf_counter()
    counts = count()
    return {"counts": counts, "seconds": time.perf_counter() - began}


def _limit_memory() -> None:
    """Have a rival that lists everything fail alone, not take the machine with it."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    resource.setrlimit(resource.RLIMIT_AS, (half, half))


def _edges(store: str) -> tuple[int, npt.NDArray[np.int64]]:
    graph = longwall.open_graph(store)
    ends = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    once = ends < graph.indices
    return graph.num_vertices, np.stack([ends[once], graph.indices[once].astype(np.int64)], axis=1)


def _igraph(store: str) -> Any:
    import igraph

    vertices, edges = _edges(store)
    return igraph.Graph(n=vertices, edges=edges)


def _patterns(row: Row) -> list[Any]:
    import igraph

    return [igraph.Graph(edges=parse_pattern(name).edges) for name in row.patterns]


def _automorphisms(pattern: Any) -> int:
    return int(pattern.count_subisomorphisms_vf2(pattern))
