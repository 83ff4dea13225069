"""Parts hold what is counted at their roots, every arc in one of them, whatever room there is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Event
from unittest.mock import MagicMock

import networkx as nx
import numpy as np
import pytest
from budgets import make_budgets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored import lists_of, short_chunks, store_of

import longwall
from longwall.storage.errors import RunError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.streaming.graph_parts import GraphPart, GraphParts
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.streaming.vertex_set import VertexSet

relaxed = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
edges = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=1, max_size=300).filter(
    lambda found: any(u != v for u, v in found)
)


@contextmanager
def parts_of(graph: Graph, folder: Path, size: int) -> Iterator[tuple[StoredGraph, GraphParts]]:
    folder.mkdir(exist_ok=True)
    with short_chunks(), SpillFolder(folder / "spill") as spill:
        stored = store_of(graph, folder / "graph")
        with (
            closing(lists_of(stored, make_budgets().at(spill))) as lists,
            closing(GraphParts(stored, lists, size, 2, Event())) as parts,
        ):
            yield stored, parts


def windows_of(
    stored: StoredGraph, parts: GraphParts, arcs: tuple[int, int], least: int, *, split: bool
) -> Iterator[Iterator[GraphPart]]:
    """The parts of every window of a range of arcs."""
    root = int(np.searchsorted(stored.starts, arcs[0], side="right")) - 1
    while root < stored.num_vertices and stored.starts[root] < arcs[1]:
        window = parts.window(root, arcs, least, split=split)
        assert window.last > root
        yield parts.parts(window, split=split)
        root = window.last


def counted(part: GraphPart) -> Iterator[tuple[int, int, list[int]]]:
    """Every arc of a graph that is counted in a part, and the common smaller neighbours of its ends there."""
    ids = part.members.members(0, part.members.size).tolist()
    indptr, indices = part.graph.indptr.tolist(), part.graph.indices
    assert part.graph.split.tolist() == indptr[1:]
    assert len(indptr) == len(ids) + 1
    lists = [indices[a:z].tolist() for a, z in pairwise(indptr)]
    assert part.graph.max_out_degree == max(map(len, lists), default=0)
    low, high = part.targets or (0, len(ids))
    for vertex, near in enumerate(lists):
        assert near == sorted(set(near))
        assert not near or near[-1] < vertex
        for place, other in enumerate(near):
            if part.first <= indptr[vertex] + place < part.last and low <= other < high:
                yield ids[vertex], ids[other], sorted(ids[w] for w in {*near} & {*lists[other]})


@relaxed
@given(edges, st.integers(300, 4000), st.booleans(), st.integers(1, 4), st.data())
def test_every_arc_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[tuple[int, int]],
    size: int,
    split: bool,
    least: int,
    data: st.DataObject,
) -> None:
    graph = longwall.graph(np.array([pair for pair in found if pair[0] != pair[1]], np.int64))
    smaller = [graph.indices[a:z].tolist() for a, z in zip(graph.indptr, graph.split, strict=False)]
    m = graph.num_edges
    fits = False
    cut = sorted({0, m, *data.draw(st.lists(st.integers(0, m), max_size=2))})
    seen: Counter[tuple[int, int]] = Counter()
    with parts_of(graph, tmp_path_factory.mktemp("parts"), size) as (stored, parts), suppress(RunError):
        for arcs in pairwise(cut):
            for window in windows_of(stored, parts, arcs, least, split=split):
                for part in window:
                    assert part.graph.indptr.nbytes + part.graph.indices.nbytes <= size
                    for v, u, common in counted(part):
                        seen[v, u] += 1
                        assert common == sorted({*smaller[v]} & {*smaller[u]})
        fits = True
    assert fits or size < 12 * 30 + 4 * 30 * 30  # the lists around one vertex
    wanted = {(v, u) for v, near in enumerate(smaller) for u in near}
    must = {(v, u) for v, u in wanted if len(smaller[v]) >= least}
    assert set(seen.values()) <= {1}
    # What is counted besides are arcs of members that are no roots, with fewer neighbours: no cliques begin there.
    assert (must if fits else set()) <= set(seen) <= wanted


def test_many_windows_and_blocks_arise(tmp_path: Path) -> None:
    graph = generate("rmat", scale=9, edge_factor=8, seed=1)
    for split in (True, False):
        with parts_of(graph, tmp_path / str(split), 7_000) as (stored, parts):
            windows, number, triangles = 0, 0, 0
            for window in windows_of(stored, parts, (0, graph.num_edges), 2, split=split):
                windows += 1
                for part in window:
                    number += 1
                    triangles += sum(len(common) for _, _, common in counted(part))
            read = parts.bytes_read
        assert windows > 2
        assert number > windows if split else number == windows
        assert read > 2 * 4 * graph.num_edges
        assert triangles == sum(nx.triangles(graph.to_networkx()).values()) // 3


def test_what_has_no_room_is_said(tmp_path: Path) -> None:
    graph = longwall.graph(np.array([(u, v) for u in range(30) for v in range(u)], np.int64))
    for split, size in ((True, 300), (False, 1500)):
        with parts_of(graph, tmp_path / str(split), size) as (stored, parts):
            windows = windows_of(stored, parts, (0, graph.num_edges), 2, split=split)
            with pytest.raises(RunError, match=r"raise memory\.host"):
                deque((part for window in windows for part in window), maxlen=0)


@relaxed
@given(st.sets(st.integers(0, 299)), st.integers(0, 300), st.integers(0, 300))
def test_ranks_of_a_set(members: set[int], first: int, last: int) -> None:
    chosen = VertexSet(np.arange(301))
    lists = np.array(sorted(members), np.uint32)
    state = np.zeros(1, np.int64)
    # A root past all members adds them; it has no list that takes memory.
    starts = np.zeros(302, np.int64)
    starts[301:] = lists.size
    chosen = VertexSet(starts)
    chosen.add_roots(lists, 0, 300, 301, 0, 301, 10**9, (1, 1), state)
    chosen.number()
    ordered = [*sorted(members), *([300] if members else [])]
    assert chosen.size == int(state[0]) == len(ordered)
    assert [chosen.rank(vertex) for vertex in range(302)] == [sum(m < vertex for m in ordered) for vertex in range(302)]
    low, high = sorted((min(first, len(ordered)), min(last, len(ordered))))
    assert chosen.members(low, high).tolist() == ordered[low:high]


@pytest.mark.parametrize("size", [-64, 0, 127])
def test_no_part_is_too_small_for_a_message(tmp_path: Path, size: int) -> None:
    with (
        pytest.raises(RunError, match=r"^memory.host leaves \d+ B for the adjacency lists, which is too little"),
        parts_of(generate("rmat", scale=6, edge_factor=4, seed=1), tmp_path, size),
    ):
        pass


def test_a_part_that_is_too_small_names_the_budget_that_limits_it() -> None:
    said = r"^memory.device leaves 9 B for the adjacency lists, which is too little: raise it"
    with pytest.raises(RunError, match=said):
        GraphParts(MagicMock(), MagicMock(), 9, 2, Event(), "memory.device")


def test_no_list_is_read_once_the_run_is_cancelled(tmp_path: Path) -> None:
    graph = generate("rmat", scale=7, edge_factor=4, seed=1)
    with parts_of(graph, tmp_path, 1 << 12) as (stored, parts):
        arcs = 0, graph.num_edges
        (first, *_) = windows_of(stored, parts, arcs, 2, split=True)
        parts._cancel.set()
        read = parts.bytes_read
        with pytest.raises(KeyboardInterrupt):
            next(first)
        with pytest.raises(KeyboardInterrupt):
            parts.window(0, arcs, 2, split=True)
        assert parts.bytes_read == read
