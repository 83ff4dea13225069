"""Building against a naive construction; the store's round trip, and what damages it."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.storage.arrays import array_hash, layout
from longwall.storage.errors import InputError, RunError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph import graph_store, store_writer
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import describe_store, open_store
from longwall.storage.graph.info import info
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import VERSION, is_store
from longwall.storage.graph.store_writer import StoreSink, create_store, write_graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.memory.reservations import MemoryBudget

DAMAGED = r"damaged or incomplete \(.+\); ingest the graph again$"

vertex = st.integers(0, 12) | st.integers(2**63 - 4, 2**63 - 1)
edge_lists = st.lists(st.tuples(vertex, vertex), min_size=1, max_size=60)


def build(edges: list[tuple[int, int]], **more: object) -> Graph:
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    return build_graph(src, dst, **more)  # type: ignore[arg-type]


def arrays_of(graph: Graph) -> dict[str, list[int] | None]:
    names = ("indptr", "indices", "split", "original_ids", "labels", "edge_labels")
    return {name: None if (a := getattr(graph, name)) is None else a.tolist() for name in names}


@settings(deadline=None)
@given(edge_lists, st.randoms(use_true_random=False))
def test_build_equals_naive(edges: list[tuple[int, int]], random: object) -> None:
    neighbours: dict[int, set[int]] = {}
    for u, v in edges:
        if u != v:
            neighbours.setdefault(u, set()).add(v)
            neighbours.setdefault(v, set()).add(u)
    order = sorted(neighbours, key=lambda v: (-len(neighbours[v]), v))
    rank = {v: i for i, v in enumerate(order)}
    rows = [sorted(rank[w] for w in neighbours[v]) for v in order]
    ids = {v for edge in edges for v in edge}
    label = {v: v % 3 for v in ids}
    edge_label = [(u + v) % 5 for u, v in edges]

    graph = build(
        edges,
        vertex_labels=(np.array(list(label), np.int64), np.array(list(label.values()), np.int64)),
        edge_labels=np.array(edge_label, np.int32),
    )
    indptr = [0, *np.cumsum([len(row) for row in rows]).tolist()]
    assert arrays_of(graph) == {
        "indptr": indptr,
        "indices": [w for row in rows for w in row],
        "split": [indptr[v] + sum(w < v for w in row) for v, row in enumerate(rows)],
        "original_ids": order,
        "labels": [label[v] for v in order],
        "edge_labels": [(order[v] + order[w]) % 5 for v, row in enumerate(rows) for w in row],
    }
    names = ("indptr", "indices", "split", "original_ids", "labels", "edge_labels")
    assert [str(getattr(graph, name).dtype) for name in names] == [
        *("int64", "uint32", "int64", "int64", "int32", "int32")
    ]

    stats = graph.stats
    degrees = [len(row) for row in rows]
    assert (stats.num_vertices, stats.num_edges) == (len(order), sum(degrees) // 2)
    assert (graph.num_vertices, graph.num_edges) == (len(order), sum(degrees) // 2)
    assert stats.max_degree == max(degrees, default=0) == stats.degree_percentiles[100]
    assert stats.max_out_degree == max((sum(w < v for w in row) for v, row in enumerate(rows)), default=0)
    assert stats.sum_degree_squared == sum(d * d for d in degrees)
    wedges = [(a, b) for row in rows for a in row for b in row if a != b]
    closed = sum(b in rows[a] for a, b in wedges) / len(wedges) if wedges else 0
    assert stats.closed_wedge_fraction == pytest.approx(closed, abs=0.02)
    if closed in (0, 1):
        assert stats.closed_wedge_fraction == closed

    unlabelled = build(edges)
    random.shuffle(edges)  # type: ignore[attr-defined]
    assert build([(v, u) for u, v in edges]).content_hash == unlabelled.content_hash != graph.content_hash


def test_unsigned_ids() -> None:
    graph = build_graph(np.array([5, 6], np.uint64), np.array([6, 7], np.uint64))
    assert graph.original_ids.tolist() == [6, 5, 7]


@pytest.mark.parametrize("edges", [[], [(1, 1)], [(-1, -1)]])
def test_no_edge_is_left(edges: list[tuple[int, int]]) -> None:
    graph = build(edges)
    assert (graph.num_vertices, graph.num_edges, graph.indptr.tolist()) == (0, 0, [0])


@pytest.fixture(params=["labels", "edge labels", "none"])
def graph(request: pytest.FixtureRequest) -> Graph:
    graph = generate("rmat", scale=9, edge_factor=8, seed=3, num_labels=4 if request.param == "labels" else 0)
    if request.param != "edge labels":
        return graph
    rows = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    return build_graph(rows, graph.indices.astype(np.int64), edge_labels=((rows + graph.indices) % 7).astype(np.int32))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of many chunks in several shards."""
    monkeypatch.setattr(layout, "CHUNK_BYTES", 1024)
    monkeypatch.setattr(layout, "CHUNKS_PER_SHARD", 3)
    path = tmp_path / "store"
    write_graph(generate("rmat", scale=9, edge_factor=8, seed=3), path)
    return path


