"""Tables of ranges stay on a device while lists pass: the same counts, and far less is read than part after part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from budgets import make_budgets
from explained import explain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kill import left_in
from run_configs import run_config
from stored import lists_of, short_chunks, store_of

import longwall
from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.interface.engine import ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import table_words
from longwall.kernels.interface.workspaces import Targets
from longwall.pipeline.execution.streaming import stream_phase, tabled_worker
from longwall.pipeline.execution.streaming.part_sums import sums_of
from longwall.pipeline.execution.streaming.tabled_worker import TabledWorker
from longwall.pipeline.run_store import commit_log
from longwall.stages.range_counting import CountCliques
from longwall.storage.generators.kinds import generate
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.streaming.graph_parts import GraphParts

HOST, DEVICE = 45_000, 250_000  # bytes: less than the graph takes, and enough for its tables
LEAST = 3


class Rows:
    """Counts 4-cliques in rows that are made while lists come in turn, one by one."""

    workspace_bytes = 0
    least_degree = LEAST

    def __init__(self, graph: GraphArrays, capacity: int, fails: Callable[[], bool]):
        self.table_capacity, self._graph, self._fails = capacity, graph, fails

    def count(self, first: int, last: int, targets: Iterable[Targets | None] = (None,)) -> int:
        starts, lists = self._graph.indptr, self._graph.indices
        owners = np.searchsorted(starts, np.arange(first, last), side="right") - 1
        words = table_words(np.diff(starts)[np.unique(owners)], LEAST)
        assert words.sum() <= self.table_capacity
        rows: dict[tuple[int, int], set[int]] = {}
        for some in targets:
            low, high = some or (0, self._graph.num_vertices)
            # Rows are wanted of all vertices that own an arc of the range, also those of their arcs outside it.
            for v in set(owners.tolist()):
                own = lists[starts[v] : starts[v + 1]].tolist()
                for u in own:
                    if low <= u < high:
                        assert (v, u) not in rows
                        rows[v, u] = {*own} & {*lists[starts[u] : starts[u + 1]].tolist()}
            if self._fails():
                raise ShortOfMemory("device")
        found = 0
        for arc in range(first, last):
            v, u = int(owners[arc - first]), int(lists[arc])
            found += sum(len(rows[v, u] & rows[v, w]) for w in rows[v, u])
        return found


@dataclass(frozen=True)
class CountRows(CountCliques):
    """The stage, with these rows."""

    capacity: int = 0
    fails: Callable[[], bool] = lambda: False

    def tabled_counter(self, engine: Any, graph: GraphArrays, memory: int) -> Any:
        if self.capacity == 0:
            raise WorkspaceTooLarge(1)
        return Rows(graph, self.capacity, self.fails)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**32 - 1),
    st.integers(30, 90),
    st.sampled_from([150, 400]),
    st.integers(1_600, 6_000),
    st.sampled_from([0, 60, 150, 10_000]),
    st.integers(0, 12),
    st.data(),
)
def test_counts_of_random_graphs(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    n: int,
    m: int,
    size: int,
    capacity: int,
    failing: int,
    data: st.DataObject,
) -> None:
    """Whatever room there is, wherever tasks are cut, and whichever block finds no memory."""
    ends = np.random.default_rng(seed).integers(0, n, (m, 2)).tolist()
    pairs = {(min(pair), max(pair)) for pair in ends if pair[0] != pair[1]}
    right = Counter(map(len, nx.enumerate_all_cliques(nx.Graph(pairs))))[4]
    graph = longwall.graph(np.array(sorted(pairs), np.int64))
    failures = iter([*[False] * failing, True])
    folder, whole = tmp_path_factory.mktemp("tabled"), 1 << 16
    with short_chunks(256), SpillFolder(folder / "spill") as spill:
        stored = store_of(graph, folder / "graph")
        env: Any = SimpleNamespace(graph=stored, engine=CpuEngine(1), cancel=Event())
        count = CountRows(4, capacity, lambda: next(failures, False))
        cuts = sorted({0, 2 * len(pairs), *data.draw(st.lists(st.integers(0, 2 * len(pairs)), max_size=3))})
        with (
            closing(lists_of(stored, make_budgets().at(spill))) as lists,
            closing(GraphParts(stored, lists, size, 2, Event())) as parts,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(tabled_worker, "_SLACK", 0)
            sums = sums_of(count, stored.num_vertices)
            with closing(TabledWorker(env, count, parts, sums, lambda found: found, 1 << 20, whole)) as worker:
                assert (parts.size == whole) == (capacity == 0)
                found = 0
                for first, last in pairwise(cuts):
                    worker.run(first, last)
                    found += int(worker.take_partial())  # type: ignore[call-overload]
    assert found == right


class Place:
    """A store of a graph in short chunks, and runs over it that note what they read."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch):
        self.folder, self.graph = folder, generate("rmat", scale=10, edge_factor=24, seed=3)
        self.graph.save(folder / "graph")
        self.parts: list[GraphParts] = []
        made = GraphParts.__init__
        patch.setattr(GraphParts, "__init__", lambda part, *given: (self.parts.append(part), made(part, *given))[1])

    def config(self, k: int, host: int, device: int, name: str = "run") -> dict[str, Any]:
        return run_config(
            self.folder,
            {"path": self.folder / "graph"},
            {"kind": "cliques", "k": k},
            memory={"host": host, "device": device},
            engine={"kind": "cuda"},
            run={"name": name, "overwrite": True, "report": False},
        )

    def run(self, k: int, host: int, device: int) -> tuple[int | None, int]:
        """Return the count, and the bytes that were read of the lists."""
        self.parts.clear()
        result = longwall.run(self.config(k, host, device))
        memory = json.loads((result.path / "manifest.json").read_text())["memory"]
        assert left_in(self.folder / "spill") == []
        assert memory["host"]["peak"] <= host
        assert memory["device"]["peak"] <= device
        return result.count, sum(one.bytes_read for one in self.parts)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with short_chunks(1024):
        yield Place(tmp_path, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("k", [4, 5])
def test_less_is_read_than_part_after_part(place: Place, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right, _ = place.run(k, 1 << 26, 1 << 26)
    assert not place.parts
    found, read = place.run(k, HOST, DEVICE)
    monkeypatch.setattr(stream_phase, "tabled_way", lambda *_: None)
    as_parts, read_as_parts = place.run(k, HOST, DEVICE)
    assert found == as_parts == right
    assert 2 * 4 * place.graph.num_edges < read < read_as_parts / 2


@pytest.mark.gpu
def test_any_memory_gives_the_same_count(place: Place) -> None:
    counts = {place.run(4, 1 << 26, 1 << 26)[0]}
    for host, device in [(40_000, 60_000), (HOST, 150_000), (60_000, 400_000), (HOST, 1 << 22)]:
        counts.add(place.run(4, host, device)[0])
        assert place.parts
    assert len(counts) == 1


@pytest.mark.gpu
def test_a_run_goes_on_part_after_part(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed with tables counts for a run that has no room for them."""
    monkeypatch.setattr(commit_log, "COMMIT_SECONDS", 0.0)
    right, commit = place.run(4, 1 << 26, 1 << 26)[0], commit_log.PhaseRecord.commit

    def stop(self: Any, *given: Any, **options: Any) -> None:
        commit(self, *given, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commit_log.PhaseRecord, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            longwall.run(place.config(4, HOST, DEVICE, "stopped"))
    monkeypatch.setattr(stream_phase, "tabled_way", lambda *_: None)
    assert longwall.resume(place.folder / "runs" / "stopped").count == right


@pytest.mark.gpu
def test_explain_predicts_what_is_read(place: Place) -> None:
    _, read = place.run(4, HOST, DEVICE)
    (line,) = (line for line in explain(place.config(4, HOST, DEVICE)).splitlines() if line.startswith("streaming "))
    predicted = 1024 * float(line.split("from there about ")[1].split(" KiB")[0])
    assert read / 2 < predicted < 2 * read
