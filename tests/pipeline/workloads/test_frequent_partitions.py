"""Frequent patterns mined in partitions, in one process: what is found does not depend on them."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.execution.thread_executor import LocalScheduler, Work
from longwall.pipeline.run import open_graph
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


class InTurn(LocalScheduler):
    """A cluster in this process: hands ranges of a few roots to new workers, one behind the other.

    Parameters
    ----------
    step
        Roots of a range.
    """

    def __init__(self, step: int = 1):
        self.engines: set[str] = set()
        self._step = step
        self.asked: list[tuple[str, int]] = []

    def run(self, context: Environment, work: Work) -> list[Any]:
        for begin, end in list(work.phase.missing()):
            for first in range(begin, end, self._step):
                last = min(first + self._step, end)
                self.asked.append((work.phase.name, first))
                worker = work.make_worker(first)
                try:
                    worker.run(first, last)
                    found = worker.take()
                finally:
                    worker.close()
                work.phase.commit([(first, last)], found)
        return [partial.value for partial in work.phase.partials]


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


def mine(lab: Any, graph: Graph, scheduler: Any, section: dict[str, Any], engine: str = "cpu", **more: Any) -> Answer:
    """The patterns, and the embeddings as sorted rows."""
    with tempfile.TemporaryDirectory() as folder:
        context = lab.context(
            graph, engine=engine, folder=Path(folder), workload={"kind": "frequent"} | section, **more
        )
        return answer(context, scheduler)


def answer(context: Environment, scheduler: Any) -> Answer:
    context.scheduler = scheduler
    workload = context.spec.workload
    found = workload.execute(workload.plan(context.graph), context)
    assert [path.name for path in context.checkpoint.folder.iterdir()] == ["commits"]
    assert context.resources.disk.used == 0
    rows: list[tuple[Any, ...]] = []
    for file in context.results.glob("embeddings-*.parquet"):
        table = pq.read_table(file)
        rows += zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    return found, sorted(rows, key=repr)


def graph_of(kind: str) -> Graph:
    if kind == "transactions":
        return random_database(10, 12, 16)
    return random_graph(60, 180, edge_labels=2 if kind == "instances" else None)


@pytest.mark.parametrize("kind", SECTIONS)
@pytest.mark.parametrize("partitions", [1, 3, 7])
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
    monkeypatch.setattr(support_phases, "_SETS_BYTES", 1000)
    monkeypatch.setattr(support_phases, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(grow_patterns.GrowPatterns, "most_extensions", lambda self: 5)
    scheduler = InTurn(3)
    assert mine(lab, graph, scheduler, SECTIONS["mni"]) == whole
    assert any("batch 2" in name for name, _ in scheduler.asked)
    assert any(re.search("sets [1-9]", name) for name, _ in scheduler.asked)


def test_small_budgets_change_nothing(lab: Any) -> None:
    graph = random_graph(200, 2000, labels=2)
    section = SECTIONS["mni"] | {"min_support": 50, "output": "count"}
    whole = mine(lab, graph, None, section)
    assert mine(lab, graph, InTurn(8), section, host=600 << 10) == whole


def test_a_table_that_another_has_grown_is_grown_anew(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes with the same commits: each phase is done by one of them, whose partitions may be the other's."""
    graph = random_graph(60, 180)
    whole = mine(lab, graph, None, SECTIONS["mni"])
    monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", 4)

    class Forgetful(InTurn):
        def run(self, context: Environment, work: Work) -> list[Any]:
            if len(self.asked) % 3 == 0:
                for parts in made:
                    parts.close()
            return super().run(context, work)

    made: list[Any] = []
    real = partitioned_embeddings.Partitions

    def noted(*arguments: Any) -> Any:
        made.append(real(*arguments))
        return made[-1]

    monkeypatch.setattr(partitioned_embeddings, "Partitions", noted)
    assert mine(lab, graph, Forgetful(), SECTIONS["mni"]) == whole


class Stopping(InTurn):
    """Is interrupted after so many commits of tasks, in the middle of a phase or between two."""

    def __init__(self, most: int, step: int):
        super().__init__(step)
        self._most = most

    def run(self, context: Environment, work: Work) -> list[Any]:
        commit = work.phase.commit

        def counted(*arguments: Any) -> None:
            if self._most == 0:
                raise KeyboardInterrupt
            self._most -= 1
            commit(*arguments)

        work.phase.commit = counted  # type: ignore[method-assign]
        try:
            return super().run(context, work)
        finally:
            work.phase.commit = commit  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", SECTIONS)
def test_runs_are_resumed_wherever_they_ended(
    lab: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    """With other ranges of partitions each time, and other batches."""
    graph = graph_of(kind)
    whole = mine(lab, graph, None, SECTIONS[kind])
    monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", 5)
    monkeypatch.setattr(support_phases, "_SETS_BYTES", 3000)
    for attempt in range(200):
        monkeypatch.setattr(partitioned_embeddings, "_PARTITIONS", 5 + attempt)
        monkeypatch.setattr(pattern_grower, "_MOST_KNOWN", 500 + attempt)
        context = lab.context(graph, folder=tmp_path, workload={"kind": "frequent"} | SECTIONS[kind])
        try:
            found = answer(context, Stopping(7, 1 + attempt % 3))
        except KeyboardInterrupt:
            continue
        break
    assert attempt > 1
    assert found == whole


def test_a_full_disk_is_reported_with_a_message(lab: Any) -> None:
    graph = random_graph(60, 180)
    context = lab.context(graph, workload={"kind": "frequent"} | SECTIONS["mni"])
    context.resources.disk.charge(context.resources.disk.free - 2000, "others")
    with pytest.raises(BudgetExceeded, match=r"arrays of the checkpoint needs .*raise memory.disk"):
        answer(context, InTurn())
    assert context.resources.disk.free >= 0


def test_a_damaged_array_is_reported_with_a_message(lab: Any, tmp_path: Path) -> None:
    class Damaging(InTurn):
        def run(self, context: Environment, work: Work) -> list[Any]:
            found = super().run(context, work)
            for path in (tmp_path / "checkpoint").glob("sets-*/*.npy"):
                path.write_bytes(path.read_bytes()[:-1])
            return found

    context = lab.context(random_graph(60, 180), folder=tmp_path, workload={"kind": "frequent"} | SECTIONS["mni"])
    with pytest.raises(RunError, match=r"sets-.*npy: it is gone or damaged: restore the file, or start a new run"):
        answer(context, Damaging())


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