@pytest.mark.parametrize("chunk_bytes", [256, 2**20])
def test_round_trip(tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int) -> None:
    monkeypatch.setattr(layout, "CHUNK_BYTES", chunk_bytes)
    path = tmp_path / "store"
    write_graph(graph, path)
    opened = load_graph(path)
    assert arrays_of(opened) == arrays_of(graph)
    assert opened.indices.dtype == np.uint32
    assert (opened.stats, opened.content_hash) == (graph.stats, graph.content_hash)
    assert is_store(path)
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_shards_hold_several_chunks(store: Path) -> None:
    metadata = json.loads((store / "indices" / "zarr.json").read_text())
    shard = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    assert shard == [3 * 256]
    assert len(list((store / "indices" / "c").iterdir())) > 3


def test_info_is_json(graph: Graph, tmp_path: Path) -> None:
    described = json.loads(json.dumps(info(graph)))
    assert described["num_edges"] == graph.num_edges
    assert described["bytes"] == graph.nbytes
    assert described["content_hash"] == graph.content_hash
    assert described["vertex_labels"] == graph.has_labels
    write_graph(graph, tmp_path / "store")
    assert describe_store(tmp_path / "store") == info(graph)


def test_existing_path_is_refused(tmp_path: Path, graph: Graph) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "file", "link"):
        with pytest.raises(InputError, match="exists already; choose another path, or remove it first"):
            write_graph(graph, tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.parametrize("path", ["/proc/store", "x" * 251])
def test_a_place_that_takes_no_folders_is_refused(
    tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r": a store cannot be made there \(.*\); choose another path$"):
        write_graph(graph, path)


def test_missing_parent_is_refused(tmp_path: Path, graph: Graph) -> None:
    with pytest.raises(InputError, match="does not exist; create it first"):
        write_graph(graph, tmp_path / "none" / "store")


@each_case(
    ("error", "expected", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), RunError, "No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied"), InputError, "no permission to write"),
        (OSError(errno.EROFS, "Read-only file system"), InputError, "no permission to write"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    ],
)
@each_case("step", ["append", "describe", "sync_folder"])
def test_failed_write_leaves_nothing(
    tmp_path: Path,
    graph: Graph,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    expected: type[BaseException],
    says: str,
    step: str,
) -> None:
    owner = store_writer if step == "sync_folder" else StoreSink
    real = getattr(owner, step)

    def fail(*arguments: object, **options: object) -> None:
        real(*arguments, **options)
        raise error

    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(expected, match=says):
        write_graph(graph, tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt("first"), RunError("first")])
