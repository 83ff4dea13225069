"""A graph of any size in any budget: the same graph, against a naive construction; what is refused."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from budgets import make_budgets
from cases import each_case
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.storage.arrays import layout
from longwall.storage.errors import InputError, RunError
from longwall.storage.generators.kinds import generate, generate_store
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import open_store
from longwall.storage.ingest.build import build_graph, build_in_memory, build_store
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeStream
from longwall.storage.ingest.vertex_labels import LabelArrays
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder

ARRAYS = ("indptr", "indices", "split", "original_ids", "labels", "edge_labels")
Edges = list[tuple[int, int]]


def words_of(ids: list[int]) -> tuple[np.ndarray, bool]:
    unsigned = max(ids) >= 2**63
    return np.array(ids, np.uint64 if unsigned else np.int64).view(np.int64), unsigned


def stream(edges: Edges, cut: int, labels: dict[int, int] | None = None, edge_labels: Any = None) -> EdgeStream:
    ids, unsigned = words_of([end for edge in edges for end in edge])
    ends = ids.reshape(-1, 2)

    def blocks() -> Iterator[EdgeBlock]:
        for start in range(0, len(ends), cut):
            part = slice(start, start + cut)
            given = None if edge_labels is None else np.array(edge_labels[part], np.int32)
            yield EdgeBlock(ends[part, 0].copy(), ends[part, 1].copy(), given, unsigned=unsigned)

    source = None
    if labels is not None:
        given = np.array(list(labels), np.uint64 if unsigned else np.int64)
        source = LabelArrays(given, np.array(list(labels.values()), np.int64))
    return EdgeStream("test", blocks(), source)


def naive(edges: Edges, labels: dict[int, int] | None, edge_label: Any) -> dict[str, Any]:
    neighbours: dict[int, set[int]] = {}
    for u, v in edges:
        if u != v:
            neighbours.setdefault(u, set()).add(v)
            neighbours.setdefault(v, set()).add(u)
    order = sorted(neighbours, key=lambda v: (-len(neighbours[v]), v))
    rank = {v: at for at, v in enumerate(order)}
    rows = [sorted(rank[w] for w in neighbours[v]) for v in order]
    indptr = [0, *np.cumsum([len(row) for row in rows]).tolist()]
    return {
        "indptr": indptr,
        "indices": [w for row in rows for w in row],
        "split": [indptr[v] + sum(w < v for w in row) for v, row in enumerate(rows)],
        "original_ids": order,
        "labels": None if labels is None else [labels[v] for v in order],
        "edge_labels": [edge_label(order[v], order[w]) for v, row in enumerate(rows) for w in row]
        if edge_label
        else None,
    }


def arrays_of(graph: Graph) -> dict[str, Any]:
    return {name: None if (array := getattr(graph, name)) is None else array.tolist() for name in ARRAYS}


near = st.integers(0, 60)
spread = st.integers(0, 12).map(lambda at: at * 10**8)
far = st.integers(2**32 - 3, 2**32 + 3) | st.integers(2**63 - 8, 2**63 - 1)
signed = st.integers(-6, 3) | st.integers(-(2**63), -(2**63) + 4) | st.integers(2**32 - 3, 2**32 + 3)
unsigned = st.integers(0, 5) | st.integers(2**63 - 4, 2**63 + 4) | st.integers(2**64 - 5, 2**64 - 1)
vertices = st.sampled_from([near, near | spread, near | spread | far, near | signed, signed, unsigned])
edge_lists = vertices.flatmap(lambda ids: st.lists(st.tuples(ids, ids), min_size=1, max_size=300))
stars = st.lists(st.tuples(st.just(7), st.integers(0, 400)), min_size=1, max_size=300)


@settings(deadline=None, max_examples=60)
@given(
    (edge_lists | stars).filter(lambda edges: any(u != v for u, v in edges)),
    st.sampled_from([0, 3_000, 30_000, 1 << 22]),
    st.integers(1, 100),
    st.booleans(),
    st.booleans(),
)
@example([(0, 1), (2**63, 2**63)], 0, 1, True, False)  # an id of a loop alone
def test_every_budget_builds_the_naive_graph(
    tmp_path_factory: pytest.TempPathFactory, edges: Edges, spare: int, cut: int, labelled: bool, edge_labelled: bool
) -> None:
    labels = {v: v % 3 for edge in edges for v in edge} if labelled else None
    edge_labels = [(u + v) % 5 for u, v in edges] if edge_labelled else None
    expected = naive(edges, labels, (lambda u, v: (u + v) % 5) if edge_labelled else None)
    folder = tmp_path_factory.mktemp("build")
    size = 64 * len(expected["original_ids"]) + 12 * len(expected["indices"])
    # Matching labels takes 32 bytes for each label of a block, and there is one block.
    budgets = make_budgets(8_000 + spare + size + 40 * len(labels or ()))
    with SpillFolder(folder) as spill:
        graph = build_in_memory(stream(edges, cut, labels, edge_labels), budgets.at(spill))
        assert arrays_of(graph) == expected
        top = max(max(edge) for edge in edges if edge[0] != edge[1])
        assert graph.id_type == (pa.uint64() if top >= 2**63 else pa.int64())
        assert budgets.host.used == graph.nbytes
        assert budgets.disk.used == 0

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "CHUNK_BYTES", 128)
            budgets = make_budgets(8_000 + spare + size + 40 * len(labels or ()))
            stats = build_store(stream(edges, cut, labels, edge_labels), folder / "store", budgets.at(spill))
        assert budgets.host.used == budgets.disk.used == 0
        opened = open_store(folder / "store")
        assert arrays_of(opened) == expected
        assert (opened.stats, opened.content_hash) == (graph.stats, graph.content_hash)
        assert stats == graph.stats
    assert [path.name for path in folder.iterdir()] == ["store"]


def files_of(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["rmat", "sparse ids", "star"])
def test_a_small_budget_spills_and_makes_the_same_store(tmp_path: Path, kind: str) -> None:
    graph = generate("rmat", scale=12, seed=1)
    rows = np.repeat(graph.original_ids, np.diff(graph.indptr))
    ends = np.column_stack((rows, graph.original_ids[graph.indices]))
    if kind == "sparse ids":
        ends = ends * 1_000_003_000_001
    if kind == "star":
        ends = np.column_stack((np.full(60_000, 5), np.arange(60_000)))
    edges = [tuple(pair) for pair in ends.tolist()]
    with SpillFolder(tmp_path / "spill") as spill, pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "CHUNK_BYTES", 1 << 14)
        budgets = make_budgets(1 << 28)
        build_store(stream(edges, 5000), tmp_path / "large", budgets.at(spill))
        assert budgets.disk.peak == 0
        budgets = make_budgets(700_000)
        build_store(stream(edges, 5000), tmp_path / "small", budgets.at(spill))
        assert budgets.disk.peak > 0
        assert budgets.host.peak <= budgets.host.limit
        assert budgets.host.used == budgets.disk.used == 0
    assert files_of(tmp_path / "small") == files_of(tmp_path / "large")
    assert not (tmp_path / "spill").exists()


def test_tables_of_ranks_in_many_blocks(tmp_path: Path) -> None:
    edges = [(at, at + 1) for at in range(30_000)]
    with SpillFolder(tmp_path) as spill, pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "CHUNK_BYTES", 4096)
        budgets = make_budgets(100_000)  # a table of all ranks has 120 KB
        build_store(stream(edges, 1000), tmp_path / "store", budgets.at(spill))
        assert budgets.host.peak <= budgets.host.limit
    assert arrays_of(open_store(tmp_path / "store")) == naive(edges, None, None)


def test_a_graph_that_does_not_fit_is_refused_with_the_option(tmp_path: Path) -> None:
    edges = [(at, at + 1) for at in range(30_000)]
    budgets = make_budgets(300_000)
    with SpillFolder(tmp_path) as spill, pytest.raises(BudgetExceeded, match=r"the graph.* raise memory\.host"):
        build_in_memory(stream(edges, 1000), budgets.at(spill))
    assert budgets.host.used == budgets.disk.used == 0
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_does_not_fit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    generate_store("rmat", tmp_path / "store", seed=1, scale=10)
    host = MemoryBudget("memory.host", 50_000)
    with pytest.raises(InputError, match=r"store: no room for the graph .* raise memory\.host"):
        open_store(tmp_path / "store", host)
    host = MemoryBudget("memory.host", 10_000_000)
    graph = open_store(tmp_path / "store", host)
    assert host.used == graph.nbytes


@pytest.mark.parametrize("ids", [(1, 2), (2**40, 2**50)])
@pytest.mark.parametrize("host", [20_000, 1 << 24])
def test_two_labels_of_an_edge_name_the_edge(tmp_path: Path, ids: tuple[int, int], host: int) -> None:
    u, v = ids
    edges = [(u, v), *((10, at) for at in range(11, 500)), (v, u)]
    labels = [3, *([0] * 489), 4]
    with SpillFolder(tmp_path) as spill, pytest.raises(InputError) as caught:
        build_in_memory(stream(edges, 7, None, labels), make_budgets(host).at(spill))
    assert f"edge {u}-{v} is given twice with different labels (3 and 4)" in str(caught.value)


@pytest.mark.slow
@each_case("once", [False, True])
@each_case("place", range(0, 90, 5))
def test_a_repeated_edge_is_noticed_wherever_it_stands(tmp_path: Path, place: int, once: bool) -> None:
    """Sorted edges come in blocks of a few: the two may be in one, or in neighbours."""
    edges = [(10, at) for at in range(11, 500)]
    labels = [at % 3 for at, _ in enumerate(edges)]
    for again in range(place, place + 5):
        raw = stream([*edges, edges[again][::-1]], 7, None, [*labels, labels[again] + (0 if once else 1)])
        says = f"edge 10-{again + 11} is given twice with different labels"
        if once:
            raw.repeated = lambda u, v: InputError(f"edge {u}-{v} is there again")
            says = f"edge 10-{again + 11} is there again"
        with SpillFolder(tmp_path) as spill, pytest.raises(InputError, match=says):
            build_in_memory(raw, make_budgets(20_000).at(spill))


def test_ingest_equals_load(tmp_path: Path) -> None:
    text = tmp_path / "edges.txt"
    text.write_text("".join(f"{at * 7 % 1000} {at * 11 % 997}\n" for at in range(20_000)))
    (tmp_path / "labels.txt").write_text("".join(f"{at} {at % 5}\n" for at in range(1000)))
    phases: list[str] = []
    notes: list[str] = []

    class Phases:
        def phase(self, name: str, total: int | None, unit: str) -> None:
            phases.append(name)

        def advance(self, n: int) -> None:
            assert n >= 0

        def note(self, text: str) -> None:
            notes.append(text)

    with SpillFolder(tmp_path / "spill") as spill:
        stats = ingest(
            text,
            tmp_path / "store",
            tmp_path / "labels.txt",
            resources=make_budgets(4_000_000).at(spill),
            observer=Phases(),
        )
    loaded = load_graph(text, tmp_path / "labels.txt")
    opened = load_graph(tmp_path / "store")
    assert opened.content_hash == loaded.content_hash
    assert opened.stats == loaded.stats == stats
    assert notes == [f"{text}: {'; '.join(note.text for note in loaded.notes)}"]
    assert opened.notes == loaded.notes
    assert phases == ["reading edges.txt", "ranking the vertices", "sorting the edges", "writing the graph"]
    with pytest.raises(InputError, match="is a graph store already"):
        ingest(tmp_path / "store", tmp_path / "copy")


def test_a_bad_line_leaves_neither_store_nor_scratch(tmp_path: Path) -> None:
    text = tmp_path / "edges.txt"
    text.write_text("".join(f"{at} {at + 1}\n" for at in range(50_000)) + "1 x\n")
    with SpillFolder(tmp_path / "spill") as spill, pytest.raises(InputError, match="line 50001"):
        ingest(text, tmp_path / "store", resources=make_budgets(1_000_000).at(spill))
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]


@pytest.mark.parametrize("kind", ["rmat", "erdos-renyi", "barabasi-albert"])
def test_a_generated_store_is_the_generated_graph(tmp_path: Path, kind: str) -> None:
    parameters = {
        "rmat": {"scale": 11},
        "erdos-renyi": {"vertices": 500, "edges": 4000},
        "barabasi-albert": {"vertices": 500, "edges_per_vertex": 5},
    }[kind]
    budgets = make_budgets(6_000_000)
    with SpillFolder(tmp_path / "spill") as spill, pytest.MonkeyPatch.context() as patch:
        patch.setattr("longwall.storage.generators.random_edges._PIECE", 1 << 10)
        generate_store(kind, tmp_path / "store", seed=3, num_labels=4, resources=budgets.at(spill), **parameters)
    assert budgets.host.used == 0
    graph = generate(kind, seed=3, num_labels=4, **parameters)
    assert open_store(tmp_path / "store").content_hash == graph.content_hash
    with pytest.raises(BudgetExceeded, match=r"raise memory\.host"):
        generate(kind, seed=3, resources=make_budgets(10_000).at(spill), **parameters)


def test_statistics_equal_those_of_a_naive_count() -> None:
    graph = generate("rmat", scale=9, edge_factor=8, seed=3)
    degrees = np.diff(graph.indptr)
    stats = graph.stats
    nearest = np.percentile(degrees, [50, 90, 99, 100], method="nearest").astype(int).tolist()
    assert list(stats.degree_percentiles.values()) == pytest.approx(nearest, abs=1)
    assert stats.max_out_degree == (graph.split - graph.indptr[:-1]).max()
    rows = [set(graph.indices[a:b].tolist()) for a, b in zip(graph.indptr, graph.indptr[1:], strict=False)]
    wedges = sum(d * (d - 1) for d in degrees.tolist())
    closed = sum(len(rows[v] & rows[w]) for v in range(len(rows)) for w in rows[v])
    assert stats.closed_wedge_fraction == pytest.approx(closed / wedges, abs=0.02)


@pytest.mark.slow
def test_peak_memory_stays_under_the_budget_and_a_constant(tmp_path: Path) -> None:
    """The constant is what ingesting a tiny graph takes, and 16 MiB."""
    program = (
        "import json, resource, sys\n"
        "from longwall.pipeline.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))\n"
    )
    (tmp_path / "tiny.txt").write_text("1 2\n")
    ends = np.random.Generator(np.random.Philox(1)).integers(0, 100_000, (500_000, 2))
    (tmp_path / "large.txt").write_text("\n".join(f"{u} {v}" for u, v in ends.tolist()))
    peaks = {}
    for name in ("tiny", "large"):
        command = [sys.executable, "-c", program, "ingest", f"{name}.txt", f"{name}.zarr", "--memory", "2MiB", "-q"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=dict(os.environ))
        peaks[name] = json.loads(done.stdout.splitlines()[-1])
    assert peaks["large"] - peaks["tiny"] < (2 + 16) * 2**20
    assert build_graph(ends[:, 0], ends[:, 1]).content_hash == open_store(tmp_path / "large.zarr").content_hash


class BadDisk:
    """Stands in for `os.pwrite`, and flips a bit of one of the writes."""

    def __init__(self, bad: int = -1, bit: int = 0) -> None:
        self._bad, self._bit = bad, bit
        self._write = os.pwrite
        self.writes = 0

    def __call__(self, file: int, data: memoryview, offset: int) -> int:
        written = bytearray(data)
        if self.writes == self._bad:
            written[self._bit // 8 % len(written)] ^= 1 << self._bit % 8
        self.writes += 1
        return self._write(file, written, offset)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["near ids", "sparse ids", "wide ids", "labelled"])
@pytest.mark.parametrize("to", ["memory", "store"])
def test_no_graph_is_made_of_damaged_scratch_files(tmp_path: Path, kind: str, to: str) -> None:
    random = np.random.Generator(np.random.Philox(5))
    edges = [tuple(pair) for pair in random.integers(0, 900, (4000, 2)).tolist()]
    labels = edge_labels = None
    if kind in ("sparse ids", "wide ids"):
        factor = 10**6 if kind == "sparse ids" else 10**12
        edges = [(u * factor, v * factor) for u, v in edges]
    if kind == "labelled":
        labels = {vertex: vertex % 3 for vertex in range(900)}
        edge_labels = [(u + v) % 5 for u, v in edges]
    host = (110_000 if to == "memory" else 40_000) + (60_000 if labels else 0)

    def make(disk: BadDisk) -> Graph:
        budgets, raw = make_budgets(host), stream(edges, 500, labels, edge_labels)
        with SpillFolder(tmp_path / "spill") as spill, pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "CHUNK_BYTES", 128)
            patch.setattr("os.pwrite", disk)
            if to == "memory":
                return build_in_memory(raw, budgets.at(spill))
            build_store(raw, tmp_path / "store", budgets.at(spill))
        return open_store(tmp_path / "store")

    good = BadDisk()
    assert arrays_of(make(good)) == naive(edges, labels, (lambda u, v: (u + v) % 5) if edge_labels else None)
    shutil.rmtree(tmp_path / "store", ignore_errors=True)
    assert good.writes > 5
    for bit in random.integers(2**30, size=16).tolist():
        with pytest.raises((RunError, InputError)):
            make(BadDisk(bit % good.writes, bit))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["ingest", "edges.txt", "store", "--memory", "100KiB"], 2, r"--memory = 100 KiB has .* raise --memory$"),
        (["ingest", "edges.txt", "store", "--disk", "10KiB", "--memory", "6MiB"], 2, r": raise --disk$"),
        (
            ["ingest", "edges.txt", "store", "--spill", "edges.txt", "--memory", "6MiB"],
            2,
            r"choose another --spill, or raise --memory$",
        ),
        (["ingest", "edges.txt", "store", "--disk", "much"], 2, r'--disk: "much" is not a size'),
        (["generate", "rmat", "store", "--scale", "18", "--memory", "1MiB"], 2, r"raise --memory$"),
    ],
)
def test_the_command_line_names_its_own_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.txt").write_text("".join(f"{at} {at * 7 % 200_001}\n" for at in range(200_000)))
    done = CliRunner().invoke(app, [*words, "-q"])
    assert done.exit_code == code
    assert re.search(says, done.stderr.strip())
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]


def test_functions_without_an_option_say_what_else_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = 10_000

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("longwall.storage.memory.resources.default_host_bytes", lambda: 1 << 20)
    monkeypatch.setattr("longwall.storage.memory.resources.default_disk_bytes", lambda spill: disk)
    with pytest.raises(
        BudgetExceeded, match=r"the share of free memory = .*: free memory, or use a machine with more$"
    ):
        generate("erdos-renyi", vertices=1000, edges=200_000, seed=1)
    with pytest.raises(
        BudgetExceeded, match=r"the share of free disk space = .*: free space there, or work in another"
    ):
        generate("barabasi-albert", vertices=5000, edges_per_vertex=4, seed=1)
    disk = 10_000_000
    Path("spill").write_text("")
    with pytest.raises(RunError, match=r"spill: nothing can be spilled .*: work in another folder, or free memory$"):
        generate("barabasi-albert", vertices=5000, edges_per_vertex=4, seed=1)
