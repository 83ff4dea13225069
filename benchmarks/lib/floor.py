"""How fast a row could be at best: the steps that its method cannot do without, over this machine's step rate.

A step reads one entry of the adjacency in order and looks it up in a small table. The rate is measured with the
table in the first-level cache and all cores (or the whole device) at work, so the floor is a lower bound; real
rows look up in tables as long as the graph has vertices.
"""

from typing import Any

import numpy as np

import longwall
from longwall.kernels import select_engine
from longwall.storage.graph.graph import Graph


def steps_per_second(kind: str) -> float:
    """Measure the step rate of an engine's device."""
    engine = select_engine(kind)
    return engine.kernels.steps_per_second(engine.device)


def steps(store: str, plans: dict[str, list[dict[str, Any]]], cliques: dict[str, int]) -> dict[str, float | None]:
    """Count the steps of each row's method on a graph.

    Parameters
    ----------
    store
        A graph store.
    plans
        Row -> the plans of its runs, as the manifests hold them.
    cliques
        Size -> number of cliques, as far as known.

    Returns
    -------
    dict
        Row -> steps; None where a plan is a search of more than the edges: its steps only the search itself
        could tell.
    """
    graph = longwall.open_graph(store)
    sizes = {int(size): count for size, count in cliques.items()}
    found: dict[str, float | None] = {}
    for row, parts in plans.items():
        each = [_plan_steps(graph, plan, sizes) for plan in parts]
        known = [one for one in each if one is not None]
        found[row] = sum(known) if len(known) == len(each) else None
    return found


def _plan_steps(graph: Graph, plan: dict[str, Any], cliques: dict[int, int]) -> float | None:
    kind = plan.get("kind")
    if kind == "clique bitmaps":
        size = 1 + max(int(vertex) for vertex in plan["pattern"].replace("-", ",").split(","))
        # The table below each vertex costs the triangles' look-ups; every smaller clique is then at least one
        # operation on a word of 64 candidates.
        return _triangle_steps(graph) + (cliques.get(size - 1, 0) if size > 3 else 0)
    if kind == "wedge aggregation":
        return _wedge_steps(graph)
    if kind == "homomorphisms":
        wide = 2.0 * graph.num_vertices * graph.num_edges
        return float(plan["passes"]) * graph.stats.sum_degree_squared + float(plan["wide_passes"]) * wide
    if kind == "induced sum":
        parts = [_plan_steps(graph, term["plan"], cliques) for term in plan["terms"]]
        known = [one for one in parts if one is not None]
        return sum(known) if len(known) == len(parts) else None
    if kind == "search" and _intersects_once(plan):
        return _edge_intersection_steps(graph)
    return None


def _intersects_once(plan: dict[str, Any]) -> bool:
    """Whether a search goes over the edges, and then has the common neighbours of their ends to count.

    It has where the counted vertices touch both ends: different vertices of a row must not match the same one.
    """
    ends, counted = plan["order"][:2], plan["order"][2:]
    edges = {frozenset(edge.split("-")) for edge in plan["pattern"].split(",")}
    touched = [end for end in ends if any(frozenset((str(end), str(other))) in edges for other in counted)]
    return len(touched) == 2 and plan["counted_suffix"] == len(counted)


def _triangle_steps(graph: Graph) -> float:
    """Sum over the oriented edges of the out-degree of their heads."""
    out_degrees = graph.split - graph.indptr[:-1]
    slots = np.arange(graph.indices.size)
    oriented = slots < np.repeat(graph.split, np.diff(graph.indptr))
    return float(np.sum(out_degrees[graph.indices[oriented]], dtype=np.float64))


def _wedge_steps(graph: Graph) -> float:
    """Number of wedges whose first end precedes their centre and their other end."""
    degree = np.diff(graph.indptr).astype(np.float64)
    smaller = (graph.split - graph.indptr[:-1]).astype(np.float64)
    return float(np.sum(smaller * (degree - 1) - smaller * (smaller - 1) / 2))


def _edge_intersection_steps(graph: Graph) -> float:
    """Sum over the edges of the smaller degree of both ends: vertices are numbered by descending degree."""
    degree = np.diff(graph.indptr).astype(np.float64)
    smaller = (graph.split - graph.indptr[:-1]).astype(np.float64)
    return float(np.sum(degree * smaller))
