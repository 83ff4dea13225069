"""Pattern codes: canonical forms, dictionaries and growth, against networkx, igraph and published numbers."""

from __future__ import annotations

from itertools import combinations, permutations, product

import igraph
import naive
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.kernels.host.patterns import pattern_codes as codes
from longwall.kernels.host.patterns.orbit_tables import orbits

CONNECTED = {3: 2, 4: 6, 5: 21, 6: 112, 7: 853, 8: 11117}  # OEIS A001349


def graph_of(code: int, k: int) -> nx.Graph:
    graph = nx.Graph(codes.code_edges(code, k))
    graph.add_nodes_from(range(k))
    return graph


@pytest.mark.parametrize("k", CONNECTED)
def test_there_are_as_many_classes_as_connected_graphs(k):
    assert len(codes.connected_codes(k)) == CONNECTED[k]


@pytest.mark.parametrize("k", [3, 4, 5, 6, 7])
def test_the_classes_are_those_of_the_atlas(k):
    ours = {
        codes.canonical_pattern(codes.code_edges(code, k), None, k)[0] for code in codes.connected_codes(k).tolist()
    }
    atlas = {codes.canonical_pattern(query.edges, None, k)[0] for query in naive.connected_patterns(k)}
    assert ours == atlas
    assert ours == {codes.code_edges(code, k) for code in codes.connected_codes(k).tolist()}


def test_no_two_classes_of_eight_vertices_are_isomorphic():
    seen = set()
    for code in codes.connected_codes(8).tolist():
        form = igraph.Graph(8, codes.code_edges(code, 8))
        seen.add(tuple(sorted(form.permute_vertices(form.canonical_permutation()).get_edgelist())))
    assert len(seen) == CONNECTED[8]


@pytest.mark.parametrize("k", [4, 5, 6])
def test_classes_are_listed_by_edges_and_then_by_edge_list(k):
    listed = [codes.code_edges(code, k) for code in codes.connected_codes(k).tolist()]
    assert listed == sorted(listed, key=lambda edges: (len(edges), edges))


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_the_dictionary_knows_every_code(k):
    book = codes.dictionary(k)
    for code in range(len(book.entries)):
        graph = graph_of(code, k)
        entry = int(book.entries[code])
        if not nx.is_connected(graph):
            assert entry == codes.UNCONNECTED
            continue
        to = {v: entry >> (10 + 3 * v) & 7 for v in range(k)}
        found = {(min(to[u], to[v]), max(to[u], to[v])) for u, v in graph.edges}
        assert found == set(codes.code_edges(int(book.codes[entry & 1023]), k))


