"""Cores against networkx, as graphs with all that a graph has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SmallGraph, graphs

from longwall.storage.graph.derived import core
from longwall.storage.graph.derived.core import core_bytes, core_degrees, core_graph, low_vertices


@settings(max_examples=200)
@given(small=graphs(max_vertices=14), least=st.integers(1, 5), at_once=st.sampled_from([1, 3, 1 << 20]))
def test_cores_equal_those_of_networkx(lab: Any, small: SmallGraph, least: int, at_once: int) -> None:
    whole = lab.graph(small.edges, small.labels)
    known = nx.Graph(list(small.edges))
    known.remove_edges_from(list(nx.selfloop_edges(known)))
    wanted = nx.k_core(known, least)
    assert low_vertices(whole, least) == sum(1 for _, degree in known.degree if 0 < degree < least)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "_AT_ONCE", at_once)
        degrees = core_degrees(whole, least)
        assert {int(whole.original_ids[v]): int(degrees[v]) for v in np.flatnonzero(degrees)} == dict(wanted.degree)
        if not degrees.any():
            return
        found = core_graph(whole, degrees, least)
    graph = found.graph
    assert found.nbytes <= core_bytes(whole, degrees)
    assert whole.original_ids[found.vertices].tolist() == graph.original_ids.tolist()
    # The same graph, ranked by the degrees that are left, is built of the core's edges.
    labels = {v: small.labels[v] for v in wanted}
    again = lab.graph(wanted.edges, labels)
    closed = again.stats.closed_wedge_fraction  # of random wedges: vertices of one degree may have another order
    assert graph.stats.closed_wedge_fraction == pytest.approx(closed, abs=0.03)
    assert replace(graph.stats, closed_wedge_fraction=closed) == again.stats
    assert np.array_equal(graph.indptr, again.indptr)
    for v in range(graph.num_vertices):
        row = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        assert np.all(np.diff(row.astype(np.int64)) > 0)
        assert graph.split[v] - graph.indptr[v] == np.count_nonzero(row < v)
        assert sorted(graph.original_ids[row].tolist()) == sorted(wanted[int(graph.original_ids[v])])
        assert graph.labels is not None
        assert graph.labels[v] == labels[int(graph.original_ids[v])]


def test_an_empty_core_and_one_that_is_everything(lab: Any) -> None:
    star = lab.graph((0, v) for v in range(1, 1000))
    assert not core_degrees(star, 2).any()
    ring = lab.graph((v, (v + 1) % 1000) for v in range(1000))
    assert (core_degrees(ring, 2) == 2).all()


def test_work_that_is_to_end_ends(lab: Any) -> None:
    path = lab.graph((v, v + 1) for v in range(1000))
    assert (core_degrees(path, 2, stop=lambda: True) == 2).any()
