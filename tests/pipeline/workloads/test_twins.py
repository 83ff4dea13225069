"""Vertices with the same neighbours, against a dictionary of their neighbours."""

import naive
import numpy as np
from hypothesis import given, settings
from strategies import graphs

from longwall.pipeline.planning.motifs import twins
from longwall.pipeline.planning.motifs.twins import twins_of


def expected(edges):
    first = {}
    return [first.setdefault(frozenset(near), v) for v, near in sorted(naive.adjacency(edges).items())]


def edges_of(graph):
    return [(u, v) for u in range(graph.num_vertices) for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]]]


def check(graph):
    found, first = twins_of(graph), expected(edges_of(graph))
    assert found.first.tolist() == first
    assert found.numbers.tolist() == np.bincount(first, minlength=graph.num_vertices).tolist()
    rows = np.arange(2 * graph.num_vertices).reshape(2, -1)
    found.give(rows)
    assert rows.tolist() == [first, [graph.num_vertices + v for v in first]]


@settings(deadline=None, max_examples=20)
@given(small=graphs(max_vertices=9))
def test_twins_are_those_of_a_dictionary(lab, small):
    check(lab.graph(small.edges))


def test_twins_in_pieces(lab, monkeypatch):
    monkeypatch.setattr(twins, "_ARCS_AT_ONCE", 1)
    check(lab.graph([(u, v) for u in range(3) for v in range(3, 20)] + [(3, 30), (3, 31), (40, 41)]))


def test_equal_hashes_make_no_twins(lab, monkeypatch):
    graph = lab.graph([(0, 1), (2, 3), (4, 5), (4, 6), (7, 8), (7, 9)])
    near = naive.adjacency(edges_of(graph))
    monkeypatch.setattr(twins, "_hashes", lambda graph: np.zeros(graph.num_vertices, np.uint64))
    found = twins_of(graph)
    assert all(near[v] == near[first] for v, first in enumerate(found.first.tolist()))
    assert found.numbers.tolist() == np.bincount(found.first, minlength=graph.num_vertices).tolist()
