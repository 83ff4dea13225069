"""Stores that somebody else made: whatever is in them, they are a graph or refused, and no code of theirs runs."""

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from cases import each_case

from longwall.storage.arrays import array_hash, layout
from longwall.storage.errors import InputError
from longwall.storage.graph import graph_checks
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import describe_store, open_store
from longwall.storage.graph.info import info
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import _checksum
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.memory.reservations import MemoryBudget

READERS = (open_store, describe_store)
OF_TWO = 30  # vertices of each transaction


@pytest.fixture(scope="module")
def plain() -> Graph:
    """With labels of vertices and edges, and two transactions, between which there is no edge."""
    random = np.random.default_rng(1)
    ends = random.integers(0, OF_TWO, (2, 400)) + OF_TWO * random.integers(0, 2, 400)
    ends = ends[:, ends[0] != ends[1]]
    small, large = ends.min(axis=0), ends.max(axis=0)
    graph = build_graph(
        small * 3,
        large * 3,
        edge_labels=((small + large) % 4).astype(np.int32),
        vertex_labels=(np.arange(2 * OF_TWO) * 3, np.arange(2 * OF_TWO) % 5),
    )
    groups = (graph.original_ids >= 3 * OF_TWO).astype(np.int32)
    return replace(graph, transactions=groups, transaction_ids=np.array([4, 9], np.int64))


