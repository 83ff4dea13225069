"""Graphs that are laid out by label, against a description of them by sets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SmallGraph, graphs

from longwall.kernels.cpu import label_rows
from longwall.storage.graph.derived.label_layout import ANY, LabelLayout, lay_out
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget

Vertex = tuple[int, int]  # id in the input, and role


def labelled_graph(small: SmallGraph, edge_labels: list[int] | None) -> Graph:
    ends, pairs = np.array(small.edges, np.int64), np.array(sorted(small.labels.items()), np.int64)
    kinds = None if edge_labels is None else np.resize(np.array(edge_labels, np.int32), len(ends))
    labels = (pairs[:, 0], pairs[:, 1])
    return build_graph(ends[:, 0], ends[:, 1], vertex_labels=labels, edge_labels=kinds)


@st.composite
def layouts(draw: st.DrawFn) -> LabelLayout:
    """Layouts of labels 0 to 4, of which a graph has three at most."""
    sliced = draw(st.booleans())
    labels = st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=sliced)
    roles = draw(labels) if sliced else sorted(draw(labels))
    if sliced and draw(st.booleans()):
        roles.append(ANY)
    pairs = list(combinations_with_replacement(range(len(roles)), 2))
    kinds = st.tuples(st.sampled_from(pairs), st.sampled_from([ANY, ANY, 0, 1]))
    return LabelLayout(tuple(roles), tuple((*pair, kind) for pair, kind in draw(st.lists(kinds, max_size=6))), sliced)


def arcs_of(graph: Graph) -> Iterator[tuple[int, int, int]]:
    kinds = np.zeros(len(graph.indices), int) if graph.edge_labels is None else graph.edge_labels
    for v in range(graph.num_vertices):
        for at in range(graph.indptr[v], graph.indptr[v + 1]):
            yield v, int(graph.indices[at]), int(kinds[at])


def expected_edges(graph: Graph, layout: LabelLayout) -> set[tuple[Vertex, Vertex]]:
    """All arcs, by their definition."""
    assert graph.labels is not None
    named = set(layout.roles)

    def has(vertex: int, role: int) -> bool:
        label, wanted = int(graph.labels[vertex]), layout.roles[role]
        return label not in named if wanted == ANY else label == wanted

    found = set()
    for u, v, kind in arcs_of(graph):
        for first, second, wanted in layout.edges:
            fits = graph.edge_labels is None or wanted in (ANY, kind)
            one_label = first != second and layout.roles[first] == layout.roles[second]
            if fits and has(u, first) and has(v, second) and (not one_label or u < v):
                ends = (int(graph.original_ids[u]), first), (int(graph.original_ids[v]), second)
                found |= {ends, ends[::-1]}
    return found


def role_of(made: Graph, layout: LabelLayout, vertex: int) -> int:
    """The role of a vertex: by the slice that it is in for its neighbours."""
    assert made.slices is not None
    stride = len(layout.roles) + 1
    starts = made.slices.starts.reshape(-1, stride)
    for v in range(made.num_vertices):
        row = made.indices[made.indptr[v] : made.indptr[v + 1]]
        at = np.flatnonzero(row == vertex)
        if len(at):
            return int(np.searchsorted(starts[v], at[0], side="right")) - 1
    raise AssertionError("a vertex without an edge")


@given(small=graphs(max_vertices=10), layout=layouts(), kinds=st.none() | st.lists(st.integers(0, 2), min_size=1))
def test_a_layout_has_the_edges_that_it_says(small: SmallGraph, layout: LabelLayout, kinds: list[int] | None) -> None:
    graph, host = labelled_graph(small, kinds), MemoryBudget("memory.host", 1 << 24)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_rows, "LEAST_ARCS", 3)
        made, reserved = lay_out(graph, layout, host, np.empty)
    assert host.used == reserved.size == made.nbytes
    want = expected_edges(graph, layout)
    rows = [made.indices[made.indptr[v] : made.indptr[v + 1]].tolist() for v in range(made.num_vertices)]
    assert all(row == sorted(set(row)) for row in rows)
    assert all(rows), "a vertex without an edge"
    assert [int(at) for at in made.split - made.indptr[:-1]] == [sum(x < v for x in row) for v, row in enumerate(rows)]
    assert len(made.indices) == len(want) == 2 * made.num_edges == 2 * made.stats.num_edges
    ids = made.original_ids.tolist()
    assert sorted((ids[u], ids[v]) for u, v, _ in arcs_of(made)) == sorted((u[0], v[0]) for u, v in want)
    assert [small.labels[one] for one in ids] == made.labels.tolist()
    if kinds is not None:
        known = {(ids[u], ids[v]): kind for u, v, kind in arcs_of(made)}
        whole = graph.original_ids.tolist()
        assert known.items() <= {(whole[u], whole[v]): kind for u, v, kind in arcs_of(graph)}.items()
    if layout.sliced:
        assert {
            ((ids[u], role_of(made, layout, u)), (ids[v], role_of(made, layout, v))) for u, v, _ in arcs_of(made)
        } == want
        roles = [role_of(made, layout, v) for v in range(made.num_vertices)]
        assert roles == sorted(roles)
        rank = {one: at for at, one in enumerate(graph.original_ids.tolist())}
        assert all(rank[ids[v]] < rank[ids[v + 1]] for v in range(len(ids) - 1) if roles[v] == roles[v + 1])
        arcs = [
            sum(len(row) for row, role in zip(rows, roles, strict=True) if role <= r) for r in range(len(layout.roles))
        ]
        assert list(made.slices.arcs) == arcs
    reserved.release()
    assert host.used == 0


def test_what_has_no_room_is_refused_and_leaves_nothing_reserved() -> None:
    small = SmallGraph(tuple(combinations(range(40), 2)), {v: v % 2 for v in range(40)})
    graph, host = labelled_graph(small, None), MemoryBudget("memory.host", 5_000)
    with pytest.raises(BudgetExceeded, match="no room for the graph by label"):
        lay_out(graph, LabelLayout((0, 1), ((0, 1, ANY),)), host, np.empty)
    assert host.used == 0


def test_statistics_are_those_of_the_new_graph() -> None:
    small = SmallGraph(tuple((0, v) for v in range(1, 8)), {v: min(v, 2) for v in range(8)})
    layout: Any = LabelLayout((0, 2), ((0, 1, ANY),))
    made, _ = lay_out(labelled_graph(small, None), layout, MemoryBudget("memory.host", 1 << 20), np.empty)
    stats = made.stats
    assert (stats.num_vertices, stats.num_edges, stats.max_degree, stats.max_out_degree) == (7, 6, 6, 1)
    assert (stats.sum_degree_squared, stats.mean_degree) == (36 + 6, 12 / 7)
