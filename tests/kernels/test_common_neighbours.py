"""What belongs to arcs and to the common neighbours of their ends, against powers of the adjacency matrix."""

from dataclasses import replace
from itertools import pairwise
from math import comb, prod
from typing import Any

import numpy as np
import pytest
from budgets import table_memory

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import (
    FLOATING,
    WORD,
    CodegreePattern,
    Inner,
    Make,
    RowTables,
    Step,
    TableProgram,
)
from longwall.kernels.interface.local_counts import EdgeGraph
from longwall.pipeline.execution.device_graph import load_graph
from longwall.stages.homomorphisms.tables import common_lists, levels
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

MEMORY = 1 << 28
_INNER_EDGES = {
    Inner.TRIANGLES: [(0, 1), (0, 2), (1, 2)],
    Inner.PAWS: [(0, 1), (0, 2), (1, 2), (2, 3)],
    Inner.CYCLES: [(0, 1), (1, 2), (2, 3), (0, 3)],
    Inner.DIAMONDS: [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)],
}


@pytest.fixture(params=["R-MAT", "dense"])
def graph(request: pytest.FixtureRequest) -> Graph:
    """A graph with vertices of few neighbours and of many, and one of many common neighbours."""
    if request.param == "dense":
        return generate("erdos-renyi", seed=2, vertices=80, edges=2_500)
    made = generate("rmat", seed=3, scale=8, edge_factor=8)
    return made if request.param == "R-MAT" else turned(made)


def turned(graph: Graph) -> Graph:
    """Let the last vertices have the most neighbours, as those of a layout by label may."""
    last, arcs = np.uint32(graph.num_vertices - 1), graph.indptr[-1]
    return replace(
        graph,
        indptr=np.ascontiguousarray(arcs - graph.indptr[::-1]),
        indices=np.ascontiguousarray((last - graph.indices)[::-1]),
        split=np.ascontiguousarray(arcs - graph.split[::-1]),
        stats=replace(graph.stats, max_out_degree=graph.stats.max_degree),
    )


@pytest.fixture(
    params=["cpu", *(pytest.param(kind, marks=pytest.mark.gpu) for kind in ("cuda", "cuda, short of shared memory"))]
)
def engine(request: pytest.FixtureRequest, lab: Any, graph: Graph, monkeypatch: Any) -> Any:
    """An engine and the graph as its kernels read it."""
    kind, _, short = request.param.partition(", ")
    env = lab.context(graph, engine=kind, threads=2)
    loaded, _ = load_graph(env)
    if short:
        monkeypatch.setattr(env.engine.device, "shared_memory", 200)
        monkeypatch.setattr("longwall.kernels.cuda.local_counts.arc_triangles._LIST_CHUNKS", 7)
    return env.engine, loaded


def adjacency(graph: Graph) -> np.ndarray:
    found = np.zeros((graph.num_vertices, graph.num_vertices), np.int64)
    found[tails(graph), graph.indices] = 1
    return found


def tails(graph: Graph) -> np.ndarray:
    return np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))


def lists_of(engine: Any, graph: GraphArrays) -> tuple[Any, Any, int]:
    return common_lists(engine, graph, table_memory(MEMORY))


def on_host(array: Any) -> np.ndarray:
    return array.get() if hasattr(array, "get") else array


@pytest.mark.parametrize("graph", ["R-MAT", "dense", "hubs last"], indirect=True)
def test_common_neighbours_are_those_of_the_matrix(engine, graph):
    kernels, loaded = engine[0].kernels, engine[1]
    near = adjacency(graph)
    indptr, common, longest = lists_of(*engine)
    triangles = kernels.arc_triangles(engine[0].device, loaded)
    most = kernels.most_triangles(engine[0].device, loaded, triangles)
    indptr, common, triangles = on_host(indptr), on_host(common), on_host(triangles)
    wanted = (near @ near)[tails(graph), graph.indices]
    assert np.diff(indptr).tolist() == triangles.tolist() == wanted.tolist()
    assert longest == wanted.max() > 32
    assert most == np.add.reduceat(wanted, graph.indptr[:-1]).max()
    for arc, (v, x) in enumerate(zip(tails(graph).tolist(), graph.indices.tolist(), strict=True)):
        places = common[indptr[arc] : indptr[arc + 1]]
        assert (tails(graph)[places] == v).all()
        assert graph.indices[places].tolist() == np.flatnonzero(near[v] & near[x]).tolist()


