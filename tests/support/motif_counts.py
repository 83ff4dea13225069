"""Motifs as tests count them: by runs, by brute force, and as published."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import combinations
from typing import Any

import igraph
import naive


@cache
def form(edges: tuple[tuple[int, int], ...], k: int) -> tuple[tuple[int, int], ...]:
    """The canonical form that igraph gives (it is another one than ours)."""
    graph = igraph.Graph(k, edges)
    return tuple(sorted(graph.permute_vertices(graph.canonical_permutation()).get_edgelist()))


def pairs_of(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(u), int(v)) for u, v in (edge.split("-") for edge in text.split(",")))


def by_form(counts: list[Any], k: int) -> dict[tuple, int]:
    return {form(pairs_of(one.pattern), k): one.count for one in counts}


def brute_force(edges: Any, k: int) -> Counter[tuple]:
    """Connected induced subgraphs of k vertices by igraph's canonical form."""
    near = naive.adjacency(edges)
    found: Counter[tuple] = Counter()
    for chosen in combinations(sorted(near), k):
        inside = tuple((i, j) for i, j in combinations(range(k), 2) if chosen[j] in near[chosen[i]])
        if igraph.Graph(k, inside).is_connected():
            found[form(inside, k)] += 1
    return found


def mine(context: Any) -> list[Any]:
    workload = context.spec.workload
    return workload.execute(workload.plan(context.graph), context)


def run(lab: Any, graph: Any, k: int, engine: str, **workload: Any) -> list[Any]:
    context = lab.context(graph, engine=engine, threads=2, workload={"kind": "motifs", "k": k, **workload})
    return mine(context)


def published(data: Any, name: str, k: int) -> dict[tuple, int]:
    """Counts of the files of truth: ``[1-2]`` is an edge, ``(1~2)`` is none."""
    found = {}
    for line in (data / "truth" / f"{name}.txt").read_text().splitlines():
        edges = tuple((int(u) - 1, int(v) - 1) for u, v in re.findall(r"\[(\d)-(\d)\]", line))
        found[form(edges, k)] = int(line.split()[1])
    return found


def per_vertex(k: int) -> dict[str, Any]:
    return {"kind": "motifs", "k": k, "output": "vertices"}
