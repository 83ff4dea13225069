"""Prisms, against those that igraph finds and those of graphs whose number is known."""

import threading
from itertools import combinations, pairwise
from math import comb
from typing import Any

import naive
import numpy as np
import pytest
from cases import each_case
from selection import on_device

from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.homomorphisms.pattern_core import pass_costs
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

MEMORY = 1 << 28
PRISM = "0-1,0-2,1-2,3-4,3-5,4-5,0-3,1-4,2-5"
MAPS_EACH = 12
GRAPHS = {
    "hubs": lambda: generate("rmat", seed=3, scale=6, edge_factor=3),
    "dense": lambda: generate("erdos-renyi", seed=2, vertices=12, edges=50),
    "complete": lambda: generate("erdos-renyi", seed=2, vertices=9, edges=36),
    "sparse": lambda: generate("erdos-renyi", seed=4, vertices=60, edges=260),
}


def count(lab: Any, kind: str, graph: Graph, cuts: list[int]) -> list[int]:
    env = lab.context(graph, engine=kind, threads=2)
    loaded, _ = load_graph(env)
    counter = env.engine.kernels.prism_counter(env.engine.device, loaded, MEMORY)
    return [counter.count(first, last) for first, last in pairwise(cuts)]


def maps_in(graph: Graph) -> int:
    """The maps of a prism, by a search of igraph's."""
    tails = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)).tolist()
    edges = list(zip(tails, graph.indices.tolist(), strict=True))
    return naive.igraph_count_mappings(edges, naive.Query(6, parse_pattern(PRISM).edges))


@each_case("kind", GRAPHS)
def test_prisms_are_those_of_igraph(lab: Any, engine_kind: str, kind: str) -> None:
    graph = GRAPHS[kind]()
    size, wanted = graph.num_vertices, maps_in(graph)
    for cuts in ([0, size], [0, 3, size // 2, size]):
        assert sum(count(lab, engine_kind, graph, cuts)) * MAPS_EACH == wanted
    assert wanted > 0


@pytest.mark.parametrize("size", [5, 6, on_device(80, 40)])  # of 80 vertices one has 79 smaller neighbours: two words
def test_prisms_of_complete_graphs(lab: Any, engine_kind: str, size: int) -> None:
    graph = lab.graph(list(combinations(range(size), 2)))
    assert sum(count(lab, engine_kind, graph, [0, size])) == comb(size, 6) * 60


def test_all_prisms_are_found_in_a_row_of_them(lab: Any, engine_kind: str) -> None:
    """A triangle times a path: a prism for each edge of the path, and no other."""
    layers = 50
    across = [(3 * i + a, 3 * i + b) for i in range(layers) for a, b in combinations(range(3), 2)]
    along = [(3 * i + a, 3 * i + 3 + a) for i in range(layers - 1) for a in range(3)]
    graph = lab.graph(across + along)
    assert sum(count(lab, engine_kind, graph, [0, graph.num_vertices])) == layers - 1


def test_sums_count_prisms_by_the_kernel(lab: Any, engine_kind: str) -> None:
    graph = GRAPHS["dense"]()
    sums = plan_homomorphisms((parse_pattern(PRISM),), pass_costs(graph.stats))
    assert sums is not None
    assert [term.kind for terms in sums.terms for term in terms] == ["prisms"]
    assert HomomorphismCount(sums).mappings(lab.context(graph, engine=engine_kind, threads=2)) == [maps_in(graph)]


def test_the_prisms_of_one_vertex_can_be_interrupted(lab: Any) -> None:
    """All those of the last vertex take minutes."""
    size = 800
    env = lab.context(generate("erdos-renyi", seed=1, vertices=size, edges=comb(size, 2)), engine="cpu", threads=1)
    loaded, _ = load_graph(env)
    counter = env.engine.kernels.prism_counter(env.engine.device, loaded, MEMORY)
    assert counter.count(0, 0) == 0  # compiled
    threading.Timer(0.5, env.engine.interrupt).start()
    assert counter.count(size - 1, size) < comb(size - 1, 5) * 60  # of any other five vertices


def test_too_little_memory_is_said(lab: Any, engine_kind: str) -> None:
    env = lab.context(GRAPHS["dense"](), engine=engine_kind)
    loaded, _ = load_graph(env)
    with pytest.raises(WorkspaceTooLarge):
        env.engine.kernels.prism_counter(env.engine.device, loaded, 64)
