"""Frequent patterns mined in partitions, by an executor of this process: what is found does not depend on them."""

from __future__ import annotations

import pickle
import random
import re
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.execution.phase import Phase
from longwall.pipeline.execution.thread_executor import begin_phase
from longwall.pipeline.inputs import open_graph
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.pipeline.workloads.frequent import partitioned_embeddings, pattern_grower, support_phases
from longwall.stages.extension import grow_patterns
from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.memory.reservations import BudgetExceeded

Answer = tuple[list[PatternCount], list[tuple[Any, ...]]]
quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
SECTIONS: dict[str, dict[str, Any]] = {
    "mni": {"support": "mni", "min_support": 5, "max_edges": 3, "output": "embeddings"},
    "instances": {"support": "instances", "min_support": 30, "max_edges": 3, "output": "embeddings"},
    "until it is known": {"support": "mni", "min_support": 5, "max_edges": 4, "exact": False},
    "transactions": {"support": "transactions", "min_support": 3, "max_edges": 4, "output": "embeddings"},
}


class InTurn:
    """A cluster in this process: does a few roots at a time with new workers, one behind the other.

    As on a cluster, every request comes with the phase as bytes.

    Parameters
    ----------
    step
        Roots of a request.

    Attributes
    ----------
    asked
        Phases and first roots of the requests.
    sizes
        Bytes of the largest pickle of each kind of phase, and the files that it names.
    """

    def __init__(self, step: int = 1):
        self.engines: set[str] = set()
        self._step = step
        self.asked: list[tuple[str, int]] = []
        self.sizes: dict[str, tuple[int, int]] = {}

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        record, _, _ = begin_phase(phase, env)
        for first, last in self.requests(record):
            self.asked.append((phase.name, first))
            self.commit(record, first, last, self.answer(self.sent(phase), self.process(env), first, last))
        return record

    def requests(self, record: PhaseRecord) -> list[tuple[int, int]]:
        """The ranges that are asked for, in their order."""
        return [
            (first, min(first + self._step, end))
            for begin, end in record.missing()
            for first in range(begin, end, self._step)
        ]

    def sent(self, phase: Phase) -> Phase:
        """The phase as it arrives in a process."""
        content, kind = pickle.dumps(phase), type(phase).__name__
        self.sizes[kind] = max(self.sizes.get(kind, (0, 0)), (len(content), num_files(phase)))
        found: Phase = pickle.loads(content)
        return found

    def process(self, env: Coordinator) -> Environment:
        """The process that does a request."""
        return env

    def answer(self, phase: Phase, env: Environment, first: int, last: int) -> PartialResult:
        """What a process finds in a range."""
        with phase.open(env) as make_worker:
            worker = make_worker()
            try:
                worker.run(first, last)
                return worker.take_partial()
            finally:
                worker.close()

    def commit(self, record: PhaseRecord, first: int, last: int, found: PartialResult) -> None:
        """Commit what was found."""
        record.commit([(first, last)], found)


class Processes(InTurn):
    """Many processes of a cluster, each with what it keeps itself: ranges go to any of them in any order.

    Parameters
    ----------
    number
        Of processes.
    step
        Roots of a request.
    """

    def __init__(self, number: int, step: int = 1):
        super().__init__(step)
        self._number, self._draw = number, random.Random(f"{number} {step}")
        self.processes: list[Environment] = []

    def requests(self, record: PhaseRecord) -> list[tuple[int, int]]:
        found = super().requests(record)
        self._draw.shuffle(found)
        return found

    def process(self, env: Coordinator) -> Environment:
        if not self.processes:
            names = [one.name for one in fields(Environment) if one.name not in ("device_graph", "derived")]
            self.processes = [Environment(**{name: getattr(env, name) for name in names}) for _ in range(self._number)]
        return self._draw.choice(self.processes)

    def close(self) -> None:
        for one in self.processes:
            one.close()


def num_files(phase: Any) -> int:
    """The files that a phase names: those of the levels, the candidates, and the sets."""
    return len(phase.lineage.levels) + hasattr(phase, "cut") + len(getattr(phase, "sets", ()))


def random_graph(vertices: int, edges: int, *, labels: int = 3, edge_labels: int | None = None, seed: int = 1) -> Graph:
    rng = np.random.default_rng(seed)
    pairs = np.array(nx.gnm_random_graph(vertices, edges, seed=seed).edges, np.int64).reshape(-1, 2)
    of_edges = None if edge_labels is None else rng.integers(edge_labels, size=len(pairs)).astype(np.int32)
    of_vertices = np.arange(vertices), rng.integers(labels, size=vertices)
    return build_graph(pairs[:, 0], pairs[:, 1], edge_labels=of_edges, vertex_labels=of_vertices)


