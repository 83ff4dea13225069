"""The kernels for maximal cliques: every output, narrow and wide searches, and lists that are full at any time."""

import random
from itertools import combinations, pairwise

import igraph
import naive_cliques
import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from selection import on_device
from strategies import SmallGraph, graphs

from longwall.kernels.cuda.maximal_cliques import finders
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.maximal_cliques import order_bytes
from longwall.kernels.interface.workspaces import NARROW
from longwall.pipeline.execution.device_graph import load_graph

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
MEMORY = 1 << 26


class Case:
    """A graph with its degeneracy order."""

    def __init__(self, lab, engine, edges):
        self.edges = list(edges)
        self.context = lab.context(lab.graph(self.edges), engine=engine)
        self.kernels, self.device = self.context.engine.kernels, self.context.engine.device
        self.graph, _ = load_graph(self.context)
        self.order = self.kernels.degeneracy_order(self.device, self.graph)
        self.ids = self.context.graph.original_ids
        self.n = self.context.graph.num_vertices

    def sizes(self, min_size=2, cuts=()):
        counter = self.kernels.maximal_clique_counter(self.device, self.graph, self.order, min_size, MEMORY)
        for first, last in pairwise([0, *cuts, self.n]):
            counter.add(first, last)
        return {size: count for size, count in enumerate(counter.counts().tolist()) if count}

    def vertices(self, min_size=2, cuts=()):
        counter = self.kernels.maximal_clique_vertex_counter(self.device, self.graph, self.order, min_size, MEMORY)
        for first, last in pairwise([0, *cuts, self.n]):
            counter.add(first, last)
        *counts, sizes = counter.counts()
        assert {size: count for size, count in enumerate(sizes.tolist(), 1) if count} == self.sizes(min_size)
        counts = np.transpose(counts).tolist()
        return {vertex: tuple(row) for vertex, row in zip(self.ids.tolist(), counts, strict=True) if row[0]}

    def cliques(self, min_size=2, capacity=1, cuts=()):
        lister = self.kernels.maximal_clique_lister(self.device, self.graph, self.order, min_size, capacity, MEMORY)
        found = []
        for first, last in pairwise([0, *cuts, self.n]):
            lister.begin(first, last)
            while (part := lister.following()) is not None:
                offsets, members = part
                assert len(offsets) > 1
                assert len(members) == offsets[-1] <= max(capacity, self.order.degeneracy + 1)
                rows = [self.ids[members[a:z]].tolist() for a, z in pairwise(offsets.tolist())]
                assert all(len(set(row)) == len(row) for row in rows)
                found += [frozenset(row) for row in rows]
        assert len(found) == len(set(found)), "a clique was listed twice"
        return set(found)


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def case(lab, request):
    return lambda edges: Case(lab, request.param, edges)


def on_host(array):
    return array if isinstance(array, np.ndarray) else array.get()


def dense(n, share, seed):
    draw = random.Random(seed)
    return [pair for pair in combinations(range(n), 2) if draw.random() < share]


def check(one, cliques):
    assert one.sizes() == naive_cliques.sizes(cliques)
    assert one.vertices() == naive_cliques.per_vertex(cliques)
    assert one.cliques(capacity=1 << 16) == cliques


@settings(relaxed, max_examples=150)
@given(small=graphs(), min_size=st.integers(2, 5), capacity=st.integers(1, 30), cut=st.integers(0, 9))
@example(SmallGraph(((0, 1),), {0: 0, 1: 0}), 2, 1, 1)
def test_small_graphs_have_the_cliques_of_the_definition(case, small, min_size, capacity, cut):
    cliques = naive_cliques.maximal_cliques_by_definition(small.edges)
    assert naive_cliques.maximal_cliques(small.edges) == cliques
    one = case(small.edges)
    wanted = {clique for clique in cliques if len(clique) >= min_size}
    cuts = [min(cut, one.n)]
    assert one.sizes(min_size, cuts) == naive_cliques.sizes(wanted)
    assert one.vertices(min_size, cuts) == naive_cliques.per_vertex(wanted)
    assert one.cliques(min_size, capacity, cuts) == wanted


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_random_graphs_against_networkx(case, share, seed):
    edges = dense(40, share, seed)
    check(case(edges), {frozenset(one) for one in nx.find_cliques(nx.Graph(edges))})


