"""A device that holds all lists gets each of them once, though the host holds few: the same counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from explained import explain
from kill import left_in
from run_configs import run_config
from stored import short_chunks

import longwall
from longwall.kernels.interface.engine import ShortOfMemory
from longwall.pipeline.execution.streaming import stream_phase
from longwall.pipeline.execution.streaming.whole_worker import WholeWorker
from longwall.storage.errors import RunError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.sizes import round_size
from longwall.storage.streaming.list_file import ListFile

pytestmark = pytest.mark.gpu

HOST = 100_000  # bytes: less than the graph takes
WORKLOADS: dict[str, dict[str, Any]] = {
    "triangles": {"kind": "triangles"},
    "4-cliques": {"kind": "cliques", "k": 4},
    "5-cliques": {"kind": "cliques", "k": 5},
    "3-motifs": {"kind": "motifs", "k": 3},
    "paths of 4": {"kind": "match", "pattern": "path-4"},
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return generate("rmat", scale=10, edge_factor=24, seed=3)


@pytest.fixture(scope="module")
def store(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with short_chunks(1024):
        path = tmp_path_factory.mktemp("whole") / "graph"
        graph.save(path)
        yield path


@pytest.fixture(autouse=True)
def lists_have_room(lists_have_no_room: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_phase, "_LISTS_SHARE", 0.5)


def config(store: Path, folder: Path, name: str, engine: str, **memory: Any) -> dict[str, Any]:
    run = {"name": "run", "overwrite": True}
    return run_config(folder, {"path": store}, WORKLOADS[name], memory=memory, engine={"kind": engine}, run=run)


def found(result: longwall.Result) -> Any:
    return result.count if result.count is not None else [(one.pattern, one.count) for one in result.patterns]


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_all_lists_are_read_once(store: Path, graph: Graph, name: str, tmp_path: Path) -> None:
    expected = found(longwall.run(config(store, tmp_path, name, "cpu", host=1 << 26)))
    streamed = config(store, tmp_path, name, "cuda", host=HOST)
    result = longwall.run(streamed)
    assert found(result) == expected
    assert left_in(tmp_path / "spill") == []
    memory = json.loads((result.path / "manifest.json").read_text())["memory"]
    # Paths have the degrees of both ends of all edges besides.
    assert memory["store"]["lists_read"] == 4 * graph.num_edges * (2 if name == "paths of 4" else 1)
    assert memory["host"]["peak"] <= HOST
    if name == "triangles":
        assert f"about {round_size(4 * graph.num_edges)} in 1 ranges" in explain(streamed)


def test_a_device_that_is_too_small_gets_parts(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[WholeWorker] = []
    plain = WholeWorker.__init__
    monkeypatch.setattr(WholeWorker, "__init__", lambda self, *given: (made.append(self), plain(self, *given))[1])
    expected = found(longwall.run(config(store, tmp_path, "triangles", "cpu", host=1 << 26)))
    for device in (130_000, 1 << 26):
        assert found(longwall.run(config(store, tmp_path, "triangles", "cuda", host=HOST, device=device))) == expected
        assert bool(made) == (device > 130_000)


def test_parts_of_a_range_are_counted_where_memory_is_short(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, short = WholeWorker._add, 0

    def add(self: WholeWorker, first: int, size: int) -> int:
        nonlocal short
        if size > 500:
            short += 1
            raise ShortOfMemory("device", 1)
        return plain(self, first, size)

    monkeypatch.setattr(WholeWorker, "_add", add)
    expected = found(longwall.run(config(store, tmp_path, "4-cliques", "cpu", host=1 << 26)))
    assert found(longwall.run(config(store, tmp_path, "4-cliques", "cuda", host=HOST))) == expected
    assert short


def test_a_damaged_list_ends_the_run(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ListFile.write
    monkeypatch.setattr(
        ListFile, "write", lambda self, segment, values: (plain(self, segment, values), self._checksums.__iadd__(1))
    )
    with pytest.raises(RunError, match="something else than what was written"):
        longwall.run(config(store, tmp_path, "triangles", "cuda", host=HOST))
