"""The kernels for cliques of one size, of every size, and per vertex: with bitmaps and with pivots."""

import random
from itertools import combinations, pairwise
from math import comb

import naive_cliques
import networkx as nx
import numpy as np
import pytest
from engines import make_engine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oriented import orient
from strategies import graphs

from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cuda.local_counts.reverse_adjacency import ReverseAdjacency
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.kcliques import (
    ALL_SIZES,
    add_limbs,
    cliques_of_leaves,
    exact_sum,
    exact_values,
    leaf_weights,
    limbs_needed,
    table_words,
)
from longwall.kernels.interface.workspaces import NARROW
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
MEMORY = 1 << 27


class Case:
    """A graph, and its cliques by every kernel."""

    def __init__(self, lab, engine, edges):
        graph = lab.graph(list(edges))
        self.kernels, self.device = engine.kernels, engine.device
        self.graph = engine.load(host_arrays(graph))
        self.ids = graph.original_ids.tolist()

    def ranges(self, cuts):
        ends = sorted({min(cut, self.graph.num_arcs) for cut in cuts})
        return pairwise([0, *ends, self.graph.num_arcs])

    def leaves(self, k, cuts=(), memory=MEMORY):
        """Cliques by size, from 3 on, or those of one size, by pivots."""
        counter = self.kernels.clique_leaf_counter(self.device, self.graph, k, memory)
        parts = []
        for first, last in self.ranges(cuts):
            counter.add(first, last)
            parts.append(cliques_of_leaves(counter.take(), k))
        assert not np.any(counter.take()), "what was taken is counted again"
        if k:
            return sum(part[k] for part in parts)
        totals = [sum(part[size] for part in parts if size < len(part)) for size in range(max(map(len, parts)))]
        return {size: count for size, count in enumerate(totals) if count and size > 2}

    def bitmaps(self, k, cuts=()):
        counter = self.kernels.clique_counter(self.device, self.graph, k, MEMORY)
        return sum(counter.count(first, last) for first, last in self.ranges(cuts))

    def vertices(self, k, cuts=(), limbs=1):
        counter = self.kernels.clique_vertex_counter(self.device, self.graph, k, limbs, MEMORY)
        for first, last in self.ranges(cuts):
            counter.add(first, last)
        found = zip(self.ids, exact_values(counter.counts()).tolist(), strict=True)
        return {vertex: count for vertex, count in found if count}


@pytest.fixture(scope="session")
def case(lab, engine):
    return lambda edges: Case(lab, engine, edges)


def dense(n, share, seed):
    draw = random.Random(seed)
    return [pair for pair in combinations(range(n), 2) if draw.random() < share]


def in_vertices(cliques, k):
    found = {}
    for clique in cliques:
        for vertex in clique if len(clique) == k else ():
            found[vertex] = found.get(vertex, 0) + 1
    return found


def check(one, cliques, sizes, cuts=()):
    """Compare every kernel with all cliques of two vertices or more."""
    wanted = naive_cliques.sizes(cliques)
    assert one.leaves(ALL_SIZES, cuts) == {size: count for size, count in wanted.items() if size > 2}
    for k in sizes:
        if k > 3:
            assert one.leaves(k, cuts) == wanted.get(k, 0)
        assert one.bitmaps(k, cuts) == wanted.get(k, 0)
        assert one.vertices(k, cuts) == in_vertices(cliques, k)


@settings(relaxed, max_examples=40)
@given(small=graphs(), k=st.integers(3, 8), cut=st.integers(0, 40))
def test_small_graphs_have_the_cliques_of_the_definition(case, small, k, cut):
    check_small(case, small, k, cut)


@pytest.mark.slow
@settings(relaxed, max_examples=400)
@given(small=graphs(max_vertices=11), k=st.integers(3, 8), cut=st.integers(0, 40))
def test_hundreds_of_small_graphs(case, small, k, cut):
    check_small(case, small, k, cut)


def check_small(case, small, k, cut):
    edges = [edge for edge in small.edges if edge[0] != edge[1]]
    check(case(small.edges), naive_cliques.cliques_by_definition(edges), (k,), (cut, cut + 5))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("seed", range(2))
def test_random_graphs_against_networkx(case, share, seed):
    edges = dense(32, share, seed)
    cliques = {frozenset(one) for one in nx.enumerate_all_cliques(nx.Graph(edges)) if len(one) > 1}
    check(case(edges), cliques, (3, 4, 5, 6, 9), (50,))


