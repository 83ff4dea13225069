"""Workers that a graph does not fit stream it from its store, or map it, as the coordinator's plan says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from explained import explain
from kill import left_in
from rig import Rig, wait_until
from run_configs import run_config
from stored import short_chunks

import longwall
from longwall.pipeline.cluster import dispatcher
from longwall.pipeline.cluster.machine_share import streaming_of_workers
from longwall.pipeline.cluster.worker_process import PickledPhase, RunDescription, RunHeader, WorkerProcess
from longwall.pipeline.config import RunSpec, load_config
from longwall.pipeline.inputs import open_resources, plan_for, read_graph
from longwall.pipeline.run_store import commit_log
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.observer import NullObserver
from longwall.storage.streaming.stored_graph import StoredGraph

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")

OWN = 90_000  # bytes of a process: less than the graph takes, and enough for its parts
SHARED = 400_000  # of the processes of a machine together: less than the large graph takes
PLENTY = 1 << 28
CHUNK = 1024
WORKLOADS: dict[str, dict[str, Any]] = {
    "triangles": {"kind": "triangles"},
    "4-cliques": {"kind": "cliques", "k": 4},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "3-motifs": {"kind": "motifs", "k": 3},
    "paths of 4": {"kind": "match", "pattern": "path-4"},
    "tailed triangles": {"kind": "match", "pattern": "tailed-triangle"},
    "4-cliques of vertices": {"kind": "cliques", "k": 4, "output": "vertices"},
}


class Place:
    """A store of a graph in short chunks, and the counts of its patterns by dense matrices."""

    def __init__(self, folder: Path, graph: Graph):
        self.folder, self.store, self.spill = folder, folder / "graph", folder / "spill"
        self.graph = graph
        self.graph.save(self.store)
        self._dense = np.zeros((self.graph.num_vertices,) * 2)  # sums are exact below 2^53
        self._dense[np.repeat(np.arange(len(self._dense)), np.diff(self.graph.indptr)), self.graph.indices] = 1

    def triangles(self) -> np.ndarray[Any, Any]:
        """Return the triangles of each vertex."""
        return _triangles(self._dense)

    def four_cliques(self) -> int:
        near = (np.flatnonzero(row) for row in self._dense)
        return sum(int(_triangles(self._dense[np.ix_(some, some)]).sum()) // 3 for some in near) // 4

    def config(self, workload: str, host: int, name: str = "run", **sections: Any) -> dict[str, Any]:
        return run_config(
            self.folder,
            {"path": str(self.store)},
            WORKLOADS.get(workload, {"kind": "match", "pattern": workload}),
            memory={"host": host, "spill": str(self.spill)},
            engine={"threads": 1},
            run={"name": name, "overwrite": True},
            **sections,
        )


def _triangles(dense: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (((dense @ dense) * dense).sum(axis=1) // 2).astype(np.int64)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with short_chunks(CHUNK):
        yield Place(tmp_path_factory.mktemp("streamed"), generate("rmat", scale=10, edge_factor=24, seed=3))


class Machines:
    """Processes that pass for machines with a worker each, or for one with all; all are threads of this process."""

    def __init__(
        self, place: Place, workload: str, *, stored: bool, number: int = 2, share: int = 2, engine: str = "cpu"
    ):
        host = 2 * OWN if share == 2 else place.graph.nbytes - 1
        config = place.config(workload, host, scheduler={"kind": "dask", "address": "tcp://127.0.0.1:1"})
        config["engine"] = {"kind": engine}
        self.spec, self.run = load_config(config), place.folder / "parts"
        (self.run / "checkpoint" / "parts-1").mkdir(parents=True, exist_ok=True)
        header = RunHeader(
            id="1",
            run=str(self.run),
            config=self.spec.to_dict(),
            share=share,
            per_device=1,
            version=longwall.__version__,
            shares=False,
        )
        self.graph = place.graph.content_hash
        self._description = RunDescription(**header, graph=self.graph, shared=None, stored=stored)
        self.processes = [WorkerProcess(header, 2) for _ in range(number)]

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.processes:
            process.close()

    def describe(self) -> None:
        for process in self.processes:
            process.describe(self._description)

    def envs(self) -> list[Any]:
        """Return the environment of each process, once it has the graph."""
        for process in self.processes:
            wait_until(lambda process=process: process._run is not None or process._failed is not None)
        return [process._run.env for process in self.processes if process._run is not None]

    def do(self, phase: Any, cuts: int) -> list[dict[str, Any]]:
        """Let the processes do a phase in ranges of equal length, several at a time."""
        from distributed.protocol.pickle import dumps

        arcs = 2 * self.envs()[0].graph.num_edges
        ends = np.linspace(0, arcs, cuts + 1).astype(int).tolist()
        pickled = PickledPhase(number=0, pickled=dumps(phase))
        with ThreadPoolExecutor(2 * len(self.processes)) as pool:
            asked = [
                pool.submit(
                    self.processes[i % len(self.processes)].do, self.graph, pickled, [(ends[i], ends[i + 1])], 60.0, []
                )
                for i in range(cuts)
            ]
            return [dict(one.result()) for one in asked]


def phase_of(machines: Machines, graph: Graph) -> Any:
    return plan_for(machines.spec, graph).streamed


@pytest.mark.parametrize("workload", ["triangles", "4-cliques"])
def test_ranges_of_several_processes_add_up(place: Place, workload: str, engine_kind: str) -> None:
    number = 2 if engine_kind == "cpu" else 1  # a device would be shared by processes
    with Machines(place, workload, stored=True, number=number, engine=engine_kind) as machines:
        machines.describe()
        envs = machines.envs()
        assert [type(env.graph) for env in envs] == [StoredGraph] * number
        found = machines.do(phase_of(machines, envs[0].graph), 7)
        assert max(env.resources.host.peak for env in envs) <= OWN
    right = place.triangles().sum() // 3 if workload == "triangles" else place.four_cliques()
    assert sum(one["value"] for one in found) == right
    assert left_in(place.spill) == []


def test_every_answer_has_counts_of_its_own_ranges(place: Place, engine_kind: str) -> None:
    """A lost answer is done again by another process, so sums of an opened phase must not mix several ranges."""
    number = 2 if engine_kind == "cpu" else 1
    with Machines(place, "triangles of vertices", stored=True, number=number, engine=engine_kind) as machines:
        machines.describe()
        envs = machines.envs()
        phase = phase_of(machines, envs[0].graph)
        files = [file for one in machines.do(phase, 6) for file in one["files"]]
        assert len(files) == 6
        total = sum(np.load(machines.run / file["name"]) for file in files)
    assert np.array_equal(total, place.triangles())


def test_a_graph_that_the_plan_wants_whole_is_mapped(place: Place) -> None:
    with Machines(place, "diamond", stored=False, number=1) as machines:
        machines.describe()
        (env,) = machines.envs()
        assert env.graph.files is not None
        assert np.array_equal(env.graph.indices, place.graph.indices)


def test_processes_of_a_machine_map_one_copy(place: Place) -> None:
    with Machines(place, "diamond", stored=False, share=3) as machines:
        machines.describe()
        envs = machines.envs()
        assert len(envs) == 2
        for env in envs:
            assert np.array_equal(env.graph.indices, place.graph.indices)
            assert env.resources.host.used < place.graph.nbytes // 30, "a mapped graph takes no memory of the budget"
        assert sorted(env.graph.files is None for env in envs) == [False, True]


def test_processes_of_a_machine_stream_each_for_itself(place: Place) -> None:
    with Machines(place, "triangles", stored=True, share=3) as machines:
        machines.describe()
        envs = machines.envs()
        assert [type(env.graph) for env in envs] == [StoredGraph] * 2


def test_a_process_that_the_graph_does_not_fit_waits_for_the_plan(place: Place) -> None:
    with Machines(place, "triangles", stored=True, number=1) as machines:
        (process,) = machines.processes
        process._thread.join(0.5)
        assert process._run is None
        assert process._failed is None
        machines.describe()
        assert isinstance(machines.envs()[0].graph, StoredGraph)
    with Machines(place, "triangles", stored=True, number=1) as machines:
        pass  # and ends if no plan comes


@contextmanager
def graph_of_coordinator(spec: RunSpec, processes: int, *, at_address: bool = True) -> Iterator[Any]:
    with open_resources(spec) as resources:
        streaming = streaming_of_workers(processes, resources.host.limit, at_address=at_address)
        yield read_graph(spec, NullObserver(), resources, None, streaming)


def test_the_coordinator_plans_for_what_its_workers_hold(place: Place) -> None:
    """The coordinator has all of memory.host; a worker that shares its graph with no other has half of it."""
    assert OWN < place.graph.nbytes < 2 * OWN
    spec = load_config(place.config("triangles", 2 * OWN))
    with graph_of_coordinator(spec, 2) as graph:
        assert isinstance(graph, StoredGraph)
    with graph_of_coordinator(spec, 3) as graph:  # workers of a machine share it
        assert graph.nbytes == place.graph.nbytes
        assert not isinstance(graph, StoredGraph)
    with graph_of_coordinator(load_config(place.config("diamond", 2 * OWN)), 2) as graph:
        assert not isinstance(graph, StoredGraph)
        assert graph.files is None
    too_many = load_config(place.config("triangles", place.graph.nbytes - 1))
    with graph_of_coordinator(too_many, 40, at_address=False) as graph:  # without room for parts in a share
        assert graph.files is not None


def test_explain_says_what_every_worker_reads(place: Place) -> None:
    for scheduler in ({"kind": "dask", "workers": 1}, {"kind": "dask", "address": "tcp://127.0.0.1:1"}):
        memory = 2 * OWN if "address" in scheduler else place.graph.nbytes - 1
        text = explain(place.config("triangles", memory, scheduler=scheduler))
        assert re.search(r", and each worker has [^,]+ of memory\.host$", text, re.MULTILINE)
        (line,) = (line for line in text.splitlines() if line.startswith("streaming "))
        assert "once from the store by each worker, of which " in line
        assert line.endswith(" ranges of roots, by all workers together")


PRELOAD = f"""
from longwall.storage.arrays import array_hash, layout
layout.CHUNK_BYTES = array_hash.SEGMENT_BYTES = {CHUNK}
"""


@contextmanager
def short_rig(folder: Path, workers: int, environment: dict[str, str] | None = None) -> Iterator[Rig]:
    """Start workers that cut arrays as this process does, also when they are started again."""
    folder.mkdir(exist_ok=True)
    (folder / "shorten.py").write_text(PRELOAD)
    preload = {"DASK_DISTRIBUTED__WORKER__PRELOAD": json.dumps([str(folder / "shorten.py")])}
    with Rig(folder, workers, environment=preload | (environment or {})) as rig:
        wait_until(lambda: len(rig.workers()) == workers)
        yield rig


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A graph that does not fit the memory of all workers of a machine together."""
    with short_chunks(CHUNK):
        yield Place(
            tmp_path_factory.mktemp("large"), generate("barabasi-albert", vertices=2000, edges_per_vertex=30, seed=3)
        )


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with short_rig(tmp_path_factory.mktemp("rig"), 2) as made:
        yield made


