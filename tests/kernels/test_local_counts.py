"""The kernels that count around vertices: triangles of arcs, and homomorphisms of graphlets, against naive loops."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import naive
import naive_orbits
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from strategies import SmallGraph, graphs

from longwall.kernels.exact_numbers import PRIMES
from longwall.kernels.host.patterns.graphlets import graphlet_orbits, graphlets
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.local_counts import COUNTED, TriangleGraph
from longwall.pipeline.phases.edge_graph import edge_graph
from longwall.pipeline.planning.motifs.arc_triangles import triangle_graph
from longwall.pipeline.planning.motifs.twins import twins_of
from longwall.storage.generators.kinds import generate

relaxed = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
MEMORY = 1 << 28


def case(lab: Any, engine: str, graph: Any) -> tuple[Any, TriangleGraph]:
    context = lab.context(graph, engine=engine)
    return context, triangle_graph(context)


def homomorphisms(context: Any, graph: TriangleGraph, cuts: tuple[int, ...] = (), prime: int = 0) -> Any:
    engine = context.engine
    counter = engine.kernels.orbit_homomorphism_counter(engine.device, graph, prime, MEMORY)
    for first, last in pairwise([0, *cuts, graph.num_vertices]):
        counter.add(first, last)
    counts = counter.counts()
    twins_of(context.graph).give(counts)
    return counts


@relaxed
@given(small=graphs(max_vertices=12))
def test_triangles_of_arcs(lab, engine_kind, small):
    context, with_triangles = case(lab, engine_kind, lab.graph(small.edges))
    graph, near = context.graph, naive.adjacency(small.edges)
    found = with_triangles.triangles.tolist()
    ids = graph.original_ids.tolist()
    most = 0
    for v in range(graph.num_vertices):
        arcs = range(int(graph.indptr[v]), int(graph.indptr[v + 1]))
        for arc in arcs:
            assert found[arc] == len(near[ids[v]] & near[ids[int(graph.indices[arc])]])
        most = max(most, sum(found[arc] for arc in arcs))
    assert with_triangles.most_triangles == most


COMPLETE = SmallGraph([(u, v) for v in range(7) for u in range(v)], {})


@relaxed
@example(small=COMPLETE, cut=3, prime=0)
@example(small=COMPLETE, cut=3, prime=11)
@given(small=graphs(max_vertices=9), cut=st.integers(0, 9), prime=st.sampled_from([0, 2, 11, 251, PRIMES[0]]))
def test_homomorphisms_are_those_of_loops(lab, engine_kind, small, cut, prime):
    context, graph = case(lab, engine_kind, lab.graph(small.edges))
    found = homomorphisms(context, graph, (min(cut, graph.num_vertices),), prime)
    ids = context.graph.original_ids.tolist()
    for row, orbit in zip(found, COUNTED, strict=True):
        _, pairs = naive_orbits.figure()[orbit]
        expected = naive_orbits.homomorphisms(small.edges, pairs, graphlets()[graphlet_orbits()[orbit].graphlet].size)
        assert row.tolist() == [expected[vertex] % (prime or 2**64) for vertex in ids]


@pytest.mark.gpu
@pytest.mark.parametrize(("blocks", "prime"), [(1, 0), (3, 0), (3, 251)])
def test_engines_agree_on_hubs(lab, engine_kind, blocks, prime, monkeypatch):
    """Lists of more than a warp's and a block's width, and blocks that take one vertex after another."""
    if engine_kind == "cpu":
        pytest.skip("there are no blocks")
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.orbits._BLOCKS", blocks)
    graph = generate("rmat", seed=3, scale=7, edge_factor=8)
    found = [homomorphisms(*case(lab, kind, graph), prime=prime) for kind in ("cpu", "cuda")]
    np.testing.assert_array_equal(found[0], found[1])
    assert context_degree(graph) > 64


def context_degree(graph: Any) -> int:
    return int(np.diff(graph.indptr).max())


def test_a_workspace_that_does_not_fit(lab, engine_kind):
    context, graph = case(lab, engine_kind, lab.graph(COMPLETE.edges))
    with pytest.raises(WorkspaceTooLarge):
        context.engine.kernels.orbit_homomorphism_counter(context.engine.device, graph, 0, 8 * len(COUNTED) * 7 + 8)


def edge_counts(lab: Any, engine_kind: str, graph: Any, shape: str, pieces: int = 1, cuts: tuple[int, ...] = ()) -> Any:
    context = lab.context(graph, engine=engine_kind)
    engine, numbered = context.engine, edge_graph(context)
    ends = np.linspace(0, graph.num_edges, pieces + 1).astype(int).tolist()
    found = []
    for begin, end in pairwise(ends):
        counter = engine.kernels.edge_counter(engine.device, numbered, shape, begin, end - begin, MEMORY)
        for first, last in pairwise([0, *cuts, graph.num_vertices]):
            counter.add(first, last)
        found += counter.counts().tolist()
    return found


@relaxed
@example(small=COMPLETE, shape="clique-4", pieces=2, cut=5)
@example(small=COMPLETE, shape="cycle-4", pieces=1, cut=2)
@given(
    small=graphs(max_vertices=10),
    shape=st.sampled_from(["triangle", "clique-4", "cycle-4"]),
    pieces=st.integers(1, 3),
    cut=st.integers(0, 9),
)
def test_edges_count_what_contains_them(lab, engine_kind, small, shape, pieces, cut):
    graph = lab.graph(small.edges)
    found = edge_counts(lab, engine_kind, graph, shape, pieces, (min(cut, graph.num_vertices),))
    expected = naive.embeddings_per_edge(small.edges, shape)
    table = graph.to_arrow()
    ends = zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)
    assert found == [expected[frozenset(edge)] for edge in ends]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", ["triangle", "clique-4", "cycle-4"])
def test_engines_agree_on_edges_of_hubs(lab, engine_kind, shape, monkeypatch):
    if engine_kind == "cpu":
        pytest.skip("there are no blocks")
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.edges._BLOCKS", 2)
    graph = generate("erdos-renyi", seed=3, vertices=90, edges=2600)
    assert graph.stats.max_out_degree > 32
    assert edge_counts(lab, "cuda", graph, shape) == edge_counts(lab, "cpu", graph, shape)