def random_database(graphs: int, vertices: int, edges: int) -> Graph:
    """A database of graphs with labels of vertices and of edges."""
    rng, lines = np.random.default_rng(graphs), []
    for number in range(graphs):
        lines += [f"t # {number}", *(f"v {vertex} {rng.integers(3)}" for vertex in range(vertices))]
        lines += [f"e {u} {v} {rng.integers(2)}" for u, v in nx.gnm_random_graph(vertices, edges, seed=number).edges]
    with tempfile.NamedTemporaryFile("w", suffix=".gspan") as file:
        file.write("\n".join([*lines, "t # -1", ""]))
        file.flush()
        return open_graph(file.name)


def mine(lab: Any, graph: Graph, executor: Any, section: dict[str, Any], engine: str = "cpu", **more: Any) -> Answer:
    """The patterns, and the embeddings as sorted rows; with no executor those of one process."""
    with tempfile.TemporaryDirectory() as folder:
        env = lab.context(graph, engine=engine, folder=Path(folder), workload={"kind": "frequent"} | section, **more)
        return answer(env, executor)


def answer(env: Coordinator, executor: Any) -> Answer:
    """Mine; only the patterns of the levels are left in the checkpoint, and in the disk's budget."""
    if executor is not None:
        env.executor, env.alone = executor, False
    workload: Any = env.spec.workload
    try:
        found = workload.execute(workload.plan(env.graph), env)
    finally:
        env.close()
    arrays = [path for path in env.log.folder.rglob("*") if path.is_file() and path.parent.name != "commits"]
    assert arrays
    assert all(re.fullmatch(r"patterns-of-\d+-edges", path.parent.name) for path in arrays)
    assert env.resources.disk.used == sum(path.stat().st_size for path in arrays)
    rows: list[tuple[Any, ...]] = []
    for file in env.results.glob("embeddings-*.parquet"):
        table = pq.read_table(file)
        rows += zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    return found, sorted(rows, key=repr)


def graph_of(kind: str) -> Graph:
    if kind == "transactions":
        return random_database(10, 12, 16)
    return random_graph(60, 180, edge_labels=2 if kind == "instances" else None)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", SECTIONS)
@pytest.mark.parametrize("partitions", [3, 1, 7])
def test_partitions_change_nothing(
    lab: Any, engine_kind: str, monkeypatch: pytest.MonkeyPatch, kind: str, partitions: int
) -> None:
    graph = graph_of(kind)
    whole = mine(lab, graph, None, SECTIONS[kind], engine_kind)
    assert len(whole[0]) > 20
    monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", partitions)
    assert mine(lab, graph, InTurn(2), SECTIONS[kind], engine_kind) == whole


