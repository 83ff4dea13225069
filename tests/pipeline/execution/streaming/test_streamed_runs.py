"""Runs over a graph that stays in its store answer as those that have it in memory, inside a smaller budget."""

from __future__ import annotations

import json
import random
import shutil
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from breakable import CONSTANTS
from explained import explain
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kill import Fault, check_whole, finish, left_in
from run_configs import run_config
from stored import short_chunks

import longwall
from longwall.pipeline.execution.streaming import stream_phase
from longwall.pipeline.execution.streaming.stream_worker import StreamWorker
from longwall.pipeline.phases import clique_tables
from longwall.pipeline.run_store import commit_log
from longwall.storage.errors import InputError, RunError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import open_store
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.streaming.graph_parts import GraphParts
from longwall.storage.streaming.list_file import ListFile

RMAT = {"kind": "rmat", "scale": 10, "edge_factor": 24, "seed": 3}
BUDGET = 100_000  # bytes: less than the graph takes, and enough for its parts
WORKLOADS = {
    "triangles": {"kind": "triangles"},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "4-cliques": {"kind": "cliques", "k": 4},
    "5-cliques": {"kind": "match", "pattern": "clique-5"},
    "3-motifs": {"kind": "motifs", "k": 3},
    "3-motifs by counting": {"kind": "motifs", "k": 3, "method": "counting"},
    "paths of 4": {"kind": "match", "pattern": "path-4"},
    "many paths of 4": {"kind": "match", "pattern": "path-4", "limit": 10**12},
    "tailed triangles": {"kind": "match", "pattern": "tailed-triangle"},
    "7-cliques": {"kind": "cliques", "k": 7},
    "cliques of every size": {"kind": "cliques", "k": "all"},
    "4-cliques of vertices": {"kind": "cliques", "k": 4, "output": "vertices"},
}
TWO = ("triangles", "4-cliques", "triangles of vertices", "tailed triangles", "3-motifs", "paths of 4")  # workers

MOTIFS = {name for name, workload in WORKLOADS.items() if workload["kind"] == "motifs"}


