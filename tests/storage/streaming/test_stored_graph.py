"""A graph that stays in its store says of itself what a graph in memory says, and refuses what it does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budgets import make_budgets
from cases import each_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored import PLENTY, WHY, lists_of, short_chunks, store_of

import longwall
from longwall.storage.errors import InputError, RunError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph import graph_store
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.streaming import orient_store
from longwall.storage.streaming.stored_graph import StaysInStore, open_stored

relaxed = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
edges = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=150).filter(
    lambda found: any(u != v for u, v in found)
)


def graph_of(found: list[tuple[int, int]], **more: Any) -> Graph:
    return longwall.graph(np.array([pair for pair in found if pair[0] != pair[1]], np.int64), **more)


@relaxed
@given(edges)
def test_it_says_what_the_graph_says(tmp_path_factory: pytest.TempPathFactory, found: list[tuple[int, int]]) -> None:
    with short_chunks():
        graph = graph_of(found)
        stored = store_of(graph, tmp_path_factory.mktemp("store") / "graph")
        assert stored.all_ids() == graph.all_ids()
    same = ("num_vertices", "num_edges", "nbytes", "has_labels", "num_transactions", "has_names", "id_type", "id_bytes")
    assert [getattr(stored, name) for name in same] == [getattr(graph, name) for name in same]
    assert (stored.stats, stored.content_hash) == (graph.stats, graph.content_hash)
    assert stored.degree_powers() == graph.degree_powers()
    assert stored.out_degrees() == graph.out_degrees()
    smaller = np.concatenate([[0], np.cumsum(graph.split - graph.indptr[:-1])])
    assert stored.starts.tolist() == smaller.tolist()
    assert stored.begins(np.arange(graph.num_vertices + 1)).tolist() == graph.indptr.tolist()
    for arc in range(2 * graph.num_edges):
        row = int(np.searchsorted(graph.indptr, arc, side="right")) - 1
        assert stored.row_of(arc) == row
        assert stored.oriented_arc(arc) == min(smaller[row] + arc - graph.indptr[row], smaller[row + 1])
    assert stored.oriented_arc(2 * graph.num_edges) == graph.num_edges
    rows = stored.rows_between(0, 2 * graph.num_edges)
    assert (rows.first, rows.indptr.tolist(), rows.split.tolist()) == (0, graph.indptr.tolist(), graph.split.tolist())


@relaxed
@given(edges)
def test_lists_are_the_smaller_neighbours(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[int, int]]
) -> None:
    graph, folder = graph_of(found), tmp_path_factory.mktemp("store")
    with short_chunks(), SpillFolder(folder / "spill") as spill:
        budgets = make_budgets()
        lists = lists_of(store_of(graph, folder / "graph"), budgets.at(spill))
        read = np.concatenate(
            [lists.read(segment, np.empty(lists.longest, np.uint32)) for segment in range(lists.segments)]
        )
        assert budgets.disk.used == 4 * graph.num_edges
        assert budgets.host.used == 0
        lists.close()
        assert budgets.disk.used == 0
        assert not list(spill.path.iterdir())
    rows = [graph.indices[a:z] for a, z in zip(graph.indptr, graph.split, strict=False)]
    assert read.tolist() == np.concatenate(rows).tolist()


def test_many_cores_take_longer_blocks_where_the_budget_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = generate("rmat", scale=11, edge_factor=16, seed=1)
    smaller = [graph.indices[a:z] for a, z in zip(graph.indptr, graph.split, strict=False)]
    segments = {}
    with short_chunks(256), SpillFolder(tmp_path / "spill") as spill:
        stored = store_of(graph, tmp_path / "graph")
        for cores, memory in ((1, PLENTY), (8, PLENTY), (16, PLENTY), (16, 40_000), (32, PLENTY)):
            monkeypatch.setattr(orient_store, "core_count", lambda cores=cores: cores)
            monkeypatch.setattr(graph_store, "core_count", lambda cores=cores: cores)
            lists = lists_of(stored, make_budgets(host=memory).at(spill))
            read = [lists.read(segment, np.empty(lists.longest, np.uint32)) for segment in range(lists.segments)]
            segments[cores, memory] = lists.segments
            lists.close()
            assert np.concatenate(read).tolist() == np.concatenate(smaller).tolist()
    few = segments[1, PLENTY]
    assert segments[8, PLENTY] == segments[16, 40_000] == few
    assert segments[16, PLENTY] == -(-few // 2)
    assert segments[32, PLENTY] == -(-few // 4)


def test_names_and_labels_are_there(tmp_path: Path) -> None:
    table = {"source": ["ann", "bob", "bob"], "target": ["bob", "cleo", "dora"]}
    import pyarrow as pa

    graph = longwall.graph(pa.table(table))
    stored = store_of(graph, tmp_path / "names")
    assert stored.all_ids() == graph.all_ids()
    assert (stored.has_names, stored.id_type, stored.id_bytes) == (True, graph.id_type, graph.id_bytes)
    labelled = generate("rmat", scale=6, edge_factor=4, seed=1, num_labels=3)
    assert store_of(labelled, tmp_path / "labels").stats == labelled.stats


@each_case("name", ["indptr", "indices", "split", "original_ids", "labels", "name_bytes", "transactions"])
def test_arrays_are_refused(tmp_path: Path, name: str) -> None:
    stored = store_of(generate("rmat", scale=5, edge_factor=4, seed=1), tmp_path / "graph")
    with pytest.raises(StaysInStore, match=r"raise memory\.host"):
        getattr(stored, name)


def test_what_it_takes_is_reserved(tmp_path: Path) -> None:
    graph = generate("rmat", scale=10, edge_factor=8, seed=1)
    with short_chunks(1024):
        write_graph(graph, tmp_path / "graph")
        host = MemoryBudget("memory.host", PLENTY)
        open_stored(tmp_path / "graph", host, WHY)
        assert host.used == 8 * (graph.num_vertices + 1)
        assert host.peak < graph.nbytes
        with pytest.raises(InputError, match=r"raise memory\.host; streaming it from its store takes more, too"):
            open_stored(tmp_path / "graph", MemoryBudget("memory.host", 8 * graph.num_vertices), WHY)


@pytest.mark.parametrize("name", ["indptr", "split", "original_ids", "indices"])
def test_a_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    graph = generate("rmat", scale=8, edge_factor=8, seed=1)
    with short_chunks(1024), SpillFolder(tmp_path / "spill") as spill:
        write_graph(graph, tmp_path / "graph")
        shard = tmp_path / "graph" / name / "c" / "0"
        content = bytearray(shard.read_bytes())
        content[len(content) // 3] ^= 4
        shard.write_bytes(content)
        budgets = make_budgets()
        with pytest.raises(InputError, match=r"damaged or incomplete \(.+\); ingest the graph again"):
            lists_of(open_stored(tmp_path / "graph", budgets.host, WHY), budgets.at(spill))
        assert budgets.disk.used == 0


def test_a_store_that_changes_is_refused(tmp_path: Path) -> None:
    with SpillFolder(tmp_path / "spill") as spill:
        stored = store_of(generate("rmat", scale=6, edge_factor=4, seed=1), tmp_path / "graph")
        (tmp_path / "graph").rename(tmp_path / "other")
        write_graph(generate("rmat", scale=6, edge_factor=4, seed=2), tmp_path / "graph")
        with pytest.raises(InputError, match="it was changed"):
            lists_of(stored, make_budgets().at(spill))
        with pytest.raises(InputError, match="damaged or incomplete"):
            stored.all_ids()


@pytest.mark.parametrize("how", ["flip", "cut", "gone"])
def test_what_happens_to_the_lists_is_found(tmp_path: Path, how: str) -> None:
    with short_chunks(1024), SpillFolder(tmp_path / "spill") as spill:
        stored = store_of(generate("rmat", scale=8, edge_factor=8, seed=1), tmp_path / "graph")
        lists = lists_of(stored, make_budgets().at(spill))
        (file,) = spill.path.iterdir()
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        if how == "gone":
            lists.close()
            lists.close()
            return
        file.write_bytes(content if how == "flip" else content[:-1])
        last, out = lists.segments - 1, np.empty(lists.longest, np.uint32)
        assert len(lists.read(0, out))
        with pytest.raises(RunError, match=r"a file of the adjacency lists cannot be read \(.+\): check the disk"):
            lists.read(last, out)


def test_the_disk_has_room_or_the_run_ends(tmp_path: Path) -> None:
    graph = generate("rmat", scale=8, edge_factor=8, seed=1)
    with SpillFolder(tmp_path / "spill") as spill:
        stored, budgets = store_of(graph, tmp_path / "graph"), make_budgets(disk=4 * graph.num_edges - 1)
        with pytest.raises(InputError, match=r"no room for a file of the adjacency lists .* raise memory\.disk"):
            lists_of(stored, budgets.at(spill))
        assert budgets.host.used == budgets.disk.used == 0
