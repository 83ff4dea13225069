"""How fast a row could be at best: the steps that its method cannot do without, over this machine's step rate.

A step reads one entry of the adjacency in order and looks it up in a small table. The rate is measured with the
table in the first-level cache and all cores (or the whole device) at work, so the floor is a lower bound; real
rows look up in tables as long as the graph has vertices.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

import longwall
from longwall.storage.graph.graph import Graph

_TABLE = 4096
_ROUNDS = 5
_CUDA_LOOK_UP = r"""
extern "C" __global__ void look_up(const unsigned int* entries, const unsigned char* table, long long size,
                                   int passes, unsigned long long* total) {
    unsigned long long sum = 0;
    for (int pass = 0; pass < passes; ++pass)
        for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < size;
             i += (long long)gridDim.x * blockDim.x)
            sum += table[(entries[i] + pass) & 4095];
    atomicAdd(total, sum);
}
"""


def steps_per_second(engine: str) -> float:
    """Measure the step rate of an engine's device."""
    return _cuda_rate() if engine == "cuda" else _cpu_rate()


def _look_up(entries: npt.NDArray[np.uint32], table: npt.NDArray[np.uint8], passes: int) -> int:
    total = 0
    for _ in range(passes):
        for i in range(entries.size):
            total += table[entries[i]]
    return total


def _cpu_rate() -> float:
    import numba

    kernel: Any = numba.njit(nogil=True)(_look_up)
    threads, size, passes = len(os.sched_getaffinity(0)), 1 << 18, 64
    entries, table = _random_entries(size), np.ones(_TABLE, np.uint8)
    kernel(entries, table, 1)
    with ThreadPoolExecutor(threads) as pool:

        def once() -> float:
            began = time.perf_counter()
            for done in [pool.submit(kernel, entries, table, passes) for _ in range(threads)]:
                done.result()
            return time.perf_counter() - began

        return threads * passes * size / min(once() for _ in range(_ROUNDS))


def _cuda_rate() -> float:
    import cupy

    kernel = cupy.RawKernel(_CUDA_LOOK_UP, "look_up")
    size, passes = 1 << 22, 64
    entries, table = cupy.asarray(_random_entries(size)), cupy.ones(_TABLE, cupy.uint8)
    total = cupy.zeros(1, cupy.uint64)
    blocks = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]

    def once() -> float:
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        kernel((blocks,), (256,), (entries, table, np.int64(size), np.int32(passes), total))
        stop.record()
        stop.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3

    once()
    return passes * size / min(once() for _ in range(_ROUNDS))


def _random_entries(size: int) -> npt.NDArray[np.uint32]:
    return np.random.default_rng(0).integers(0, _TABLE, size, dtype=np.uint32)


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