@pytest.fixture(params=["one chunk", "many chunks"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many chunks":
        monkeypatch.setattr(layout, "CHUNK_BYTES", 128)
        monkeypatch.setattr(layout, "CHUNKS_PER_SHARD", 3)
        monkeypatch.setattr(array_hash, "SEGMENT_BYTES", 32)


def refused(path: Path, says: str, readers: tuple[Callable[[Path], Any], ...] = READERS) -> None:
    for read in readers:
        with pytest.raises(InputError, match=says) as caught:
            read(path)
        assert str(path) in str(caught.value)


@pytest.mark.usefixtures("cut")
def test_zarr_reads_what_is_stored(tmp_path: Path, plain: Graph) -> None:
    import zarr

    write_graph(plain, tmp_path / "store")
    assert info(open_store(tmp_path / "store")) == describe_store(tmp_path / "store")
    group = zarr.open_group(tmp_path / "store", mode="r")
    for name, array in group.arrays():
        np.testing.assert_array_equal(array[:], getattr(plain, name))
        assert array.dtype == getattr(plain, name).dtype
    assert len(list(group.arrays())) == 8
    assert group.attrs["content_hash"] == open_store(tmp_path / "store").content_hash


def changed(array: Any, at: int, value: int) -> Any:
    copy = array.copy()
    copy[at] = value
    return copy


def swapped(graph: Graph) -> Any:
    """The same rows but for two edges u-a and v-b that are u-b and v-a in the rows of u and v only."""
    rows = [graph.indices[a:b].tolist() for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)]
    for u in range(len(rows)):
        for v in range(u + 1, len(rows)):
            for a in rows[u]:
                for b in rows[v]:
                    new_u, new_v = {*rows[u], b} - {a}, {*rows[v], a} - {b}
                    fits = (a < u) == (b < u) and (a < v) == (b < v) and u not in new_u and v not in new_v
                    alike = graph.transactions is None or graph.transactions[u] == graph.transactions[v]
                    if fits and alike and len(new_u) == len(rows[u]) and len(new_v) == len(rows[v]) and a != b:
                        rows[u], rows[v] = sorted(new_u), sorted(new_v)
                        return np.array([w for row in rows for w in row], np.uint32)
    raise AssertionError("there are no such edges")


def row_end(graph: Graph) -> int:
    return int(graph.indptr[1]) - 1


FORGED: dict[str, Callable[[Graph], dict[str, Any]]] = {
    "indptr: the first row": lambda g: {"indptr": changed(g.indptr, 0, 1)},
    "indptr: a row lies outside": lambda g: {"indptr": changed(g.indptr, 3, -5)},
    "indptr: a row lies": lambda g: {"indptr": changed(g.indptr, 3, 2**62)},
    "indptr: the degrees": lambda g: {"indptr": changed(g.indptr, 5, int(g.indptr[4]))},
    "indptr: the degrees are": lambda g: {"indptr": changed(g.indptr, 5, int(g.indptr[3]))},
    "indptr: the last row": lambda g: {"indptr": np.append(g.indptr[:-1], g.indptr[-2] + 1)},
    "original_ids": lambda g: {"original_ids": np.full_like(g.original_ids, -7)},
    "original_ids: these": lambda g: {"original_ids": changed(g.original_ids, -1, -(2**63))},
    "original_ids: these are no ids": lambda g: {"original_ids": np.full_like(g.original_ids, 7)},
    "split": lambda g: {"split": changed(g.split, 4, 2**62)},
    "split: a row": lambda g: {"split": changed(g.split, 4, -1)},
    "split: a row is split": lambda g: {"split": changed(g.split, 4, int(g.indptr[4]) - 1)},
    "labels: there is a negative one": lambda g: {"labels": changed(g.labels, 7, -1)},
    "labels: there are more": lambda g: {"labels": changed(g.labels, 7, 77)},
    "the statistics": lambda g: {"labels": changed(g.labels, 7, int(g.labels[7] + 1) % 5)},
    "transaction_ids: these": lambda g: {"transaction_ids": np.array([9, 4])},
    "transaction_ids: these are": lambda g: {"transaction_ids": np.array([4, 4])},
    "transaction_ids: these are no": lambda g: {"transaction_ids": np.array([-4, 4])},
    "transactions: there": lambda g: {"transactions": changed(g.transactions, 3, 2)},
    "transactions: there is": lambda g: {"transactions": changed(g.transactions, 3, -1)},
    "transactions, or their ids, are missing": lambda g: {"transactions": None},
    "edge_labels: there": lambda g: {"edge_labels": changed(g.edge_labels, 11, -9)},
    "indices:": lambda g: {"indices": changed(g.indices, row_end(g), g.num_vertices)},
    "indices: ": lambda g: {"indices": changed(g.indices, row_end(g), 2**32 - 1)},
}
ONLY_WHEN_OPENED: dict[str, Callable[[Graph], dict[str, Any]]] = {
    "original_ids: two vertices": lambda g: {"original_ids": changed(g.original_ids, 0, int(g.original_ids[-1]))},
    "indices: a row does not ascend": lambda g: {"indices": changed(g.indices, 1, int(g.indices[0]))},
    "indices: a row does not": lambda g: {"indices": changed(g.indices, row_end(g), 1)},
    "indices: a row": lambda g: {"indices": changed(g.indices, int(g.indptr[1]), 1)},  # a loop
    "indices: a row does not ascend, or": lambda g: {"split": changed(g.split, 9, int(g.split[9]) - 1)},
    "indices: a row does not ascend, or does": lambda g: {
        "transactions": changed(g.transactions, 0, 1 - g.transactions[0])
    },
    "indices: an edge is not the same": lambda g: {"indices": swapped(g)},
    "edge_labels: an edge": lambda g: {"edge_labels": changed(g.edge_labels, 11, 9)},
    "edge_labels: an edge is not": lambda g: {"edge_labels": np.arange(2 * g.num_edges, dtype=np.int32)},
}


@pytest.mark.quick_cases(1)
@pytest.mark.usefixtures("cut")
@each_case("says", [*FORGED, *ONLY_WHEN_OPENED])
def test_arrays_of_no_graph_are_refused_with_all_hashes_right(tmp_path: Path, plain: Graph, says: str) -> None:
    forge = FORGED.get(says) or ONLY_WHEN_OPENED[says]
    write_graph(replace(plain, **forge(plain)), tmp_path / "store")
    says = r"\(.*" + ("indices:" if says == "indices: " else says)
    if any(says.endswith(name) for name in FORGED):
        refused(tmp_path / "store", says)
    else:
        refused(tmp_path / "store", says, (open_store,))
        describe_store(tmp_path / "store")


@pytest.fixture
def named(tmp_path: Path) -> Graph:
    """Names of one to three bytes, and the name ``a1`` alone in the bytes of a vertex without an edge."""
    rows = [f"a{i},{'b' * (1 + i % 3)}{i}" for i in range(1, 40)] + ["a1,c1", "a2,c1", "b2,b2"]
    (tmp_path / "named.csv").write_text("source,target\n" + "\n".join(rows) + "\n")
    return load_graph(tmp_path / "named.csv")


def renamed(graph: Graph, name: str, to: str) -> Graph:
    assert graph.names is not None
    return with_names(graph, [to if one == name else one for one in graph.names.to_pylist()])


def with_names(graph: Graph, names: list[str]) -> Graph:
    ends = np.cumsum([0, *(len(one.encode()) for one in names)])
    return replace(graph, name_starts=ends, name_bytes=np.frombuffer("".join(names).encode(), np.uint8))


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize(("name", "to"), [("a2", "a1"), ("c1", "a1"), ("a39", "a38")])
def test_two_vertices_of_one_name_are_refused(tmp_path: Path, named: Graph, name: str, to: str) -> None:
    """Of one degree or two, with all hashes right."""
    write_graph(named, tmp_path / "good")
    assert open_store(tmp_path / "good").all_ids().to_pylist() == named.all_ids().to_pylist()
    twice = renamed(named, name, to)
    write_graph(twice, tmp_path / "store")
    refused(tmp_path / "store", r"\(name_bytes: two vertices have the same name\)", (open_store,))
    write_graph(with_names(twice, [*twice.names.to_pylist(), "of no vertex"]), tmp_path / "more")
    refused(tmp_path / "more", r"\(name_bytes: two vertices have the same name\)", (open_store,))


def test_a_name_of_no_vertex_may_be_there_twice(tmp_path: Path, named: Graph) -> None:
    names = [*named.names.to_pylist(), "a1", "a1"]
    write_graph(with_names(named, names), tmp_path / "store")
    assert open_store(tmp_path / "store").all_ids().to_pylist() == named.all_ids().to_pylist()


def test_names_with_the_same_hash_are_told_apart_by_another_key(
    tmp_path: Path, named: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed, tries = graph_checks.hash_spans, []

    def poor(data: Any, begins: Any, ends: Any, key: Any) -> Any:
        tries.append(key.tobytes())
        return np.zeros(len(begins), np.uint64) if len(tries) < 4 else hashed(data, begins, ends, key)

    monkeypatch.setattr(graph_checks, "hash_spans", poor)
    write_graph(named, tmp_path / "store")
    open_store(tmp_path / "store")
    assert len(set(tries)) == 4


def test_rows_ascend_where_one_read_ends_and_the_next_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Graph
) -> None:
    """Two neighbours that have changed places: each read alone ascends, and all edges are there."""
    monkeypatch.setattr(layout, "CHUNK_BYTES", 32)
    monkeypatch.setattr(array_hash, "SEGMENT_BYTES", 32)
    tried = 0
    for seam in range(8, 2 * plain.num_edges, 8):
        row = int(np.searchsorted(plain.indptr, seam, side="right")) - 1
        if seam in (plain.indptr[row], plain.split[row]) or tried == 20:
            continue
        indices = plain.indices.copy()
        indices[[seam - 1, seam]] = indices[[seam, seam - 1]]
        labels = np.zeros_like(plain.edge_labels)
        write_graph(replace(plain, indices=indices, edge_labels=labels), tmp_path / f"store-{seam}")
        refused(tmp_path / f"store-{seam}", r"\(indices: a row does not ascend\)", (open_store,))
        tried += 1
    assert tried == 20


@pytest.mark.slow
@pytest.mark.usefixtures("cut")
def test_every_wrong_neighbour_is_found(tmp_path: Path) -> None:
    """Whichever check it is that finds it."""
    graph = build_graph(np.array([0, 0, 1, 2, 3, 1, 0]), np.array([1, 2, 2, 3, 4, 4, 5]))
    for at in range(2 * graph.num_edges):
        for value in range(graph.num_vertices + 1):
            if value != graph.indices[at]:
                write_graph(replace(graph, indices=changed(graph.indices, at, value)), tmp_path / "store")
                refused(tmp_path / "store", r"indices", (open_store,))
                shutil.rmtree(tmp_path / "store")


STATS: dict[str, Any] = {
    "num_vertices": 3,
    "num_edges": 3,
    "max_degree": 1,
    "max_out_degree": 1,
    "mean_degree": 0.5,
    "sum_degree_squared": 2**80,
    "num_labels": 1,
    "label_counts": {0: 60, 1: 0, 2: 0, 3: 0, 4: 0},
    "degree_percentiles": {50: 1, 90: 1, 99: 1, 100: 1},
}


@each_case("name", STATS)
def test_forged_statistics_are_refused(tmp_path: Path, plain: Graph, name: str) -> None:
    write_graph(replace(plain, stats=replace(plain.stats, **{name: STATS[name]})), tmp_path / "store")
    refused(tmp_path / "store", r"\(.*\); ingest the graph again")


@each_case("value", [float("nan"), float("inf"), -0.1, 1.5, 2, True, None, "0.5", [0.5]])
def test_a_fraction_of_closed_wedges_is_a_fraction(tmp_path: Path, plain: Graph, value: Any) -> None:
    write_graph(replace(plain, stats=replace(plain.stats, closed_wedge_fraction=value)), tmp_path / "store")
    refused(tmp_path / "store", "closed_wedge_fraction is no number from 0 to 1")


def attributes_of(store: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the attributes of a store, and make their checksum right."""
    document = json.loads((store / "zarr.json").read_text())
    change(document["attributes"])
    document["attributes"]["checksum"] = _checksum(document["attributes"])
    (store / "zarr.json").write_text(json.dumps(document))


@each_case(
    "change",
    [
        lambda a: a["counts"].update(vertices=2**40),
        lambda a: a["counts"].update(edges=2**62),
        lambda a: a["counts"].update(edges=-1),
        lambda a: a["counts"].update(edges=1.0),
        lambda a: a["counts"].update(vertices="60"),
        lambda a: a.update(counts=[1, 2]),
        lambda a: a.update(stats=[]),
        lambda a: a["stats"].pop("max_degree"),
        lambda a: a["stats"].update(label_counts=None),
        lambda a: a["stats"].update(label_counts={"zero": 3}),
        lambda a: a["stats"].update(more=1),
        lambda a: a.update(content_hash=None),
        lambda a: a.update(more=1),
        lambda a: a.pop("created_by"),
        lambda a: a.update(version=0),
        lambda a: a.update(version="3"),
        lambda a: a.update(id_type="int32"),
        lambda a: a.update(notes={}),
        lambda a: a.update(notes=[{"kind": "no such"}]),
        lambda a: a.update(label_names=[]),
        lambda a: a.update(label_names={"arcs": ["a"]}),
        lambda a: a.update(label_names={"vertices": "ab"}),
        lambda a: a.update(label_names={"vertices": ["a", 1]}),
        lambda a: a.update(label_names={"vertices": []}),
        lambda a: a.update(label_names={"vertices": ["a", "a"]}),
    ],
)
def test_attributes_of_no_graph_are_refused(
    tmp_path: Path, plain: Graph, change: Callable[[dict[str, Any]], Any]
) -> None:
    write_graph(plain, tmp_path / "store")
    attributes_of(tmp_path / "store", change)
    refused(tmp_path / "store", r"\(.*\); ingest the graph again")


class _Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize("place", ["consolidated", "array", "codec"])
def test_no_code_of_a_store_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Graph, place: str) -> None:
    """As zarr-python before 3.1 let it: an array of format 2 whose codec unpickles its chunks."""
    monkeypatch.chdir(tmp_path)
    write_graph(plain, tmp_path / "store")
    old = {
        **{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i8", "order": "C", "fill_value": 0},
        **{"filters": None, "dimension_separator": ".", "compressor": {"id": "pickle", "protocol": 5}},
    }
    target = tmp_path / "store" / "zarr.json"
    document = json.loads(target.read_text())
    if place == "consolidated":
        document["consolidated_metadata"] = {
            "kind": "inline",
            "must_understand": False,
            "metadata": {"original_ids": old, **dict.fromkeys(("indptr", "indices", "split"), old)},
        }
    elif place == "array":
        target, document = tmp_path / "store" / "indptr" / "zarr.json", old
    else:
        target = tmp_path / "store" / "indptr" / "zarr.json"
        document = json.loads(target.read_text())
        codec = {"name": "numcodecs.pickle", "configuration": {"protocol": 5}}
        document["codecs"][0]["configuration"]["codecs"] = [codec]
    target.write_text(json.dumps(document))
    for name in ("indptr", "original_ids"):
        (tmp_path / "store" / name / "0").write_bytes(pickle.dumps(_Bomb()))
        (tmp_path / "store" / name / "c" / "0").write_bytes(pickle.dumps(_Bomb()))
    refused(tmp_path / "store", r"zarr\.json: ")
    assert not (tmp_path / "exploded").exists()
    pickle.loads(pickle.dumps(_Bomb()))  # it would have run
    assert (tmp_path / "exploded").exists()


@each_case(
    "change",
    [
        lambda d: d.update(data_type="int32"),
        lambda d: d.update(data_type="object"),
        lambda d: d.update(data_type={"name": "numpy.datetime64"}),
        lambda d: d.update(shape=[2**62]),
        lambda d: d.update(shape=[-1]),
        lambda d: d.update(shape=[61.0]),
        lambda d: d.update(shape=[61, 1]),
        lambda d: d.update(shape=[]),
        lambda d: d.update(fill_value=1),
        lambda d: d.update(zarr_format=2),
        lambda d: d.update(node_type="group"),
        lambda d: d.update(storage_transformers=[{"name": "x"}]),
        lambda d: d.update(more={}),
        lambda d: d.pop("codecs"),
        lambda d: d["codecs"].append({"name": "gzip"}),
        lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=[0]),
        lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=[2**40]),
        lambda d: d["codecs"][0]["configuration"].update(chunk_shape=[0]),
        lambda d: d["codecs"][0]["configuration"].update(chunk_shape=[2**40]),
        lambda d: d["codecs"][0]["configuration"].update(index_location="start"),
        lambda d: d["codecs"][0]["configuration"]["codecs"].pop(),
    ],
)
def test_only_metadata_that_longwall_writes_are_read(
    tmp_path: Path, plain: Graph, change: Callable[[dict[str, Any]], Any]
) -> None:
    write_graph(plain, tmp_path / "store")
    file = tmp_path / "store" / "indptr" / "zarr.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    refused(tmp_path / "store", r"\(indptr/zarr\.json: this is no array that Longwall writes\)")


@each_case("text", ["", "[" * 100_000, "1" * 5000, "[]", "null", '{"a":', "\x00", '{"a":' * 50_000])
@each_case("name", ["zarr.json", "indices/zarr.json"])
def test_metadata_that_are_no_json(tmp_path: Path, plain: Graph, name: str, text: str) -> None:
    write_graph(plain, tmp_path / "store")
    mark = "" if name != "zarr.json" else '{"format": "longwall-graph", "more": '
    (tmp_path / "store" / name).write_text(mark + text)
    refused(tmp_path / "store", rf"\({name}: this is no ")


@each_case("name", ["zarr.json", "indices/zarr.json", "indices/c/0", "indices/c", "indices"])
@each_case("kind", ["pipe", "link", "device", "folder", "socket"])
def test_only_regular_files_of_a_store_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Graph, name: str, kind: str
) -> None:
    """None of them is waited for."""
    import socket

    write_graph(plain, tmp_path / "store")
    path = tmp_path / "store" / name
    aside = tmp_path / "aside"
    path.rename(aside)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(aside)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        monkeypatch.chdir(path.parent)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    says = rf"\({name}.*: " if name != "zarr.json" or kind == "link" else "this is not a graph store"
    refused(tmp_path / "store", says)


def test_other_files_are_left_alone(tmp_path: Path, plain: Graph) -> None:
    write_graph(plain, tmp_path / "store")
    (tmp_path / "store" / ".DS_Store").write_bytes(b"\0")
    (tmp_path / "store" / "other").mkdir()
    os.mkfifo(tmp_path / "store" / "other" / "zarr.json")
    os.mkfifo(tmp_path / "store" / "indices" / "c" / "7")
    assert info(open_store(tmp_path / "store")) == describe_store(tmp_path / "store")


def test_a_group_as_older_versions_of_zarr_wrote_it(tmp_path: Path, plain: Graph) -> None:
    write_graph(plain, tmp_path / "store")
    document = json.loads((tmp_path / "store" / "zarr.json").read_text())
    (tmp_path / "store" / "zarr.json").write_text(json.dumps(document | {"consolidated_metadata": None}))
    assert open_store(tmp_path / "store").stats == plain.stats


def test_many_labels_are_booked_before_they_are_parsed(tmp_path: Path) -> None:
    ids = np.arange(20_000)
    graph = build_graph(ids[:-1], ids[1:], vertex_labels=(ids, ids))
    write_graph(graph, tmp_path / "store")
    size = (tmp_path / "store" / "zarr.json").stat().st_size
    assert size > 2**16
    assert open_store(tmp_path / "store", MemoryBudget("memory.host", 2**30)).stats == graph.stats
    with pytest.raises(InputError, match=r"no room for the metadata of the graph store .* raise memory\.host"):
        open_store(tmp_path / "store", MemoryBudget("memory.host", 32 * size))


def test_metadata_without_end_are_not_read(tmp_path: Path, plain: Graph) -> None:
    write_graph(plain, tmp_path / "store")
    os.truncate(tmp_path / "store" / "zarr.json", 2**42)  # a file of zeros that takes no space
    refused(tmp_path / "store", "no room for the metadata of the graph store .256 TiB.")
    write_graph(plain, tmp_path / "other")
    os.truncate(tmp_path / "other" / "indices" / "zarr.json", 2**42)
    refused(tmp_path / "other", r"\(indices/zarr\.json: this is no JSON\)")
    write_graph(plain, tmp_path / "third")
    os.truncate(tmp_path / "third" / "indices" / "c" / "0", 2**42)
    refused(tmp_path / "third", r"\(indices/c/0: the index of the chunks was changed\)")
    index = struct.pack("<QQ", 0, 2**42)
    with shard(tmp_path / "third", "indices").open("r+b") as file:
        file.seek(2**42)
        file.write(index + google_crc32c.value(index).to_bytes(4, "little"))
    refused(tmp_path / "third", r"\(indices/c/0: the index of the chunks does not fit the file\)")


def shard(store: Path, name: str) -> Path:
    return store / name / "c" / "0"


@pytest.mark.slow
@each_case("byte", range(16))
@each_case("value", [0, 1, 0x7F, 0xFF])
def test_every_byte_of_the_header_of_a_chunk(tmp_path: Path, plain: Graph, byte: int, value: int) -> None:
    write_graph(plain, tmp_path / "store")
    file = shard(tmp_path / "store", "indices")
    data = bytearray(file.read_bytes())
    if data[byte] == value:
        return
    data[byte] = value
    file.write_bytes(data)
    try:
        opened = open_store(tmp_path / "store")
    except InputError:
        return
    np.testing.assert_array_equal(opened.indices, plain.indices)


@pytest.mark.slow
@each_case("at", range(6))
@each_case("value", [0, 1, 16, 2**31, 2**63, 2**64 - 1])
def test_an_index_of_chunks_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Graph, at: int, value: int
) -> None:
    """With a checksum that is right."""
    monkeypatch.setattr(layout, "CHUNK_BYTES", 1024)
    monkeypatch.setattr(layout, "CHUNKS_PER_SHARD", 3)
    write_graph(plain, tmp_path / "store")
    file = shard(tmp_path / "store", "indices")
    data = file.read_bytes()
    index = np.frombuffer(data[-52:-4], "<u8").copy()
    if index[at] == value:
        return
    index[at] = value
    text = index.tobytes()
    file.write_bytes(data[:-52] + text + google_crc32c.value(text).to_bytes(4, "little"))
    refused(tmp_path / "store", r"indices/c/0: the index of the chunks does not fit the file")


def test_a_store_may_be_reached_through_a_link(tmp_path: Path, plain: Graph) -> None:
    write_graph(plain, tmp_path / "store")
    (tmp_path / "link").symlink_to(tmp_path / "store")
    assert isinstance(open_store(tmp_path / "link").stats, GraphStats)