@pytest.mark.parametrize(
    ("n", "matching"), [(60, 5), (70, 2), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((100, 4), (150, 3)))]
)
def test_complete_graphs_that_lack_few_edges(case, n, matching):
    """Searches among more candidates than a word has bits, and numbers of many words."""
    apart = {(2 * i, 2 * i + 1) for i in range(matching)}
    one = case(set(combinations(range(n), 2)) - apart)
    wanted = {k: naive_cliques.cliques_without_a_matching(n, matching, k) for k in range(3, n + 1)}
    assert one.leaves(ALL_SIZES, (100,)) == {k: count for k, count in wanted.items() if count}
    for k in (4, 5, 6, 7, n // 2, n - matching, n):
        assert one.leaves(k, (1000,)) == wanted[k]
    for k in (3, 7, n // 2, n - matching):
        found = one.vertices(k, (1000,), limbs=3)
        assert sum(found.values()) == k * wanted[k]
        assert len(found) == n
        assert len(set(found.values())) <= 2


def test_sparse_graphs_with_many_candidates(case):
    """More candidates than a word has bits, few of which are adjacent."""
    outer, inner = 4, 140
    edges = [*combinations(range(outer), 2), *((u, v) for u in range(outer) for v in range(outer, outer + inner))]
    edges += [(u + outer, v + outer) for u, v in dense(inner, 0.12, 3)]
    one = case(edges)
    cliques = {frozenset(found) for found in nx.enumerate_all_cliques(nx.Graph(edges)) if len(found) > 1}
    wanted = naive_cliques.sizes(cliques)
    assert one.leaves(ALL_SIZES) == {size: count for size, count in wanted.items() if size > 2}
    for k in (4, 5, 6, 7):
        assert one.leaves(k) == one.bitmaps(k) == wanted.get(k, 0)
    assert one.vertices(6) == in_vertices(cliques, 6)


@pytest.mark.parametrize("parts", [2, 5, 7])
def test_complete_graphs_of_parts(case, parts):
    one = case(naive_cliques.moon_moser(parts))
    wanted = {k: comb(parts, k) * 3**k for k in range(3, parts + 1)}
    assert one.leaves(ALL_SIZES) == wanted
    for k in (4, parts + 1):
        assert one.leaves(k) == wanted.get(k, 0)
    assert set(one.vertices(3).values()) == ({comb(parts - 1, 2) * 9} if parts > 2 else set())


def test_cliques_that_share_a_vertex_with_a_hub(case):
    """Cliques of 4 to 20 vertices, all of which hold vertex 0, and many leaves beside them."""
    edges, at = [(0, 1000 + i) for i in range(300)], 1
    sizes = range(4, 21)
    for size in sizes:
        members = [0, *range(at, at + size - 1)]
        edges += combinations(members, 2)
        at += size - 1
    one = case(edges)
    assert one.leaves(ALL_SIZES) == {k: sum(comb(size, k) for size in sizes) for k in range(3, 21)}
    assert one.vertices(10)[0] == sum(comb(size - 1, 9) for size in sizes)


@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (1, 2)], [(i, i + 1) for i in range(100)]])
def test_graphs_without_triangles(case, edges):
    one = case(edges)
    assert one.leaves(ALL_SIZES) == {}
    assert one.leaves(4) == one.bitmaps(4) == one.bitmaps(3) == 0
    assert one.vertices(3) == {}


def test_a_workspace_that_is_too_large_is_refused(case):
    one = case(dense(90, 0.9, 1))
    for k in (ALL_SIZES, 6):
        with pytest.raises(WorkspaceTooLarge):
            one.leaves(k, memory=1 << 10)
    with pytest.raises(WorkspaceTooLarge):
        one.kernels.clique_vertex_counter(one.device, one.graph, 5, 1, 1 << 10)


def test_what_is_reserved_is_what_is_taken(lab):
    one = Case(lab, make_engine("cpu"), dense(90, 0.9, 1))
    assert one.graph.max_out_degree > NARROW
    for make, arguments in (
        (one.kernels.clique_leaf_counter, (7,)),
        (one.kernels.clique_leaf_counter, (ALL_SIZES,)),
        (one.kernels.clique_vertex_counter, (7, 2)),
    ):
        counter = make(one.device, one.graph, *arguments, MEMORY)
        arrays = [counter._local, *counter._wide, *counter._narrow, *counter._found[1:]]
        taken = sum(array.nbytes for array in arrays)
        assert taken <= counter.workspace_bytes <= 2 * taken


@pytest.mark.gpu
@pytest.mark.slow
def test_tables_in_global_memory_change_nothing(lab, monkeypatch):
    edges = dense(110, 0.75, 5)
    one = Case(lab, make_engine("cuda"), edges)
    expected = Case(lab, make_engine("cpu"), edges).leaves(6)
    assert one.leaves(6) == expected
    monkeypatch.setattr(one.device, "shared_memory", 1 << 16)
    assert one.leaves(6) == expected
    assert one.leaves(6, memory=1 << 21) == expected


@settings(relaxed)
@given(values=st.lists(st.integers(0, 2**190), min_size=1, max_size=5), others=st.lists(st.integers(0, 2**190)))
def test_numbers_of_several_words(values, others):
    others = (others + [0] * len(values))[: len(values)]

    def words(numbers):
        found = [[number >> (64 * limb) & (2**64 - 1) for number in numbers] for limb in range(3)]
        return np.array(found, np.uint64).view(np.int64)

    total = words(values)
    add_limbs(total, words(others))
    sums = [one + other for one, other in zip(values, others, strict=True)]
    assert exact_values(total).tolist() == sums
    assert exact_sum(total) == sum(sums)


