"""Automorphisms, restrictions and isomorphism against all permutations, and against igraph."""

from itertools import permutations
from math import factorial

import igraph
import naive
import networkx as nx
import numpy as np
from cases import each_case
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, isomorphic, orbit, restrictions


def small() -> list[naive.Query]:
    return [query for size in range(2, 6) for query in naive.connected_patterns(size)]


@each_case("query", small, ids=repr)
def test_orbits_and_group_size_equal_all_permutations(query):
    pattern = make_pattern(query.edges)
    group = naive.automorphisms(query)
    assert automorphism_count(pattern) == len(group)
    for v in range(query.size):
        assert orbit(pattern, v) == {image[v] for image in group}
        for w in range(query.size):
            assert orbit(pattern, v, [w]) == {image[v] for image in group if image[w] == w}


@settings(deadline=None, max_examples=150)
@given(queries(max_size=6, labelled=True, num_labels=2))
def test_labels_shrink_the_group(query):
    assert automorphism_count(make_pattern(query.edges, query.labels)) == len(naive.automorphisms(query))


@settings(deadline=None, max_examples=100)
@given(queries(min_size=6, max_size=6, labelled=False))
def test_group_size_equals_igraphs(query):
    graph = igraph.Graph(query.size, list(query.edges))
    assert automorphism_count(make_pattern(query.edges)) == graph.count_automorphisms()


@each_case(
    ("name", "size"),
    [
        ("clique-10", factorial(10)),
        ("clique-16", factorial(16)),
        ("star-15", factorial(15)),
        ("cycle-16", 32),
        ("path-16", 2),
        ("wheel-16", 30),
        ("quasi-clique-16", 2 * factorial(14)),
    ],
)
def test_large_groups_are_never_listed(name, size):
    assert automorphism_count(parse_pattern(name)) == size


@settings(deadline=None, max_examples=250)
@given(query=queries(max_size=5, num_labels=2), choice=st.data())
def test_restrictions_keep_the_promised_share_of_all_numberings(query, choice):
    """Of the numberings that automorphisms make of one embedding, exactly `redundancy` obey the restrictions."""
    pattern = make_pattern(query.edges, query.labels)
    order = choice.draw(st.permutations(range(query.size)))
    suffix = choice.draw(st.integers(0, query.size - 1))
    pairs, redundancy = restrictions(pattern, order, suffix)
    group = naive.automorphisms(query)
    free = set(order[len(order) - suffix :]) if suffix else set()
    assert not free & {v for pair in pairs for v in pair}
    for ids in permutations(range(query.size)):
        numberings = [[ids[image[v]] for v in range(query.size)] for image in group]
        obeying = sum(all(n[a] > n[b] for a, b in pairs) for n in numberings)
        assert obeying == redundancy
    if not suffix:
        assert redundancy == 1


@settings(deadline=None, max_examples=150)
@given(left=queries(max_size=6, num_labels=2), right=queries(max_size=6, num_labels=2), choice=st.data())
def test_isomorphic(left, right, choice):
    def as_igraph(query):
        return igraph.Graph(query.size, list(query.edges)), list(query.labels or [0] * query.size)

    (first, first_colours), (second, second_colours) = as_igraph(left), as_igraph(right)
    same = (left.labels is None) == (right.labels is None) and left.size == right.size
    same = same and len(left.edges) == len(right.edges)
    want = same and first.isomorphic_vf2(second, color1=first_colours, color2=second_colours)
    if (left.labels is None) == (right.labels is None):
        found = isomorphic(make_pattern(left.edges, left.labels), make_pattern(right.edges, right.labels))
        assert found == want
    order = choice.draw(st.permutations(range(left.size)))
    labels = None
    if left.labels is not None:
        labels = [0] * left.size
        for v in range(left.size):
            labels[order[v]] = left.labels[v]
    moved = make_pattern([(order[u], order[v]) for u, v in left.edges], labels)
    assert isomorphic(make_pattern(left.edges, left.labels), moved)


@each_case("seed", range(40))
def test_patterns_whose_vertices_look_alike_differ_where_networkx_says_so(seed):
    degree, size = [(3, 8), (4, 9), (3, 12), (4, 12)][seed % 4]
    left, right = (nx.random_regular_graph(degree, size, seed=10 * seed + turn) for turn in range(2))
    moved = nx.relabel_nodes(left, dict(enumerate(np.random.default_rng(seed).permutation(size).tolist())))
    for other in (right, moved):
        if nx.is_connected(left) and nx.is_connected(other):
            assert isomorphic(make_pattern(left.edges), make_pattern(other.edges)) == nx.is_isomorphic(left, other)


def test_strongly_regular_graphs_with_the_same_parameters_differ():
    rook = nx.convert_node_labels_to_integers(nx.line_graph(nx.complete_bipartite_graph(4, 4)))
    steps = [(0, 1), (1, 0), (1, 1)]
    shrikhande = [(4 * a + b, (a + i) % 4 * 4 + (b + j) % 4) for a in range(4) for b in range(4) for i, j in steps]
    patterns = [make_pattern(rook.edges), make_pattern(shrikhande)]
    assert not isomorphic(*patterns)
    assert [automorphism_count(one) for one in patterns] == [1152, 192]