@pytest.mark.slow
def test_batches_and_cuts_change_nothing(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few patterns, whose candidates are marked a few at a time, by workers with smaller batches still."""
    graph = random_graph(60, 180)
    whole = mine(lab, graph, None, SECTIONS["mni"])
    monkeypatch.setattr(pattern_grower, "_MOST_KNOWN", 60)
    monkeypatch.setattr(partitioned_embeddings, "_SETS_BYTES", 1000)
    monkeypatch.setattr(support_phases, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(grow_patterns.GrowPatterns, "most_extensions", lambda self: 5)
    executor = InTurn(3)
    assert mine(lab, graph, executor, SECTIONS["mni"]) == whole
    assert any("batch 2" in name for name, _ in executor.asked)
    assert any(re.search("sets [1-9]", name) for name, _ in executor.asked)


@pytest.mark.slow
def test_small_budgets_change_nothing(lab: Any) -> None:
    graph = random_graph(200, 2000, labels=2)
    section = SECTIONS["mni"] | {"min_support": 50, "output": "count"}
    whole = mine(lab, graph, None, section)
    assert mine(lab, graph, InTurn(8), section, host=600 << 10) == whole


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", SECTIONS)
@pytest.mark.parametrize(("processes", "step"), [(3, 2), (2, 1)])
def test_processes_in_any_order_find_what_one_finds(
    lab: Any, monkeypatch: pytest.MonkeyPatch, kind: str, processes: int, step: int
) -> None:
    """A partition may be another process's in every phase, and is grown anew there."""
    graph = graph_of(kind)
    whole = mine(lab, graph, None, SECTIONS[kind])
    monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", 5)
    executor = Processes(processes, step)
    assert mine(lab, graph, executor, SECTIONS[kind]) == whole
    assert all(one.derived for one in executor.processes)
    executor.close()


def test_a_process_that_comes_late_finds_the_same(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is of a process that knows nothing yet."""
    graph = random_graph(60, 180)
    whole = mine(lab, graph, None, SECTIONS["mni"])
    monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", 4)

    class Forgetful(InTurn):
        def answer(self, phase: Phase, env: Environment, first: int, last: int) -> PartialResult:
            env.close()
            return super().answer(phase, env, first, last)

    assert mine(lab, graph, Forgetful(), SECTIONS["mni"]) == whole


@pytest.mark.slow
def test_a_task_of_a_level_that_is_finished_is_refused(lab: Any) -> None:
    class Late(InTurn):
        def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
            record = super().run(phase, env)
            phases.append(phase)
            if phase.name.startswith("rows of 2 edges"):
                self.answer(phases[0], env, 0, 1)
            return record

    phases: list[Phase] = []
    with pytest.raises(RunError, match="the level is finished: this task came too late"):
        mine(lab, random_graph(60, 180), Late(), SECTIONS["mni"])
    assert phases[0].name == "rows of 1 edges, batch 0"


@pytest.mark.slow
@pytest.mark.parametrize("kind", SECTIONS)
def test_phases_are_small(lab: Any, kind: str) -> None:
    """About 450 bytes, and 150 for every file that they name (measured)."""
    executor = InTurn(8)
    mine(lab, graph_of(kind), executor, SECTIONS[kind])
    expected = {"CountRows", "MarkSets", "CountSupports", "WriteEmbeddings"}
    if kind == "instances":
        expected -= {"MarkSets", "CountSupports"}
    if kind == "until it is known":
        expected -= {"CountRows", "WriteEmbeddings"}
    assert set(executor.sizes) == expected
    assert all(size <= 500 + 160 * files for size, files in executor.sizes.values())


class Stopping(InTurn):
    """Is interrupted after so many commits of tasks, in the middle of a phase or between two."""

    def __init__(self, most: int, step: int):
        super().__init__(step)
        self._most = most

    def commit(self, record: PhaseRecord, first: int, last: int, found: PartialResult) -> None:
        if self._most == 0:
            raise KeyboardInterrupt
        self._most -= 1
        super().commit(record, first, last, found)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", SECTIONS)
def test_runs_are_resumed_wherever_they_ended(
    lab: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    """With other ranges of partitions each time, and other batches."""
    graph = graph_of(kind)
    whole = mine(lab, graph, None, SECTIONS[kind])
    monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", 5)
    monkeypatch.setattr(partitioned_embeddings, "_SETS_BYTES", 3000)
    for attempt in range(200):
        monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", 5 + attempt)
        monkeypatch.setattr(pattern_grower, "_MOST_KNOWN", 500 + attempt)
        env = lab.context(graph, folder=tmp_path, workload={"kind": "frequent"} | SECTIONS[kind])
        try:
            found = answer(env, Stopping(7, 1 + attempt % 3))
        except KeyboardInterrupt:
            continue
        break
    assert attempt > 1
    assert found == whole


def test_a_full_disk_is_reported_with_a_message(lab: Any) -> None:
    graph = random_graph(60, 180)
    env = lab.context(graph, workload={"kind": "frequent"} | SECTIONS["mni"])
    env.resources.disk.charge(env.resources.disk.free - 2000, "others")
    with pytest.raises(BudgetExceeded, match=r"no room for .*arrays of the checkpoint .*raise memory.disk"):
        answer(env, InTurn())
    assert env.resources.disk.free >= 0


def test_a_damaged_array_is_reported_with_a_message(lab: Any, tmp_path: Path) -> None:
    class Damaging(InTurn):
        def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
            record = super().run(phase, env)
            for path in (tmp_path / "checkpoint").glob("sets-*/*.npy"):
                path.write_bytes(path.read_bytes()[:-1])
            return record

    env = lab.context(random_graph(60, 180), folder=tmp_path, workload={"kind": "frequent"} | SECTIONS["mni"])
    with pytest.raises(RunError, match=r"sets-.*npy: it is gone or damaged: restore the file, or start a new run"):
        answer(env, Damaging())


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(3, 9))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = np.array(sorted(draw(st.sets(pairs, min_size=1, max_size=16))), np.int64)
    vertices = np.unique(edges)
    of_vertices = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), np.int64)[: len(vertices)]
    of_edges = draw(st.none() | st.lists(st.integers(0, 1), min_size=len(edges), max_size=len(edges)))
    return build_graph(
        edges[:, 0],
        edges[:, 1],
        edge_labels=None if of_edges is None else np.array(of_edges, np.int32),
        vertex_labels=(vertices, of_vertices) if draw(st.booleans()) else None,
    )


@given(
    graph=graphs(),
    support=st.sampled_from(["mni", "instances"]),
    exact=st.booleans(),
    min_support=st.integers(1, 4),
    max_edges=st.integers(1, 4),
    embeddings=st.booleans(),
    partitions=st.sampled_from([1, 3, 7]),
    step=st.integers(1, 4),
)
@quick
def test_partitions_of_small_graphs_change_nothing(
    lab: Any,
    graph: Graph,
    support: str,
    exact: bool,
    min_support: int,
    max_edges: int,
    embeddings: bool,
    partitions: int,
    step: int,
) -> None:
    section: dict[str, Any] = {"support": support, "max_edges": max_edges}
    section["min_support"] = min(min_support, graph.num_vertices)
    section |= {"exact": exact} if support == "mni" else {}
    section |= {"output": "embeddings"} if embeddings else {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partitioned_embeddings, "_PARTITIONS", partitions)
        assert mine(lab, graph, InTurn(step), section) == mine(lab, graph, None, section)