def test_reverse_arcs_lead_back(engine, graph):
    found = on_host(engine[0].kernels.reverse_arcs(engine[0].device, engine[1]))
    assert tails(graph)[found].tolist() == graph.indices.tolist()
    assert graph.indices[found].tolist() == tails(graph).tolist()


@pytest.mark.parametrize("many", [1 << 15, 0])
def test_paths_are_those_of_the_matrix(engine, graph, many, monkeypatch):
    """On the GPU, vertices of many wedges also in windows."""
    if engine[0].name == "cuda":
        monkeypatch.setattr("longwall.kernels.cuda.homomorphisms.tables._MANY_WEDGES", many)
    found = engine[0].xp.zeros(engine[1].num_arcs, np.int64)
    engine[0].kernels.paths_of_arcs(engine[0].device, engine[1], found, MEMORY)
    near = adjacency(graph)
    assert on_host(found).tolist() == (near @ near @ near)[tails(graph), graph.indices].tolist()


def test_cliques_of_arcs_are_those_of_the_matrix(engine, graph):
    found = engine[0].xp.zeros(engine[1].num_arcs, np.int64)
    engine[0].kernels.cliques_of_arcs(engine[0].device, engine[1], found, MEMORY)
    near = adjacency(graph)
    wanted = [
        int(near[np.ix_(both, both)].sum())
        for both in (near[v] & near[x] > 0 for v, x in zip(tails(graph), graph.indices, strict=True))
    ]
    assert max(wanted) > 100
    assert on_host(found).tolist() == wanted


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("inner", Inner)
def test_inner_counts_are_homomorphisms_to_the_common_neighbours(engine, graph, inner):
    device, loaded, kernels = engine[0].device, engine[1], engine[0].kernels
    indptr, common, longest = lists_of(*engine)
    none = engine[0].xp.zeros((0, 0), np.int64)
    tables = RowTables(WORD, none, none, kernels.reverse_arcs(device, loaded), indptr, common, longest)
    found = engine[0].xp.zeros(loaded.num_arcs, np.int64)
    kernels.inner_counts(device, loaded, tables, inner, found, MEMORY)
    near = adjacency(graph)
    wanted = []
    for v, x in zip(tails(graph), graph.indices, strict=True):
        both = near[v] & near[x] > 0
        among = near[np.ix_(both, both)]
        operands = [part for pair in _INNER_EDGES[inner] for part in (among, pair)]
        wanted.append(int(np.einsum(*operands, [], optimize="greedy")))
    assert max(wanted) > 1_000
    assert on_host(found).tolist() == wanted


