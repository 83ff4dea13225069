"""What is beside pairs of vertices, against maps that are enumerated."""

import threading
from itertools import pairwise
from typing import Any

import naive
import numpy as np
import pytest
from cases import each_case

from longwall.kernels.host.patterns.pattern_codes import canonical_pattern
from longwall.kernels.interface.homomorphism_program import CodegreePattern
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.homomorphisms.pairs import codegree_edges, merged_edges
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

MEMORY = 1 << 28
GRAPHS = {
    "hubs": lambda: generate("rmat", seed=3, scale=6, edge_factor=3),
    "dense": lambda: generate("erdos-renyi", seed=2, vertices=12, edges=50),
    "complete": lambda: generate("erdos-renyi", seed=2, vertices=9, edges=36),
    "sparse": lambda: generate("erdos-renyi", seed=4, vertices=60, edges=260),
}


@pytest.fixture(
    params=["cpu", *(pytest.param(kind, marks=pytest.mark.gpu) for kind in ("cuda", "cuda, short of shared memory"))]
)
def engine(request: pytest.FixtureRequest, lab: Any, monkeypatch: Any) -> Any:
    kind, _, short = request.param.partition(", ")

    def load(graph: Graph) -> Any:
        env = lab.context(graph, engine=kind, threads=2)
        loaded, _ = load_graph(env)
        if short:
            monkeypatch.setattr(env.engine.device, "shared_memory", 200)
        return env.engine, loaded

    return load


def mappings(graph: Graph, codegree: CodegreePattern) -> int:
    """The maps that are counted, by a search of igraph's."""
    tails = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)).tolist()
    edges = list(zip(tails, graph.indices.tolist(), strict=True))
    merged = merged_edges(codegree)
    beyond = naive.igraph_count_mappings(edges, naive.Query(5, merged)) if merged else 0
    return naive.igraph_count_mappings(edges, naive.Query(6, codegree_edges(codegree))) + beyond


def test_patterns_of_pairs_are_what_they_are_said_to_be() -> None:
    patterns = [Pattern(6, codegree_edges(codegree)) for codegree in CodegreePattern]
    assert len({canonical_pattern(pattern.edges, None, 6)[0] for pattern in patterns}) == len(CodegreePattern)
    for codegree, pattern in zip(CodegreePattern, patterns, strict=True):
        assert len(pattern.neighbours[0] & pattern.neighbours[1]) >= codegree.common
        assert codegree.symmetric == (pattern.neighbours[1] == pattern.neighbours[0] and not codegree.has_codegrees)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("codegree", CodegreePattern)
@each_case("kind", GRAPHS)
def test_maps_beside_pairs_are_those_of_igraph(engine: Any, codegree: CodegreePattern, kind: str) -> None:
    graph = GRAPHS[kind]()
    own, loaded = engine(graph)
    counter = own.kernels.pair_counter(own.device, loaded, codegree, MEMORY)
    wanted = mappings(graph, codegree)
    size = graph.num_vertices
    for cuts in ([0, size], [0, 3, size // 2, size]):
        counts = [counter.count(first, last) for first, last in pairwise(cuts)]
        assert sum(counts) * codegree.maps_each == wanted
    assert wanted > 0 or kind == "sparse"


@each_case("codegree", [CodegreePattern.CYCLE, CodegreePattern.ENDS, CodegreePattern.CROSS, CodegreePattern.SPLIT])
def test_the_pairs_of_one_hub_can_be_interrupted(codegree: CodegreePattern, lab: Any) -> None:
    """All pairs of the last vertex take many minutes."""
    vertices = 2500
    graph = generate("erdos-renyi", seed=1, vertices=vertices, edges=vertices * (vertices - 1) // 2)
    env = lab.context(graph, engine="cpu", threads=1)
    loaded, _ = load_graph(env)
    counter = env.engine.kernels.pair_counter(env.engine.device, loaded, codegree, MEMORY << 2)
    assert counter.count(0, 0) == 0  # compiled
    threading.Timer(0.5, env.engine.interrupt).start()
    assert counter.count(vertices - 1, vertices) < vertices**5 // 2  # of nearly all five others in any order
