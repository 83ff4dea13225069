"""Runs over graphs that memory.host does not hold find what they find in memory, inside their budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explained import explain
from kill import left_in
from run_configs import run_config
from stored import short_chunks

import longwall
from longwall.pipeline import inputs
from longwall.storage.errors import InputError, RunError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.sizes import round_size
from longwall.storage.observer import NullObserver

PLENTY = 1 << 28
SHARE = 0.7  # of the bytes of the graph, that the budget has
CUBES = "0-1,1-2,2-3,3-0,0-2,1-3,3-4"

QUICK = {
    "diamonds": {"kind": "match", "pattern": "diamond"},
    "paths": {"kind": "match", "pattern": "path-4"},
    "3-motifs": {"kind": "motifs", "k": 3},
    "triangles of edges": {"kind": "triangles", "output": "edges"},
    "listed triangles": {"kind": "triangles", "output": "embeddings"},
    "maximal cliques": {"kind": "maximal-cliques"},
    "labelled paths": {"kind": "match", "pattern": "path-3", "pattern_labels": [0, 1, 0]},
}
SLOW = {
    "4-cycles": {"kind": "match", "pattern": "cycle-4"},
    "5-cycles": {"kind": "match", "pattern": "cycle-5"},
    "stars": {"kind": "match", "pattern": "star-4"},
    "tailed triangles": {"kind": "match", "pattern": "tailed-triangle"},
    "houses": {"kind": "match", "pattern": "house"},
    "4-motifs": {"kind": "motifs", "k": 4},
    "induced diamonds": {"kind": "match", "pattern": "diamond", "induced": True},
    "near cliques": {"kind": "match", "pattern": CUBES},
    "listed 4-cliques": {"kind": "cliques", "k": 4, "output": "embeddings"},
    "motifs of vertices": {"kind": "motifs", "k": 3, "output": "vertices"},
    "listed maximal cliques": {"kind": "maximal-cliques", "output": "embeddings", "min_size": 4},
    "quasi-cliques": {"kind": "quasi-cliques", "k": 5, "missing": 1},
    "frequent patterns": {"kind": "frequent", "max_edges": 2, "min_support": 20},
    "labelled triangles": {"kind": "match", "pattern": "triangle", "pattern_labels": [0, 1, 2], "output": "embeddings"},
}
LARGE = {"motifs of vertices"}  # what they find

STREAMED = {"paths", "3-motifs", "tailed triangles"}  # from a store
MORE_FILES = {"maximal cliques", "frequent patterns"}  # have their edges in files, too


class Place:
    """A store of a graph in short chunks, and runs over it."""

    def __init__(self, folder: Path, graph: Graph):
        self.folder, self.graph = folder, graph
        self.store, self.spill = folder / "graph", folder / "spill"
        graph.save(self.store)

    def config(self, workload: dict[str, Any], engine: str, host: int, **sections: Any) -> dict[str, Any]:
        chosen = {"kind": engine, "threads": 1} if engine == "cpu" else {"kind": engine}
        run = {"name": "run", "overwrite": True, "report": False}
        memory = {"host": host, "spill": self.spill}
        made = run_config(self.folder, {"path": self.store}, workload, memory=memory, engine=chosen, run=run)
        return made | sections

    def answer(self, *arguments: Any, **sections: Any) -> tuple[Any, dict[str, Any]]:
        """Return what a run finds, and what its manifest says of memory."""
        result = longwall.run(self.config(*arguments, **sections))
        assert left_in(self.spill) == []
        rows: dict[str, Any] = {}
        for path in sorted((result.path / "results").rglob("*.parquet")):
            rows.setdefault(path.stem.partition("-")[0], []).extend(map(str, _rows(path)))
        found = result.count, [one.count for one in result.patterns], {name: sorted(rows[name]) for name in rows}
        return found, json.loads((result.path / "manifest.json").read_text())["memory"]


def _rows(path: Path) -> list[Any]:
    import pyarrow.parquet as pq

    rows = pq.ParquetFile(path).read().to_pylist()
    return [[value for name, value in row.items() if name != "method"] for row in rows]  # which the memory may decide


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with short_chunks(1024):
        yield Place(
            tmp_path_factory.mktemp("files"),
            generate("barabasi-albert", vertices=12000, edges_per_vertex=9, seed=3, num_labels=3),
        )


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("workload", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_answers_are_those_with_all_memory(
    place: Place, engine_kind: str, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if workload in STREAMED:  # as where the graph is no store
        monkeypatch.setattr(inputs, "_streamed", lambda *_: None)
    asked = (QUICK | SLOW)[workload]
    expected, memory = place.answer(asked, "cpu", PLENTY)
    assert "files" not in memory
    budget = place.graph.nbytes - 1 if workload in LARGE else int(SHARE * place.graph.nbytes)
    found, memory = place.answer(asked, engine_kind, budget)
    assert found == expected
    assert memory["files"]["graph"] == place.graph.nbytes
    assert memory["host"]["peak"] <= budget
    beside = 4 * place.graph.num_edges if workload in MORE_FILES and engine_kind == "cpu" else 0
    assert memory["disk"]["peak"] >= place.graph.nbytes + beside


def test_a_disk_without_room_for_the_graph_is_refused_with_all_that_it_takes(place: Place) -> None:
    config = place.config(QUICK["diamonds"], "cpu", int(SHARE * place.graph.nbytes))
    config["memory"]["disk"] = "20KiB"
    needed = f"no room for a file with the graph .{round_size(place.graph.nbytes)}.: memory.disk = 20 KiB"
    with pytest.raises(InputError, match=needed):
        longwall.run(config)


@pytest.mark.parametrize("kind", ["labelled", pytest.param("plain", marks=pytest.mark.slow)])
def test_graphs_that_are_read_or_generated_need_not_fit(tmp_path: Path, kind: str) -> None:
    """Text and generators have no store; what there is of the graph in memory is in files instead."""
    text = tmp_path / "edges.txt"
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 30_000, (150_000, 2))
    np.savetxt(text, np.column_stack([ends, ends.sum(1) % 3]) if kind == "labelled" else ends, "%d")
    sources: list[tuple[str, dict[str, Any]]] = [
        ("1800KiB", {"path": text} | ({"edge_label": 3} if kind == "labelled" else {}))
    ]
    if kind == "plain":
        sources.append(("9MiB", {"generator": {"kind": "rmat", "scale": 17, "edge_factor": 10, "seed": 1}}))
    for small, graph in sources:
        counts, memories = [], []
        for host in ("1GiB", small):
            config = {
                "graph": graph,
                "workload": {"kind": "match", "pattern": "path-3"},
                "memory": {"host": host, "spill": tmp_path / "spill"},
                "engine": {"kind": "cpu", "threads": 1},
                "run": {"directory": tmp_path / "runs", "name": "run", "overwrite": True},
            }
            result = longwall.run(config)
            manifest = json.loads((result.path / "manifest.json").read_text())
            counts.append((result.count, manifest["graph"]["hash"]))
            memories.append(manifest["memory"])
        assert counts[0] == counts[1]
        assert "files" not in memories[0]
        assert memories[1]["files"]["graph"] > memories[1]["host"]["limit"] >= memories[1]["host"]["peak"]
        assert left_in(tmp_path / "spill") == []


def test_explain_says_where_the_graph_is(place: Place) -> None:
    before = sorted(place.folder.rglob("*"))
    text = explain(place.config(QUICK["diamonds"], "cpu", place.graph.nbytes - 1))
    (line,) = (line for line in text.splitlines() if line.startswith("graph in "))
    assert line.startswith("graph in     files in memory.spill, ")
    assert "it does not fit memory.host, so parts of the files are read when they are needed" in line
    assert sorted(place.folder.rglob("*")) == before


def test_the_disk_may_be_too_small(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {"host": place.graph.nbytes - 1, "disk": place.graph.nbytes - 1, "spill": place.spill}
    advice = (
        r"no room for a file with the graph .* memory\.disk = .*: raise memory\.disk; counts of triangles and cliques"
    )
    with pytest.raises(InputError, match=advice):
        longwall.run(place.config(QUICK["diamonds"], "cpu", 0, memory=memory))

    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("longwall.storage.mapping.mapped_arrays._allocate", full)
    with pytest.raises(RunError, match=r"a file with the graph cannot be made \(No space left on device\): free space"):
        longwall.run(place.config(QUICK["diamonds"], "cpu", place.graph.nbytes - 1))
    assert left_in(place.spill) == []


class Stopping(NullObserver):
    """Interrupts a run when a part of its work is done."""

    counting = False

    def phase(self, name: str, total: int | None, unit: str) -> None:
        self.counting = name == "counting"

    def advance(self, amount: int) -> None:
        if self.counting:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_a_run_goes_on_with_any_memory(place: Place) -> None:
    """A run that stopped with the graph in files goes on with it in memory, and the other way round."""
    count = place.answer(SLOW["near cliques"], "cpu", PLENTY)[0][0]
    for first, then in ((place.graph.nbytes - 1, PLENTY), (PLENTY, place.graph.nbytes - 1)):
        run = {"directory": place.folder / "runs", "name": f"stopped-{first}"}
        with pytest.raises(KeyboardInterrupt):
            longwall.run(place.config(SLOW["near cliques"], "cpu", first, run=run), observer=Stopping())
        assert left_in(place.spill) == []
        folder = run["directory"] / run["name"]
        assert longwall.resume(folder, overrides=[f"memory.host={then}"]).count == count


@pytest.mark.gpu
def test_a_graph_that_fits_neither_memory_needs_the_cores(place: Place) -> None:
    """With a little more of either memory, or on the cores, the same run is done."""
    size, count = place.graph.nbytes, place.answer(QUICK["diamonds"], "cpu", PLENTY)[0][0]
    memory = {"host": size // 3, "device": size // 4, "spill": place.spill}
    advice = (
        r"no room for .* memory\.host = .*: raise memory\.host, or memory\.device, "
        r'or start a run with engine\.kind = "cpu"; counts of triangles '
    )
    with pytest.raises(RunError, match=advice):
        longwall.run(
            place.config(QUICK["diamonds"], "cuda", 0, memory=memory, run={"directory": place.folder / "both"})
        )
    run = next((place.folder / "both").iterdir())
    assert longwall.resume(run, overrides=["memory.device=64MiB"]).count == count


@pytest.mark.slow
def test_workers_of_this_machine_map_the_files(place: Place) -> None:
    expected, _ = place.answer(SLOW["4-cycles"], "cpu", PLENTY)
    scheduler = {"kind": "dask", "workers": 2, "threads_per_worker": 1}
    found, memory = place.answer(SLOW["4-cycles"], "cpu", place.graph.nbytes - 1, scheduler=scheduler)
    assert found == expected
    assert memory["files"]["graph"] == place.graph.nbytes
    assert memory["host"]["peak"] < place.graph.nbytes // 4