def test_weights_are_binomial_coefficients():
    weights = leaf_weights(40, 150, 3)
    for pivots in (0, 1, 2, 39, 40, 100, 151):
        row = exact_values(weights[pivots].T.copy().view(np.int64)).tolist()
        assert row == [comb(pivots, chosen) for chosen in range(40)]


def test_words_that_a_count_may_need():
    assert limbs_needed([0, 1, 2], [5, 3, 1], 3) == 1
    assert limbs_needed([66], [1], 34) == 1
    assert comb(68, 34) > 2**64
    assert limbs_needed([68], [1], 35) == 2
    assert limbs_needed([199], [200], 100) == 4


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", ["rmat", "dense", "one clique"])
def test_cliques_in_tables_that_are_made_in_parts(kind, name):
    graph = {
        "rmat": lambda: generate("rmat", seed=4, scale=7, edge_factor=8),
        "dense": lambda: generate("erdos-renyi", seed=1, vertices=90, edges=2500),
        "one clique": lambda: generate("erdos-renyi", seed=1, vertices=40, edges=780),
    }[name]()
    engine = make_engine(kind)
    host = orient(graph)
    for k in (4, 5, 7):
        tabled = engine.kernels.tabled_clique_counter(engine.device, engine.load(host), k, MEMORY)
        plain = CpuEngine(1)
        expected = plain.kernels.clique_counter(plain.device, host_arrays(graph), k, MEMORY)
        cuts = [0, host.num_arcs // 3, host.num_arcs // 3 + 5, host.num_arcs]
        n = graph.num_vertices
        for parts in ([None], [(0, 7), (7, 9), (9, n)], [(n // 2, n), (0, n // 2)]):
            found = [tabled.count(*arcs, iter(parts)) for arcs in pairwise(cuts)]
            assert sum(found) == expected.count(0, len(graph.indices))


@pytest.mark.gpu
@pytest.mark.parametrize("memory", [MEMORY, 1 << 15, 1 << 13])
@pytest.mark.parametrize("oriented", [False, True])
@pytest.mark.parametrize("name", ["rmat", "dense", "one clique"])
def test_cliques_in_tables_that_are_made_ahead(name, oriented, memory, monkeypatch):
    monkeypatch.setattr("longwall.kernels.cuda.kcliques.tables_ahead._FROM", 0)
    monkeypatch.setattr("longwall.kernels.cuda.kcliques.tables_ahead._LONG", 0)
    monkeypatch.setattr("longwall.kernels.cuda.kcliques.bitmaps._AHEAD_TO", 7)
    graph = {
        "rmat": lambda: generate("rmat", seed=4, scale=8, edge_factor=8),
        "dense": lambda: generate("erdos-renyi", seed=1, vertices=90, edges=2500),
        "one clique": lambda: generate("erdos-renyi", seed=1, vertices=70, edges=2415),
    }[name]()
    engine, plain = make_engine("cuda"), CpuEngine(1)
    host = orient(graph) if oriented else host_arrays(graph)
    for k in (4, 5, 7):
        counter = engine.kernels.clique_counter(engine.device, engine.load(host), k, memory)
        assert counter._ahead is not None
        expected = plain.kernels.clique_counter(plain.device, host, k, MEMORY)
        third = host.num_arcs // 3
        for cuts in ([0, host.num_arcs], [0, 1, third, third + 5, host.num_arcs], [third, third + 90]):
            for arcs in pairwise(cuts):
                assert counter.count(*arcs) == expected.count(*arcs)
        assert counter.count(0, third) == expected.count(0, third)  # tables of vertices before are made again


def test_lengths_of_tables_are_those_of_their_rows():
    degrees = np.arange(200)
    rows = [sum((i >> 5) + 1 for i in range(degree)) for degree in degrees]  # a word for each 32 before, one begun
    assert table_words(degrees, 0).tolist() == [row + 2 for row in rows]
    assert table_words(degrees, 9).tolist() == [2] * 9 + [row + 2 for row in rows[9:]]


@pytest.mark.gpu
def test_a_table_that_has_no_room_is_refused():
    engine = make_engine("cuda")
    host = orient(generate("erdos-renyi", seed=1, vertices=40, edges=780))
    words = int(table_words(np.array([39]), 3)[0])
    arcs = ReverseAdjacency(engine.device, engine.load(host), 0).nbytes
    engine.kernels.tabled_clique_counter(engine.device, engine.load(host), 4, 4 * words + arcs + 8)
    with pytest.raises(WorkspaceTooLarge):
        engine.kernels.tabled_clique_counter(engine.device, engine.load(host), 4, 4 * words + arcs - 8)