@pytest.mark.parametrize("cut", [None, 40])
def test_triangles_and_diamonds_are_those_of_the_matrix(engine, graph, cut):
    near = adjacency(graph)
    common = (near @ near)[tails(graph), graph.indices]
    kernels, device, loaded = engine[0].kernels, engine[0].device, engine[1]
    for counter, size, wanted in (
        (kernels.diamond_counter(device, loaded, MEMORY), loaded.num_vertices, (common * (common - 1)).sum() // 4),
        (kernels.triangle_counter(device, loaded, MEMORY), loaded.num_arcs, common.sum() // 6),
    ):
        cuts = [0, *([] if cut is None else [cut, size // 2 + 1]), size]
        for _ in range(2):
            assert sum(counter.count(first, last) for first, last in pairwise(cuts)) == wanted > 1_000


def test_an_edge_may_be_in_more_diamonds_than_32_bits_count(lab):
    """Two adjacent hubs with 100,000 neighbours each, the same ones."""
    leaves = range(2, 100_002)
    env = lab.context(lab.graph([(0, 1), *((hub, leaf) for leaf in leaves for hub in (0, 1))]))
    loaded, _ = load_graph(env)
    counter = env.engine.kernels.diamond_counter(env.engine.device, loaded, MEMORY)
    assert counter.count(0, loaded.num_vertices) == comb(100_000, 2)


@pytest.mark.parametrize(("many", "narrow"), [(0, 1 << 16), (0, 0), (1_500, 1 << 16)])
def test_four_cycles_are_those_of_the_matrix(engine, graph, many, narrow, monkeypatch):
    """On the GPU, vertices of many wedges also in windows, with counters of 16 bits and of 32."""
    if engine[0].name == "cuda":
        monkeypatch.setattr("longwall.kernels.cuda.local_counts.four_cycles._MANY", many)
        monkeypatch.setattr("longwall.kernels.cuda.local_counts.four_cycles._LARGEST_NARROW", narrow)
    near = adjacency(graph)
    walks = np.triu(near @ near, 1)
    counter = engine[0].kernels.four_cycle_counter(engine[0].device, engine[1], MEMORY)
    for _ in range(2):
        assert counter.count(0, engine[1].num_vertices) == (walks * (walks - 1)).sum() // 4 > 1_000


@pytest.mark.parametrize("cut", [None, 40])
def test_wheels_are_cycles_among_neighbours(engine, graph, cut):
    near, wanted = adjacency(graph), 0
    for row in near > 0:
        inside = near[np.ix_(row, row)]
        walks = np.triu(inside @ inside, 1)
        wanted += int((walks * (walks - 1)).sum()) // 4
    counter = engine[0].kernels.wheel_counter(engine[0].device, engine[1], listed(*engine), MEMORY)
    cuts = [0, *([] if cut is None else [cut, engine[1].num_arcs // 2]), engine[1].num_arcs]
    assert sum(counter.count(first, last) for first, last in pairwise(cuts)) == wanted > 1_000


@pytest.mark.parametrize("cut", [None, 40])
def test_almost_cliques_are_pairs_of_common_neighbours(engine, graph, cut):
    near, wanted = adjacency(graph), 0
    for v, x, y in zip(*np.nonzero(np.einsum("vx,xy,vy->vxy", near, near, near)), strict=True):
        if v < x < y:
            wanted += comb(int((near[v] & near[x] & near[y]).sum()), 2)
    counter = engine[0].kernels.almost_clique_counter(engine[0].device, engine[1], listed(*engine), MEMORY)
    cuts = [0, *([] if cut is None else [cut]), engine[1].num_vertices]
    assert sum(counter.count(first, last) for first, last in pairwise(cuts)) == wanted > 1_000


def listed(engine: Any, graph: GraphArrays) -> RowTables:
    none = engine.xp.empty(0, np.int64)
    return RowTables(WORD, none, none, none, *lists_of(engine, graph))


def test_numbers_that_may_not_fit_a_word_are_refused(engine, graph, monkeypatch):
    """Graphs with enough edges would not fit the memory of a test, so the checks assume shorter words."""
    (made, loaded), tables = engine, listed(*engine)
    device, kernels, xp = made.device, made.kernels, made.xp
    arcs = xp.zeros(loaded.num_arcs, np.int64)
    counts = {
        "4-cycles": lambda: kernels.four_cycle_counter(device, loaded, MEMORY),
        "4-cycles by columns": lambda: kernels.column_cycle_counter(device, loaded, MEMORY),
        "walks": lambda: kernels.paths_of_arcs(device, loaded, arcs, MEMORY),
        "maps": lambda: kernels.inner_counts(device, loaded, tables, Inner.CYCLES, arcs, MEMORY),
        "almost-cliques": lambda: kernels.almost_clique_counter(device, loaded, tables, MEMORY),
        "pairs": lambda: kernels.pair_counter(device, loaded, CodegreePattern.CHERRY, MEMORY),
    }
    if made.name == "cuda":  # the CPU has longer words
        numbered = EdgeGraph.of(loaded, edges=arcs)
        counts |= {
            "diamonds": lambda: kernels.diamond_counter(device, loaded, MEMORY),
            "cliques of arcs": lambda: kernels.cliques_of_arcs(device, loaded, arcs, MEMORY),
            "cliques of edges": lambda: kernels.edge_counter(device, numbered, "clique-4", 0, 1, MEMORY),
        }
    monkeypatch.setattr("longwall.kernels.exact_numbers._SPARE", 56)
    for name, count in counts.items():
        with pytest.raises(OverflowError, match=r"may not fit \d\d-bit integers"):
            pytest.fail(f"{name}: {count()}")


def test_columns_have_no_more_arcs_than_32_bits_count(engine, graph, monkeypatch):
    device, loaded, kernels = engine[0].device, engine[1], engine[0].kernels
    if engine[0].name == "cuda":
        monkeypatch.setattr("longwall.kernels.cuda.local_counts.four_cycles._MOST_COLUMN_ARCS", 300)
    counter = kernels.column_cycle_counter(device, loaded, MEMORY)
    assert counter.arc_capacity == (300 if engine[0].name == "cuda" else loaded.num_arcs)


@pytest.mark.parametrize("modulus", [WORD, FLOATING, 2**31 - 1])
def test_tables_that_are_made_together_are_those_of_numpy(engine, graph, modulus):
    made, loaded = engine
    xp, kernels = made.xp, made.kernels
    n, arcs, first, prime = graph.num_vertices, len(graph.indices), tails(graph), max(modulus, 0)
    numbers = np.random.default_rng(4)
    kind = np.float64 if modulus == FLOATING else np.int64
    rubbish = np.nan if modulus == FLOATING else -1
    vertices, over_arcs = np.full((9, n), rubbish, kind), np.full((9, arcs), rubbish, kind)
    vertices[:3], over_arcs[:3] = numbers.integers(0, 1 << 20, (3, n)), numbers.integers(0, 1 << 20, (3, arcs))
    indptr, common, longest = lists_of(*engine)
    reverse = kernels.reverse_arcs(made.device, loaded)
    tables = RowTables(modulus, xp.asarray(vertices), xp.asarray(over_arcs), reverse, indptr, common, longest)
    labelled = replace(loaded, labels=xp.asarray((np.arange(n) % 3).astype(np.int32)))
    steps = (
        Step(Make.MULTIPLY_VERTICES, 3, (0, 1, 2)),
        Step(Make.MULTIPLY_VERTICES, 4),
        Step(Make.LABEL, 5, (2,)),
        Step(Make.SUM_NEIGHBOURS, 6, (0, 1)),
        Step(Make.SUM_NEIGHBOURS, 7, (-1, 0)),
        Step(Make.SUM_NEIGHBOURS, 8, (-1, -1)),
        Step(Make.MULTIPLY_ARCS, 3, (2, 0, 2, 1)),
        Step(Make.HEADS, 4, (1,)),
        Step(Make.TAILS, 5, (1,)),
        Step(Make.REVERSE, 6, (0,)),
        Step(Make.ARC_TRIANGLES, 7),
        Step(Make.MULTIPLY_ARCS, 8, (1,)),
    )
    kernels.fill_tables(made.device, labelled, tables, steps)

    def product(*factors):
        return np.array([prod(map(int, some)) for some in zip(*factors, strict=True)], object)

    def summed(weights):
        return np.array([sum(map(int, some)) for some in np.split(weights, graph.indptr[1:-1])], object)

    near, heads = adjacency(graph), graph.indices
    wanted_vertices = [
        product(*vertices[:3]),
        np.ones(n),
        np.arange(n) % 3 == 2,
        summed(over_arcs[1] * vertices[0][heads]),
        summed(over_arcs[0]),
        near.sum(axis=0),
    ]
    wanted_arcs = [
        product(*over_arcs[[2, 0, 2, 1]]),
        vertices[1][heads],
        vertices[1][first],
        over_arcs[0][on_host(reverse)],
        (near @ near)[first, heads],
        over_arcs[1],
    ]
    bound = prime or 2**64
    for found, wanted in ((tables.vertices, wanted_vertices), (tables.arcs, wanted_arcs)):
        for one, other in zip(on_host(found)[3:], wanted, strict=True):
            if modulus == FLOATING:
                np.testing.assert_allclose(one, other.astype(float), rtol=1e-12)
            else:
                assert [int(number) % bound for number in one] == [int(number) % bound for number in other]


def test_levels_of_a_table_program_follow_what_they_read():
    """A row program may read every table, so it is a level of its own."""
    degrees, triangles = Step(Make.SUM_NEIGHBOURS, 0, (-1, -1)), Step(Make.ARC_TRIANGLES, 0)
    square, heads = Step(Make.MULTIPLY_ARCS, 1, (0, 0)), Step(Make.HEADS, 2, (0,))
    both = Step(Make.SUM_NEIGHBOURS, 1, (0, 1))
    rows, later = Step(Make.VERTEX_ROWS, 2, (0,)), Step(Make.SUM_NEIGHBOURS, 3, (2, -1))
    alone = Step(Make.LABEL, 4, (0,))
    steps = (degrees, triangles, square, both, heads, rows, later, alone)
    found = levels(TableProgram(5, 3, steps, ()))
    assert found == ((degrees, triangles), (square, heads), (both,), (rows,), (later, alone))