def answer(result: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the answers of a run, and the memory figures of its manifest."""
    vertices = result.path / "results" / "vertices.parquet"
    rows = pq.read_table(vertices).to_pylist() if vertices.exists() else []
    facts = json.loads((result.path / "manifest.json").read_text())["memory"]
    return [result.count, *(one.count for one in result.patterns), *rows], facts


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_cluster_answers_as_a_run_in_memory(large: Place, rig: Rig, workload: str) -> None:
    host = SHARED if "vertices" not in workload else large.graph.nbytes - 1
    host = large.graph.nbytes - 1
    expected, memory = answer(longwall.run(large.config(workload, PLENTY)))
    assert "store" not in memory
    found, memory = answer(
        longwall.run(large.config(workload, host, scheduler={"kind": "dask", "address": rig.address}))
    )
    assert found == expected
    assert memory["store"] == {"graph": large.graph.nbytes} | (
        {"lists_read": 4 * large.graph.num_edges} if workload == "paths of 4" else {}  # whose sums the coordinator has
    )
    if workload == "4-cliques":
        assert found[0] == large.four_cliques()
    assert left_in(large.spill) == []


@pytest.mark.cluster
@pytest.mark.slow
def test_other_workloads_map_a_graph_that_does_not_fit_the_machine(large: Place, rig: Rig) -> None:
    expected, _ = answer(longwall.run(large.config("diamond", PLENTY)))
    scheduler = {"kind": "dask", "address": rig.address}
    found, memory = answer(longwall.run(large.config("diamond", large.graph.nbytes - 1, scheduler=scheduler)))
    assert found == expected
    assert memory["files"]["graph"] == large.graph.nbytes


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("workload", ["triangles of vertices", "4-cliques"])
def test_workers_that_are_killed_change_nothing(
    large: Place, tmp_path: Path, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed after the first commit, and one after the third."""
    monkeypatch.setattr(dispatcher, "_COMMIT_SECONDS", 0.0)
    for name in ("_SECONDS", "_FIRST_SECONDS", "_LEAST_SECONDS"):
        monkeypatch.setattr(dispatcher, name, 0.01)
    expected, _ = answer(longwall.run(large.config(workload, PLENTY)))
    commit_all, commits = commit_log.PhaseRecord.commit_all, []
    with short_rig(tmp_path / "rig", 2) as rig:

        def kill_then_commit(self: Any, *arguments: Any) -> None:
            commit_all(self, *arguments)
            commits.append(arguments)
            if len(commits) in (1, 3):
                rig.workers()[0].kill()

        monkeypatch.setattr(commit_log.PhaseRecord, "commit_all", kill_then_commit)
        scheduler = {"kind": "dask", "address": rig.address, "retries": 100}
        found, memory = answer(longwall.run(large.config(workload, large.graph.nbytes - 1, scheduler=scheduler)))
    assert len(commits) > 1
    assert "store" in memory
    assert found == expected


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("first", [SHARED, PLENTY])
def test_a_run_goes_on_with_any_memory(large: Place, rig: Rig, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that began from the store goes on in memory, and the other way round."""
    monkeypatch.setattr(dispatcher, "_COMMIT_SECONDS", 0.0)
    name, commit_all, commits = f"resumed-{first}", commit_log.PhaseRecord.commit_all, []

    def stop(self: Any, *arguments: Any) -> None:
        commit_all(self, *arguments)
        commits.append(arguments)
        raise KeyboardInterrupt

    config = large.config("4-cliques", first, name, scheduler={"kind": "dask", "address": rig.address})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_log.PhaseRecord, "commit_all", stop)
        with pytest.raises(KeyboardInterrupt):
            longwall.run(config)
    assert commits
    other = PLENTY if first != PLENTY else SHARED
    resumed = longwall.resume(large.folder / "runs" / name, overrides=[f"memory.host={other}"])
    assert resumed.count == large.four_cliques()