def wide_graph(core, apart, outside, near, seed):
    """A clique of `core` vertices without `apart` edges, and a path of vertices with `near` edges to it each."""
    draw = random.Random(seed)
    pairs = list(combinations(range(core), 2))
    edges = set(pairs) - set(draw.sample(pairs, apart))
    edges |= {(core + i, member) for i in range(outside) for member in draw.sample(range(core), near)}
    edges |= {(core + i, core + i + 1) for i in range(outside - 1)}
    return sorted(edges)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("core", "apart", "outside", "near"),
    [(67, 9, 40, 30), (66, 1, 0, 0), (100, 0, 30, 66), (100, 12, 60, 66), (140, 10, 30, 80), (140, 12, 5, 136)],
)
def test_more_candidates_than_a_word_has_bits(case, core, apart, outside, near):
    edges = wide_graph(core, apart, outside, near, core)
    one = case(edges)
    assert one.order.degeneracy > NARROW - 1
    check(one, {frozenset(clique) for clique in nx.find_cliques(nx.Graph(edges))})


def test_wide_searches_end_at_vertices_without_more_candidates(case):
    """A complete bipartite graph with triangles in one side: cliques are small, and earlier vertices exclude some."""
    draw, many, few = random.Random(5), NARROW + 6, NARROW + 2
    edges = {(u, many + v) for u in range(many) for v in range(few)}
    edges |= {(many + few + i, member) for i in range(5) for member in draw.sample(range(many + few), 30)}
    edges |= {pair for _ in range(30) for pair in combinations(sorted(draw.sample(range(many, many + few), 3)), 2)}
    one = case(sorted(edges))
    assert one.order.degeneracy > NARROW
    cliques = {frozenset(clique) for clique in nx.find_cliques(nx.Graph(edges))}
    assert one.sizes() == naive_cliques.sizes(cliques)
    assert one.vertices() == naive_cliques.per_vertex(cliques)
    assert one.cliques(capacity=1000) == cliques


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("parts", "size", "inside", "across"), [(2, 70, 0.03, 0.97), (3, 36, 0.02, 0.97), (2, 75, 0.1, 0.95)]
)
def test_excluded_vertices_hold_part_of_what_is_left_for_a_narrow_search(case, parts, size, inside, across):
    """Without the rows of those that a wide search has excluded, cliques that are not maximal would count."""
    draw = random.Random(1)
    pairs = combinations(range(parts * size), 2)
    edges = [(u, v) for u, v in pairs if draw.random() < (inside if u // size == v // size else across)]
    one = case(edges)
    assert one.order.degeneracy > NARROW
    check(one, set(map(frozenset, igraph.Graph(n=parts * size, edges=edges).maximal_cliques())))


def test_wide_searches_stop_at_the_least_size_and_wherever_a_list_is_full(case):
    edges = wide_graph(100, 11, 50, 66, 3)
    one = case(edges)
    cliques = {frozenset(clique) for clique in nx.find_cliques(nx.Graph(edges))}
    for min_size in on_device((60, 66, 90, 101, 200), (66, 101)):
        wanted = {clique for clique in cliques if len(clique) >= min_size}
        assert one.sizes(min_size) == naive_cliques.sizes(wanted)
        assert one.vertices(min_size) == naive_cliques.per_vertex(wanted)
        assert one.cliques(min_size, capacity=1, cuts=range(1, one.n)) == wanted


@pytest.mark.parametrize("parts", [2, 5, 8])
def test_graphs_with_the_most_cliques_there_can_be(case, parts):
    one = case(naive_cliques.moon_moser(parts))
    assert one.sizes() == {parts: 3**parts}
    assert set(one.vertices().values()) == {(3 ** (parts - 1), parts)}
    assert len(one.cliques(capacity=100)) == 3**parts


@pytest.mark.gpu
@pytest.mark.parametrize("least", [1, 65])
@pytest.mark.parametrize("rows", [0, 512])
def test_parts_that_warps_hand_over_change_nothing(lab, monkeypatch, rows, least):
    """With and without rows that are handed over, too; nodes of any size, or none."""
    for name, value in {"_PATIENCE": 0, "_STEPS": 1, "_DONATION_ROWS": rows, "_LEAST_DONATION": least}.items():
        monkeypatch.setattr(finders, name, value)
    for edges in (naive_cliques.moon_moser(5), dense(40, 0.6, 1), wide_graph(100, 9, 40, 66, 7)):
        one = Case(lab, "cuda", edges)
        check_parts(one, {frozenset(clique) for clique in nx.find_cliques(nx.Graph(edges))})


def check_parts(one, cliques):
    counter = one.kernels.maximal_clique_counter(one.device, one.graph, one.order, 2, MEMORY)
    counter.add(0, one.n)
    sizes = {size: count for size, count in enumerate(counter.counts().tolist()) if count}
    assert sizes == naive_cliques.sizes(cliques)
    assert sum(int(roots.control[2]) for roots in counter._roots) > 10, "warps handed nothing over"
    assert one.vertices() == naive_cliques.per_vertex(cliques)
    for capacity in (1, 300):
        assert one.cliques(capacity=capacity) == cliques


@pytest.mark.gpu
def test_vertices_of_large_degree_have_a_launch_of_their_own(lab, monkeypatch):
    monkeypatch.setattr(finders, "_MOST_DEGREE", 20)
    edges = dense(45, 0.5, 8)
    one = Case(lab, "cuda", edges)
    check(one, {frozenset(clique) for clique in nx.find_cliques(nx.Graph(edges))})


@pytest.mark.gpu
def test_few_warps_have_to_do_where_memory_is_short(lab):
    edges = dense(60, 0.4, 2)
    one = Case(lab, "cuda", edges)
    sizes = naive_cliques.sizes({frozenset(clique) for clique in nx.find_cliques(nx.Graph(edges))})
    memory = 1 << 16
    counter = one.kernels.maximal_clique_counter(one.device, one.graph, one.order, 2, memory)
    counter.add(0, one.n)
    assert {size: count for size, count in enumerate(counter.counts().tolist()) if count} == sizes
    roots = counter._roots[0]
    assert roots.store.nbytes + roots.ring.nbytes <= memory


def test_pairs_that_are_not_adjacent_are_not_searched(case):
    """2 ** 30 cliques: a search would take minutes."""
    one = case(naive_cliques.moon_moser(30, 2))
    assert one.sizes() == {30: 2**30}
    assert set(one.vertices().values()) == {(2**29, 30)}


def test_a_clique_of_many_vertices(case):
    one = case(combinations(range(300), 2))
    assert one.sizes() == {300: 1}
    assert one.cliques() == {frozenset(range(300))}
    assert one.sizes(min_size=301) == {}


@settings(relaxed, max_examples=60)
@given(small=graphs(max_vertices=14))
def test_the_order_peels_the_least_degree_first(case, small):
    one = case(small.edges)
    rank = on_host(one.order.rank)
    assert sorted(rank.tolist()) == list(range(one.n))
    assert one.order.degeneracy == naive_cliques.degeneracy(small.edges)
    indptr, indices = one.context.graph.indptr, one.context.graph.indices
    later = [[u for u in indices[indptr[v] : indptr[v + 1]].tolist() if rank[u] > rank[v]] for v in range(one.n)]
    assert max(map(len, later)) == one.order.degeneracy
    starts, ends = on_host(one.order.indptr).tolist(), one.order.indices.tolist()
    assert [ends[starts[v] : starts[v + 1]] for v in range(one.n)] == later


def test_every_engine_makes_the_same_order(case):
    """Rounds, and descending ids within a round: a path of five vertices is peeled from both ends."""
    one = case([(0, 1), (1, 2), (2, 3), (3, 4)])
    by_id = dict(zip(one.ids.tolist(), one.order.rank.tolist(), strict=True))
    assert by_id == {4: 0, 0: 1, 3: 2, 1: 3, 2: 4}


def test_the_order_takes_no_more_than_is_said(case):
    one = case(dense(60, 0.3, 1))
    arrays = (one.order.rank, one.order.indptr, one.order.indices)
    kept = sum(array.nbytes for array in arrays)
    assert kept + 12 * one.n <= order_bytes(one.n, len(one.edges)) + 8


def test_a_workspace_that_is_too_large_is_refused(case):
    one = case(dense(30, 0.3, 1))
    for make in (one.kernels.maximal_clique_counter, one.kernels.maximal_clique_vertex_counter):
        with pytest.raises(WorkspaceTooLarge):
            make(one.device, one.graph, one.order, 2, 1 << 10)
    with pytest.raises(WorkspaceTooLarge):
        one.kernels.maximal_clique_lister(one.device, one.graph, one.order, 2, 1 << 20, 1 << 20)