class Place:
    """A store of a graph in short chunks, and runs over it."""

    def __init__(self, folder: Path, graph: Graph):
        self.folder, self.graph = folder, graph
        self.store, self.spill = folder / "graph", folder / "spill"
        graph.save(self.store)

    def config(self, workload: str, engine: str, host: int, name: str) -> dict[str, Any]:
        return run_config(
            self.folder,
            {"path": self.store},
            WORKLOADS[workload],
            memory={"host": host, "spill": self.spill},
            engine={"kind": engine, "threads": 1 + (workload in TWO)} if engine == "cpu" else {"kind": engine},
            run={"name": name, "overwrite": True},
        )

    def answer(self, workload: str, engine: str, host: int, name: str = "run") -> tuple[Any, Any, Any]:
        """Return the counts, the rows of the tables, and what the manifest says of memory."""
        result = longwall.run(self.config(workload, engine, host, name))
        assert left_in(self.spill) == []
        tables = sorted(path.stem for path in (result.path / "results").glob("*.parquet"))
        rows = {table: result.table(table).to_pylist() for table in tables}
        for row in rows["counts"]:
            row.pop("method")  # which the memory may decide
        counts = result.count if workload not in MOTIFS else [one.count for one in result.patterns]
        return counts, rows, json.loads((result.path / "manifest.json").read_text())["memory"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with short_chunks(1024):
        yield Place(tmp_path_factory.mktemp("streamed"), generate(**RMAT))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("workload", ["triangles", "4-cliques"])
def test_what_a_budget_has_room_for_a_larger_one_has(place: Place, workload: str) -> None:
    expected = place.answer(workload, "cpu", 1 << 28)[0]
    ways = []
    for host in range(12_000, 100_000, 8_000):
        with suppress(InputError):
            found, _, memory = place.answer(workload, "cpu", host)
            assert found == expected
            ways.append("in files" if "files" in memory else "in its store")
            continue
        ways.append("refused")
    assert ways == sorted(ways, key=["refused", "in files", "in its store"].index)
    assert {"in files", "in its store"} <= set(ways)


@pytest.mark.parametrize("workload", ["triangles of vertices", "tailed triangles"])
def test_parts_are_shorter_where_many_threads_need_workspaces(
    place: Place, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arenas: list[weakref.ref[Any]] = []
    resize = GraphParts.resize

    def watched(parts: GraphParts, size: int) -> None:
        before = weakref.ref(parts._arena) if hasattr(parts, "_arena") else None
        resize(parts, size)
        if before is not None:
            arenas.append(before)
            until = time.monotonic() + 10  # a thread that is done with it may have to return yet
            while before() is not None and time.monotonic() < until:
                time.sleep(0.001)
            assert before() is None, "the memory of longer parts stays beside that of shorter ones"

    monkeypatch.setattr(GraphParts, "resize", watched)
    expected = place.answer(workload, "cpu", 1 << 28)[:2]
    config = place.config(workload, "cpu", BUDGET, "threads")
    for threads in (4, 8):
        result = longwall.run(config | {"engine": {"kind": "cpu", "threads": threads}})
        assert result.count == expected[0]
    assert arenas


@pytest.mark.parametrize("workload", ["paths of 4", "tailed triangles"])
def test_hubs_are_not_looked_for_in_a_store(place: Place, workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.pipeline.planning.rewrites.hub_removal.worth_making", lambda *_: True)
    parts: list[GraphParts] = []
    made = GraphParts.__init__
    monkeypatch.setattr(GraphParts, "__init__", lambda self, *given: (parts.append(self), made(self, *given))[1])
    budget = BUDGET + 8 * place.graph.num_vertices
    assert place.answer(workload, "cpu", budget)[0] == place.answer(workload, "cpu", 1 << 26)[0]
    assert len(parts) == 1


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    "workload", [one if one in TWO else pytest.param(one, marks=pytest.mark.slow) for one in WORKLOADS]
)
def test_answers_are_those_with_all_memory(
    place: Place, engine_kind: str, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = BUDGET + (8 * place.graph.num_vertices if "vertices" in workload else 0)
    monkeypatch.setattr(clique_tables, "_AT_ONCE", 16)
    parts: list[GraphParts] = []
    made = GraphParts.__init__

    def watched(self: GraphParts, *arguments: Any) -> None:
        made(self, *arguments)
        parts.append(self)

    monkeypatch.setattr(GraphParts, "__init__", watched)
    count, rows, _ = place.answer(workload, "cpu", 1 << 26)
    assert not parts
    found, streamed, memory = place.answer(workload, engine_kind, budget)
    assert parts
    assert sum(one.bytes_read for one in parts) > 2 * 4 * place.graph.num_edges
    assert (found, streamed) == (count, rows)
    assert memory["host"]["peak"] <= budget < place.graph.nbytes
    assert memory["disk"]["peak"] >= 4 * place.graph.num_edges


@pytest.mark.gpu
@pytest.mark.parametrize("workload", ["triangles of vertices", "tailed triangles"])
def test_what_a_device_finds_in_a_part_is_reserved(
    place: Place, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserved, sizes, found = list[int](), list[int](), list[int]()
    reserve, made, count_part = MemoryBudget.reserve, GraphParts.__init__, StreamWorker._count_part

    def reserving(self: MemoryBudget, size: int, what: str) -> Any:
        if what == "a part of the graph, and what is found in it":
            reserved.append(size)
        return reserve(self, size, what)

    def making(self: GraphParts, graph: Any, lists: Any, size: int, *more: Any) -> None:
        sizes.append(size)
        made(self, graph, lists, size, *more)

    def counting(self: StreamWorker, part: Any) -> None:
        found.append(8 * part.graph.num_vertices)
        count_part(self, part)

    monkeypatch.setattr(MemoryBudget, "reserve", reserving)
    monkeypatch.setattr(GraphParts, "__init__", making)
    monkeypatch.setattr(StreamWorker, "_count_part", counting)
    budget = BUDGET + 8 * place.graph.num_vertices
    assert place.answer(workload, "cuda", budget)[0] == place.answer(workload, "cpu", 1 << 26)[0]
    assert len(found) > 1
    assert len(reserved) == len(sizes) == 1
    assert max(found) <= reserved[0] - sizes[0]


def wedges(pairs: set[tuple[int, int]]) -> int:
    """Pairs of edges at a vertex, one by one."""
    whole = nx.Graph(pairs)
    return sum(1 for v in whole for _ in combinations(whole[v], 2))


def paths_of_four(pairs: set[tuple[int, int]]) -> int:
    """Paths by their middle edge, one by one."""
    whole = nx.Graph(pairs)
    return sum(1 for u, v in whole.edges for a in whole[u] for b in whole[v] if len({a, u, v, b}) == 4)


def tailed_triangles(pairs: set[tuple[int, int]]) -> int:
    """Triangles by their vertex with the tail, one by one."""
    whole = nx.Graph(pairs)
    closed = ((v, u, w) for v in whole for u, w in combinations(whole[v], 2) if whole.has_edge(u, w))
    return sum(1 for v, u, w in closed for tail in whole[v] if tail not in (u, w))


@pytest.mark.slow
@settings(deadline=None, max_examples=5, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1), st.integers(60, 150), st.sampled_from([400, 700]))
def test_counts_of_random_graphs(tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, m: int) -> None:
    ends = np.random.default_rng(seed).integers(0, n, (m, 2)).tolist()
    pairs = {(min(pair), max(pair)) for pair in ends if pair[0] != pair[1]}
    cliques = Counter(len(one) for one in nx.enumerate_all_cliques(nx.Graph(pairs)))
    of_vertices = nx.triangles(nx.Graph(pairs))
    with short_chunks(256), pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_phase, "_PART_SHARE", 0.3)
        graph = longwall.graph(np.array(sorted(pairs), np.int64))
        place = Place(tmp_path_factory.mktemp("random"), graph)
        budget = graph.nbytes - 1
        assert place.answer("triangles", "cpu", budget)[0] == cliques[3]
        assert place.answer("4-cliques", "cpu", budget)[0] == cliques[4]
        rows = place.answer("triangles of vertices", "cpu", budget)[1]["vertices"]
        assert {row["vertex"]: row["triangles"] for row in rows} == of_vertices
        assert place.answer("3-motifs", "cpu", budget)[0] == [wedges(pairs) - 3 * cliques[3], cliques[3]]
        assert place.answer("paths of 4", "cpu", budget)[0] == paths_of_four(pairs)
        assert place.answer("tailed triangles", "cpu", budget)[0] == tailed_triangles(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["4-cliques", "paths of 4", "tailed triangles"])
def test_no_budget_is_too_small_for_a_message(place: Place, workload: str) -> None:
    counts, count = set(), place.answer(workload, "cpu", 1 << 26)[0]
    for budget in (1_000, 8_300, 12_000, 20_000, 30_000, 50_000, 90_000):
        try:
            found, _, memory = place.answer(workload, "cpu", budget)
        except (InputError, RunError) as error:
            (line,) = str(error).splitlines()
            assert "memory.host" in line
        else:
            counts.add(found)
            assert memory["host"]["peak"] <= budget
    assert counts == {count}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("workload", ["4-cliques", "paths of 4", "tailed triangles", "3-motifs by counting"])
@pytest.mark.parametrize("first", [BUDGET, 1 << 26])
def test_a_run_goes_on_with_any_memory(
    place: Place, first: int, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that began in memory goes on from the store, and the other way round."""
    monkeypatch.setattr(commit_log, "COMMIT_SECONDS", 0.0)
    count, name = place.answer(workload, "cpu", 1 << 26)[0], f"{'-'.join(workload.split())}-resumed-{first}"
    config, commit, commits = (
        place.config(workload, "cpu", first, name),
        commit_log.PhaseRecord.commit,
        [],
    )

    def stop(self: Any, ranges: Any, *arguments: Any, **options: Any) -> None:
        commit(self, ranges, *arguments, **options)
        commits.append(ranges)
        if len(commits) == 1:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_log.PhaseRecord, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            longwall.run(config)
    other = BUDGET if first != BUDGET else 1 << 26
    resumed = longwall.resume(place.folder / "runs" / name, overrides=[f"memory.host={other}"])
    assert [one.count for one in resumed.patterns] == (count if isinstance(count, list) else [count])


def test_damaged_lists_end_the_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    count, write, damaged = place.answer("triangles", "cpu", BUDGET)[0], ListFile.write, []

    def flip(self: ListFile, segment: int, values: Any) -> None:
        write(self, segment, values)
        if segment == 2:
            with self._path.open("r+b") as file:
                file.seek(4 * int(self.bounds[2]))
                file.write(bytes([int(values[0]) & 255 ^ 1]))
            damaged.append(segment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListFile, "write", flip)
        with pytest.raises(RunError, match=r"it holds something else than what was written.*go on with: "):
            place.answer("triangles", "cpu", BUDGET, "damaged")
    assert damaged == [2]
    assert left_in(place.spill) == []
    assert longwall.resume(place.folder / "runs" / "damaged").count == count


def test_the_store_is_left_as_it_was(place: Place) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.store.rglob("*")}
    place.answer("triangles", "cpu", BUDGET)
    assert {path: path.stat().st_mtime_ns for path in place.store.rglob("*")} == before
    assert open_store(place.store).num_edges == place.graph.num_edges


CHUNKS = {"longwall.storage.arrays.layout:CHUNK_BYTES": 1024, "longwall.storage.arrays.array_hash:SEGMENT_BYTES": 1024}
KILLED = """
[graph]
path = "graph"
[workload]
kind = "{kind}"
{more}
[memory]
host = {host}
spill = "spill"
[engine]
kind = "cpu"
threads = 2
[run]
name = "{name}"
report = false
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "more"), [("cliques", "k = 4"), ("triangles", 'output = "vertices"')])
def test_a_killed_run_goes_on(place: Place, launch: Any, kind: str, more: str) -> None:
    """Kill at events of the run, up to thrice in a row, until eight have struck; nothing is left of the lists."""
    draw, host = random.Random(kind), BUDGET + 8 * place.graph.num_vertices
    name = f"killed-{kind}"
    (place.folder / f"{name}.toml").write_text(KILLED.format(kind=kind, more=more, host=host, name=name))
    options = {"constants": CONSTANTS | CHUNKS}
    whole = launch("run", place.folder / f"{name}.toml", "--quiet", folder=place.folder, **options)
    assert whole.code == 0, whole.err
    right = longwall.run(
        place.config("4-cliques" if more == "k = 4" else "triangles of vertices", "cpu", 1 << 26, "right")
    )
    run, struck = place.folder / "runs" / name, 0
    while struck < 8:
        shutil.rmtree(run)
        faults = [Fault("kill", event=draw.randint(1, whole.events)) for _ in range(3)]
        struck += finish(launch, place.folder, name, faults, **options)
        check_whole(run, place.spill)
        assert json.loads((run / "manifest.json").read_text())["count"] == right.count
        if kind == "triangles":
            assert pq.read_table(run / "results" / "vertices.parquet").equals(pa.table(right.table("vertices")))


def test_explain_says_what_is_read(place: Place) -> None:
    before = sorted(place.folder.rglob("*"))
    text = explain(place.config("4-cliques", "cpu", BUDGET, "explained"), methods=True)
    graph, lists = place.graph.nbytes / 1024, 4 * place.graph.num_edges / 1024
    assert f"graph in     its store: it takes {graph:.0f} KiB, and memory.host is 97.7 KiB" in text
    (taken,) = (line.split() for line in text.splitlines() if line.endswith(" taken"))
    assert (taken[0], taken[2]) == ("cliques", "about"), "nothing is sampled of a graph in its store"
    (line,) = (line for line in text.splitlines() if line.startswith("streaming "))
    assert f"once from the store, of which {lists:.1f} KiB go to memory.spill; from there about " in line
    assert line.endswith(" ranges of roots")
    assert sorted(place.folder.rglob("*")) == before
