"""Graphs without their hubs, against networkx."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SmallGraph, graphs

from longwall.storage.graph.derived.hubs import (
    MOST_HUBS,
    count_hubs,
    degrees_without,
    hub_masks,
    without_hubs,
    without_hubs_bytes,
)


@settings(max_examples=100)
@given(small=graphs(max_vertices=12), hubs=st.integers(1, MOST_HUBS))
def test_what_is_left_equals_what_networkx_leaves(lab: Any, small: SmallGraph, hubs: int) -> None:
    whole = lab.graph(small.edges)
    hubs = min(hubs, whole.num_vertices)
    known = nx.Graph(list(small.edges))
    known.remove_edges_from(list(nx.selfloop_edges(known)))
    known.remove_nodes_from(list(nx.isolates(known)))
    taken = [int(v) for v in whole.original_ids[:hubs]]
    near = {v: sum(1 << hub for hub, w in enumerate(taken) if known.has_edge(v, w)) for v in known}
    masks = hub_masks(whole, hubs)
    degrees = degrees_without(whole, hubs, masks)
    found = without_hubs(whole, hubs, masks, degrees)
    assert found.joined == tuple(near[v] for v in taken)
    kinds = Counter(near[v] for v in known if v not in taken)
    assert found.kinds == tuple(kinds[kind] for kind in range(1 << hubs))
    known.remove_nodes_from(taken)
    known.remove_nodes_from(list(nx.isolates(known)))
    if not known.number_of_edges():
        assert found.part is None
        assert found.nbytes == 0
        return
    assert found.part is not None
    graph = found.part.graph
    assert found.nbytes <= without_hubs_bytes(whole, degrees)
    ids = graph.original_ids.tolist()
    assert sorted(ids) == sorted(known)
    assert graph.labels is not None
    assert {v: int(label) for v, label in zip(ids, graph.labels, strict=True)} == {v: near[v] for v in known}
    assert graph.stats.label_counts == dict(sorted(Counter(near[v] for v in known).items()))
    for v in range(graph.num_vertices):
        row = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        assert sorted(graph.original_ids[row].tolist()) == sorted(known[ids[v]])
    assert np.all(np.diff(np.diff(graph.indptr)) <= 0)


def test_hubs_have_most_of_the_squared_degrees(lab: Any) -> None:
    def stars(number: int) -> Any:
        return lab.graph((-hub - 1, 100 * hub + leaf) for hub in range(number) for leaf in range(100))

    assert [count_hubs(stars(number)) for number in (1, 2, 3, 4, 5)] == [1, 2, 3, 0, 0]