def test_a_large_dictionary_knows_a_sample_of_its_codes():
    book, rng = codes.dictionary(7), np.random.default_rng(1)
    assert int((book.entries != codes.UNCONNECTED).sum()) == 1866256  # OEIS A001187
    for code in rng.integers(0, len(book.entries), 500).tolist():
        graph, entry = graph_of(code, 7), int(book.entries[code])
        assert nx.is_connected(graph) == (entry != codes.UNCONNECTED)
        if entry != codes.UNCONNECTED:
            to = {v: entry >> (10 + 3 * v) & 7 for v in range(7)}
            pairs = (sorted((to[u], to[v])) for u, v in graph.edges)
            assert sum(1 << (v * (v - 1) // 2 + u) for u, v in pairs) == book.codes[entry & 1023]


def test_dictionaries_are_of_two_to_seven_vertices():
    for k in (1, 8):
        with pytest.raises(ValueError, match="no dictionary"):
            codes.dictionary(k)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_growth_leads_to_the_class_of_the_larger_pattern(k):
    grown = codes.growth(k)
    for number, mask in product(range(len(grown.classes)), range(1 << k)):
        if not mask:
            assert grown.classes[number, mask] == -1
            continue
        code = int(codes.dictionary(k).codes[number]) | mask << k * (k - 1) // 2
        form, _ = codes.canonical_pattern(codes.code_edges(code, k + 1), None, k + 1)
        assert form == codes.code_edges(int(grown.codes[grown.classes[number, mask]]), k + 1)


@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_ways_are_the_vertices_that_are_no_articulation_points(k):
    grown = codes.growth(k - 1)
    for code, ways in zip(grown.codes.tolist(), grown.ways.tolist(), strict=True):
        assert ways == k - len(list(nx.articulation_points(graph_of(code, k))))


@pytest.mark.parametrize("k", [3, 4, 5])
def test_spanning_subgraphs_are_counted(k):
    within = codes.spanning_subgraphs(k)
    forms = [codes.code_edges(code, k) for code in codes.connected_codes(k).tolist()]
    for p, q in product(range(len(forms)), repeat=2):
        same = sum(
            codes.canonical_pattern(chosen, None, k)[0] == forms[p] for chosen in combinations(forms[q], len(forms[p]))
        )
        assert within[p, q] == same


@st.composite
def labelled(draw: st.DrawFn) -> tuple[int, tuple, tuple | None, list[int]]:
    k = draw(st.integers(1, 8))
    pairs = list(combinations(range(k), 2))
    edges = tuple(pair for pair in pairs if draw(st.booleans()))
    labels = draw(st.none() | st.lists(st.sampled_from([0, 3, 2**31 - 1]), min_size=k, max_size=k).map(tuple))
    return k, edges, labels, draw(st.permutations(range(k)))


@settings(deadline=None, max_examples=50)
@given(labelled())
def test_renumbering_does_not_change_the_canonical_form(pattern):
    k, edges, labels, order = pattern
    form = codes.canonical_pattern(edges, labels, k)
    renumbered = tuple((order[v], order[u]) for u, v in edges)
    moved = None if labels is None else tuple(labels[order.index(v)] for v in range(k))
    assert codes.canonical_pattern(renumbered, moved, k) == form
    # And it is a numbering of the same pattern.
    theirs, ours = igraph.Graph(k, edges), igraph.Graph(k, form[0])
    assert theirs.isomorphic_vf2(ours, color1=_numbers(labels, k), color2=_numbers(form[1], k))


def _numbers(labels: tuple[int, ...] | None, k: int) -> list[int]:
    return [0] * k if labels is None else [sorted(set(labels)).index(label) for label in labels]


@settings(deadline=None, max_examples=50)
@given(labelled(), st.data())
def test_different_patterns_have_different_forms(pattern, data):
    k, edges, labels, _ = pattern
    others = tuple(pair for pair in combinations(range(k), 2) if data.draw(st.booleans()))
    same = igraph.Graph(k, edges).isomorphic_vf2(
        igraph.Graph(k, others), color1=_numbers(labels, k), color2=_numbers(labels, k)
    )
    assert (codes.canonical_pattern(edges, labels, k) == codes.canonical_pattern(others, labels, k)) == same


def test_every_class_has_one_canonical_form():
    """Renumbering a pattern never changes its canonical form, and different patterns never share one."""
    rng = np.random.default_rng(0)
    forms = {}
    for k in range(2, 7):
        for query in naive.connected_patterns(k):
            numbers = rng.permutation(k).tolist()
            form, _ = codes.canonical_pattern(tuple((numbers[u], numbers[v]) for u, v in query.edges), None, k)
            assert form == codes.canonical_pattern(query.edges, None, k)[0]
            assert forms.setdefault(form, query) is query


def test_orbits_are_those_of_the_automorphism_groups():
    for k in (3, 4):
        of = orbits(k)
        pairs = (k - 1) * (k - 2) // 2
        seen = {}
        for code, mask in np.ndindex(of.table.shape[:2]):
            graph = graph_of(code | mask << pairs, k)
            if not nx.is_connected(graph) or not nx.is_connected(graph_of(code, k - 1)):
                continue
            for v in range(k - 1):
                rooted = min(_rooted(graph, v, order) for order in permutations(range(k)))
                orbit = int(of.table[code, mask, v])
                assert seen.setdefault(rooted, orbit) == orbit
                others = [u for u in graph if u != v and nx.is_connected(graph.subgraph(set(graph) - {u}))]
                assert of.ways[orbit] == len(others)
        assert sorted(seen.values()) == list(range(len(of.ways)))
        assert of.first == {3: 1, 4: 4}[k]


def _rooted(graph: nx.Graph, root: int, order: tuple[int, ...]) -> tuple:
    place = {v: i for i, v in enumerate(order)}
    return place[root], tuple(sorted(tuple(sorted((place[u], place[v]))) for u, v in graph.edges))