def test_a_signal_does_not_disturb_the_removal_of_what_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    remove = shutil.rmtree
    signals = []

    def disturbed(folder: Path, **options: bool) -> None:
        signals.append(folder.name)
        os.kill(os.getpid(), signal.SIGINT)
        remove(folder, **options)

    def fill(sink: StoreSink) -> GraphStats:
        raise error

    monkeypatch.setattr(shutil, "rmtree", disturbed)
    with pytest.raises(type(error), match="first"):
        create_store(tmp_path / "store", fill)
    assert signals == [".store.tmp"]
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_store_is_synced_once_the_store_is_there(
    tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(store_writer, "sync_folder", lambda path: synced.append((path, (tmp_path / "store").is_dir())))
    write_graph(graph, tmp_path / "store")
    assert synced.pop() == (tmp_path, True)
    assert synced
    assert not any(there for _, there in synced)


def test_a_store_whose_name_may_not_stay_is_taken_back(
    tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(path: Path) -> None:
        if path == tmp_path:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(store_writer, "sync_folder", sync)
    with pytest.raises(RunError, match="the store could not be written"):
        write_graph(graph, tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        open_store(tmp_path / "none")
    (tmp_path / "file").write_text("1 2")
    for path in (tmp_path, tmp_path / "file"):
        assert not is_store(path)
        with pytest.raises(InputError, match="not a graph store; make one with 'longwall ingest'"):
            open_store(path)


def edit(store: Path, **attributes: object) -> None:
    metadata = json.loads((store / "zarr.json").read_text())
    metadata["attributes"].update(attributes)
    (store / "zarr.json").write_text(json.dumps(metadata))


def test_other_versions(store: Path) -> None:
    edit(store, version=VERSION + 1, content_hash=None)
    with pytest.raises(InputError) as caught:
        load_graph(store)
    versions = f"(store version {VERSION + 1}, this one reads {VERSION})"
    assert str(caught.value) == f"{store}: made by a newer version of Longwall {versions}; upgrade Longwall"
    edit(store, version=VERSION - 1)
    with pytest.raises(InputError, match=r"older version of Longwall .*; ingest the graph again"):
        load_graph(store)


def test_labels_beside_a_store(store: Path) -> None:
    with pytest.raises(InputError, match="keeps its own labels"):
        load_graph(store, "labels.txt")


@pytest.mark.parametrize(
    "attributes",
    [
        {"version": None},
        {"version": "1"},
        {"version": 0},
        {"counts": {"vertices": 3}},
        {"counts": {"vertices": 3, "edges": 2}},
        {"counts": None},
        {"stats": {}},
        {"stats": None},
        {"content_hash": "0" * 64},
    ],
)
def test_damaged_attributes(store: Path, attributes: dict[str, object]) -> None:
    edit(store, **attributes)
    with pytest.raises(InputError, match=DAMAGED):
        open_store(store)


@pytest.mark.parametrize("name", ["max_degree", "max_out_degree", "mean_degree", "degree_percentiles", "content_hash"])
def test_any_other_number_among_the_attributes_is_noticed(store: Path, name: str) -> None:
    attributes = json.loads((store / "zarr.json").read_text())["attributes"]
    edit(store, **dict(reversed(attributes.items())))
    described = describe_store(store)  # the order does not matter
    other = {"mean_degree": 1.5, "degree_percentiles": {"50": 1}, "content_hash": "0" * 64}.get(name, 7)
    edit(store, **({name: other} if name in attributes else {"stats": attributes["stats"] | {name: other}}))
    for read in (open_store, describe_store):
        with pytest.raises(InputError, match=DAMAGED):
            read(store)
    edit(store, **attributes)
    assert describe_store(store) == described
    edit(store, checksum=None)
    with pytest.raises(InputError, match=DAMAGED):
        open_store(store)


@pytest.mark.parametrize("blocks", [1, 2, 3, 100])
def test_reading_takes_no_more_than_is_left(store: Path, monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    """A block is a chunk here: of 1 KiB, and as much again is taken for what is encoded and looked at."""
    monkeypatch.setattr(array_hash, "SEGMENT_BYTES", 512)
    write_graph(generate("rmat", scale=9, edge_factor=8, seed=3), store.with_name("other"))
    nbytes = open_store(store.with_name("other")).nbytes
    block = 2 * 1024
    most = []
    real = graph_store.StoreReader

    def watched(header: object, stored: object, workers: int, chunks: int) -> object:
        most.append(block * workers)
        return real(header, stored, workers, chunks)  # type: ignore[arg-type]

    monkeypatch.setattr(graph_store, "StoreReader", watched)
    monkeypatch.setattr(graph_store, "_MOST_CHUNKS", 1)
    host = MemoryBudget("memory.host", nbytes + block * blocks)
    assert open_store(store.with_name("other"), host).nbytes == host.used == nbytes
    assert max(most) == host.peak - nbytes <= block * blocks
    with pytest.raises(InputError, match=r"no room for reading the graph .* raise memory\.host"):
        open_store(store.with_name("other"), MemoryBudget("memory.host", nbytes + block - 1))


def test_a_small_store_opens_in_a_small_budget(tmp_path: Path) -> None:
    write_graph(build([(1, 2), (2, 3)]), tmp_path / "store")
    host = MemoryBudget("memory.host", 1000)
    assert open_store(tmp_path / "store", host).num_edges == 2
    assert host.peak > host.used


BEGIN_STORE = """
import os, signal, sys
from longwall.storage.graph.store_writer import create_store
def fill(sink):
    print("begun", flush=True)
    sys.stdin.read(1)
    os.kill(os.getpid(), signal.SIGKILL)
create_store(sys.argv[1], fill)
"""


def begin_store(path: Path) -> subprocess.Popen[str]:
    """A process that has begun to make a store, and kills itself once it is sent a character."""
    command = [sys.executable, "-c", BEGIN_STORE, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.quick_cases(1)
def test_what_a_killed_process_left_of_a_store_goes_when_it_is_made_again(tmp_path: Path, graph: Graph) -> None:
    other, killed = begin_store(tmp_path / "store2"), begin_store(tmp_path / "store")
    killed.communicate("x")
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".store.*")
    kept = tmp_path / "kept"
    kept.mkdir()
    (left / "link").symlink_to(kept)
    write_graph(graph, tmp_path / "store")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".store2.tmp", "kept", "store"]
    assert open_store(tmp_path / "store").num_edges == graph.num_edges
    assert not (tmp_path / "store" / "link").exists()
    other.communicate("x")


@pytest.mark.slow
def test_a_second_process_that_makes_the_same_store_is_refused(tmp_path: Path, graph: Graph) -> None:
    first = begin_store(tmp_path / "store")
    (tmp_path / "edges.txt").write_text("1 2\n")
    before = sorted(tmp_path.rglob("*"))
    command = [sys.executable, "-m", "longwall", "ingest", "edges.txt", "store", "--quiet"]
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert second.returncode == 2
    assert second.stderr == (
        "error: store: another process is making this store: wait for it, or choose another path\n"
    )
    assert sorted(tmp_path.rglob("*")) == before
    first.communicate("x")
    write_graph(graph, tmp_path / "store")


def test_a_store_that_was_made_meanwhile_stays(tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir

    def finish(folder: Path, *arguments: object) -> None:
        monkeypatch.undo()
        write_graph(graph, tmp_path / "store")
        make(folder, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", finish)
    with pytest.raises(InputError, match="exists already"):
        write_graph(build([(1, 2)]), tmp_path / "store")
    assert open_store(tmp_path / "store").num_edges == graph.num_edges
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_nothing_is_written_through_a_link_in_the_way(tmp_path: Path, graph: Graph) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / ".store.tmp").symlink_to(tmp_path / "kept")
    with pytest.raises(InputError, match=r"\.store\.tmp is in the way"):
        write_graph(graph, tmp_path / "store")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["file"]


def test_stores_are_made_where_folders_cannot_be_locked(
    tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    write_graph(graph, tmp_path / "store")
    opened = {os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()}
    assert not any(path.startswith(str(tmp_path.resolve())) for path in opened)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    (tmp_path / ".store2.tmp").mkdir()
    with pytest.raises(InputError, match="if no process is making this store, remove it"):
        write_graph(graph, tmp_path / "store2")


@each_case("name", ["indptr", "indices", "split", "original_ids"])
@each_case("damage", ["gone", "no shard", "no metadata", "empty", "short", "zeros", "flip"])
def test_damaged_array(store: Path, tmp_path: Path, name: str, damage: str) -> None:
    store = shutil.copytree(store, tmp_path / "damaged")
    shard = store / name / "c" / "0"
    data = shard.read_bytes()
    if damage == "gone":
        shutil.rmtree(store / name)
    elif damage == "no shard":
        shard.unlink()
    elif damage == "no metadata":
        (store / name / "zarr.json").write_text("{}")
    else:
        changed = {
            "empty": b"",
            "short": data[: len(data) // 2],
            "zeros": bytes(len(data)),
            "flip": data[:40] + bytes([data[40] ^ 255]) + data[41:],
        }
        shard.write_bytes(changed[damage])
    within_rows = (damage, name) == ("flip", "split")  # no hash covers it, and `describe_store` compares no rows
    for read in (open_store,) if within_rows else (open_store, describe_store):
        with pytest.raises(InputError, match=DAMAGED):
            read(store)


@pytest.mark.parametrize("fault", ["dtype", "length", "split"])
def test_arrays_that_do_not_fit(tmp_path: Path, fault: str) -> None:
    graph = generate("rmat", scale=6, seed=1)
    wrong = {
        "dtype": {"indptr": graph.indptr.astype(np.int32)},
        "length": {"original_ids": graph.original_ids[:-1]},
        "split": {"split": graph.indptr[:-1].copy()},
    }
    write_graph(replace(graph, **wrong[fault]), tmp_path / "store")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="damaged or incomplete"):
        open_store(tmp_path / "store")


def test_what_two_threads_import_is_there_before_the_second_begins(tmp_path: Path) -> None:
    """Modules of numcodecs import each other: two threads that begin with different ones get one half made."""
    program = (
        "import sys, threading; from pathlib import Path\n"
        "from longwall.storage.graph import store_writer\n"
        "start = store_writer.Thread.start\n"
        "def checked(thread): assert 'numcodecs.blosc' in sys.modules, thread; start(thread)\n"
        "store_writer.Thread.start = checked\n"
        "store_writer.StoreSink(Path(sys.argv[1]))._importing.join()\n"
        "assert 'zarr' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=120)
