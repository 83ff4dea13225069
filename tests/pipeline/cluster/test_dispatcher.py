"""Ranges that are dispatched to a cluster that loses, repeats and refuses them: each is committed once."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from budgets import make_budgets
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.pipeline.cluster import dispatcher
from longwall.pipeline.cluster.work_profile import WorkProfile
from longwall.pipeline.execution.environment import Metrics
from longwall.pipeline.execution.phase import MergingPhase, NotEnoughMemory, Phase, Task, WorkSoFar
from longwall.pipeline.execution.thread_executor import missing_tasks
from longwall.pipeline.run_store.commit_log import Commit, PhaseRecord
from longwall.stages.base import Aggregation
from longwall.storage.errors import FinalError, RunError
from longwall.storage.streaming.stored_graph import StoredGraph

WORKERS = ["a", "b", "c"]


@dataclass(frozen=True)
class Plain(Phase):
    """A phase that this process only dispatches."""

    name = "phase"
    activity = "counting"

    def tasks(self, env: Any) -> Any: ...

    def open(self, env: Any) -> Any: ...


class Sticky(Plain):
    sticky = True


class Steep(Plain):
    """Its work grows with the cube of the roots, and is counted in a unit of its own."""

    def work(self, env: Any) -> WorkSoFar:
        return WorkSoFar(np.arange(0, 1001, 10), np.arange(0.0, 1001, 10) ** 4 * 1e6)


@dataclass(frozen=True)
class Merging(MergingPhase):
    name = "phase"
    activity = "counting"
    tasks = Plain.tasks
    open = Plain.open

    aggregation = Aggregation(sum, sum, abs)

    def merge(self, env: Any, files: Any) -> Any: ...


class Observer:
    """Adds progress up."""

    def __init__(self) -> None:
        self.advanced = 0

    def advance(self, amount: int) -> None:
        self.advanced += amount

    def near_limit(self, share: float) -> None: ...

    def note(self, text: str) -> None: ...


class Journal:
    """Keeps commits in memory."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def append(self, phase: PhaseRecord, commits: list[Commit]) -> None:
        self.batches.append(len(commits))
        for ranges, partial in commits:
            phase.add(ranges, partial)


class Cluster:
    """Answers as a cluster does, in any order, by chance with less than was asked for, twice, or not at all."""

    on_devices = False

    def __init__(self, draw: random.Random, refusing: frozenset[str] = frozenset(), lost: Any = None):
        self._draw, self._refusing, self._lost = draw, refusing, lost
        self._open: dict[int, Any] = {}
        self._futures = 0
        self.engines: set[str] = set()
        self.dropped: list[int] = []
        self.adopted: list[str] = []
        self.refusals: list[str] = []
        self.retries = 200
        self.preferred: dict[int, str] = {}

    def pickled(self, phase: Phase) -> Phase:
        return phase

    def threads(self, one_each: bool = False) -> int:
        return len(WORKERS)

    def ask(
        self, phase: Phase, ranges: list[tuple[int, int]], seconds: float, prefer: Collection[str] = (), files: Any = ()
    ) -> int:
        self._futures += 1
        self._open[self._futures] = (ranges, files)
        return self._futures

    def arrived(self) -> list[tuple[int, Any]]:
        found: list[tuple[int, Any]] = []
        for future in self._draw.sample(sorted(self._open), self._draw.randint(0, len(self._open))):
            ranges, files = self._open.pop(future)
            found.append((future, self._merged(files) if files else self._answer(ranges)))
            if self._draw.random() < 0.1:
                found.append(found[-1])  # it arrives twice
        return found

    def _merged(self, files: list[dict[str, Any]]) -> dict[str, Any]:
        merged = {"name": f"checkpoint/{self._draw.random()}", "bytes": 10, "sum": sum(file["sum"] for file in files)}
        return {
            **{"done": [], "value": 0, "files": [merged], "levels": {}, "seconds": 1.0, "busy": 1.0},
            **{"worker": "a", "address": "a", "engine": "cpu"},
        }

    def _answer(self, ranges: list[tuple[int, int]]) -> Any:
        worker = self._draw.choice(WORKERS)
        if worker in self._refusing - set(self.refusals[:-1]):
            return {"reason": "the disk is full", "address": worker, "fits": True}
        if self._lost is not None and self._draw.random() < 0.2:
            return self._lost
        done = [*ranges[: self._draw.randint(1, len(ranges))]]
        first, last = done[-1]
        done[-1] = (first, self._draw.randint(first + 1, last))
        roots = sum(last - first for first, last in done)
        files = [{"name": f"checkpoint/{first}-{self._draw.random()}", "bytes": 10, "sum": roots}]
        seconds = self._draw.choice([0.0, 0.001, 1.0, 100.0])
        return {
            **{"done": done, "value": roots, "files": files, "levels": {}, "seconds": seconds, "busy": seconds},
            **{"worker": worker, "address": worker, "engine": "cpu"},
        }

    def holders(self, futures: Collection[int]) -> set[str]:
        return {self._draw.choice(WORKERS)} if futures else set()

    def avoid(self, workers: Collection[str], seconds: float) -> None: ...

    def refused(self, worker: str, reason: str) -> None:
        self.refusals.append(worker)
        if len(self.refusals) > 50:
            raise RunError(reason)

    def adopt(self, name: str) -> None:
        self.adopted.append(name)

    def drop(self, futures: list[int]) -> None:
        self.dropped += futures
        for future in futures:
            if self._draw.random() < 0.5:
                self._open.pop(future, None)  # else its answer comes, and is not wanted


def environment(graph: Any = None) -> Any:
    """The part of a run that a dispatcher needs."""
    budgets = make_budgets(0, 1 << 40)
    return SimpleNamespace(
        graph=graph,
        cancel=threading.Event(),
        observer=Observer(),
        metrics=Metrics(),
        resources=budgets,
        results=Path("/none/results"),
    )


def dispatch(
    cluster: Cluster, record: PhaseRecord, tasks: list[Task], env: Any = None, phase: Phase | None = None
) -> list[Task]:
    """Dispatch what is missing of a phase; return what that was."""
    missing = list(missing_tasks(tasks, record))
    executor: Any = cluster
    dispatcher.Dispatcher(executor, env or environment(), phase or Plain(), record, tasks, missing).finish()
    return missing


TASKS = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 1000)), min_size=1, max_size=12).map(
    lambda pairs: [
        Task(first, first + length, size)
        for (length, size), first in zip(
            pairs, [sum(length for length, _ in pairs[:i]) for i in range(len(pairs))], strict=True
        )
    ]
)


@settings(max_examples=50, deadline=None)
@given(TASKS, st.integers(), st.lists(st.integers(0, 600), max_size=6), st.booleans(), st.booleans())
def test_every_root_is_committed_once(tasks, seed, done, late, sticky):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher, "_LATE", 0.0 if late else 4.0)
        patch.setattr(dispatcher, "_COMMIT_SECONDS", random.Random(seed).choice([0.0, 1000.0]))
        total, journal = tasks[-1].last, Journal()
        record = PhaseRecord("phase", total, journal)
        ends = sorted({min(cut, total) for cut in done})
        record.done = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False)]
        lacking = total - sum(b - a for a, b in record.done)
        cluster = Cluster(random.Random(seed), frozenset("a") if seed % 3 == 0 else frozenset())
        if not lacking:
            return
        env = environment()
        missing = dispatch(cluster, record, tasks, env, Sticky() if sticky else Plain())
    assert record.complete
    assert sum(last - first for first, last in record.done) == total
    assert sum(partial.value for partial in record.partials) == lacking
    assert sorted(cluster.adopted) == sorted(file["name"] for partial in record.partials for file in partial.files)
    assert abs(env.observer.advanced - sum(task.size for task in missing)) <= len(missing) + len(record.partials)


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (CancelledError(), "scheduler is gone"),
        (OSError("Stream is closed"), "scheduler is gone"),
        (FinalError("it does not fit"), "it does not fit"),
        (ZeroDivisionError("oh"), "a worker of the cluster failed: ZeroDivisionError: oh"),
    ],
)
def test_what_cannot_be_mended_ends_the_run(lost, said):
    pytest.importorskip("distributed", reason="Dask is not installed")
    with pytest.raises(RunError, match=said):
        dispatch(Cluster(random.Random(1), lost=lost), PhaseRecord("phase", 1000, Journal()), [Task(0, 1000, 1000)])


def test_workers_that_all_refuse_end_the_run():
    cluster = Cluster(random.Random(1), frozenset(WORKERS))
    refusal = {"reason": "the disk is full", "address": "a", "fits": True}
    cluster._answer = lambda ranges: refusal  # type: ignore[method-assign]
    with pytest.raises(RunError, match="the disk is full"):
        dispatch(cluster, PhaseRecord("phase", 1000, Journal()), [Task(0, 1000, 1000)])


def test_one_worker_without_room_ends_a_phase_that_the_plan_can_do_without():
    cluster, record = Cluster(random.Random(1)), PhaseRecord("phase", 1000, Journal())
    answer = cluster._answer

    def answered(ranges: list[tuple[int, int]]) -> Any:
        found = answer(ranges)
        return {"reason": "no room", "address": "a", "fits": False} if found["address"] == "a" else found

    cluster._answer = answered  # type: ignore[method-assign]
    env = environment()
    with pytest.raises(NotEnoughMemory, match="no room"):
        dispatch(cluster, record, [Task(0, 1000, 1000)], env)
    assert not cluster.refusals
    assert not env.cancel.is_set()
    assert cluster.dropped


def test_a_cancelled_run_drops_what_it_asked_for():
    cluster, record, env = Cluster(random.Random(1)), PhaseRecord("phase", 1000, Journal()), environment()
    cluster.arrived = lambda: env.cancel.set() or []  # type: ignore[func-returns-value, method-assign]
    with pytest.raises(KeyboardInterrupt):
        dispatch(cluster, record, [Task(0, 1000, 1000)], env)
    assert len(cluster.dropped) == dispatcher._WAITING * len(WORKERS)
    assert not record.done


def test_many_short_ranges_are_asked_for_by_the_bundle_and_committed_together(monkeypatch):
    monkeypatch.setattr(dispatcher, "_CUTS", 4000)
    cluster, journal = Cluster(random.Random(1)), Journal()
    cluster._answer = lambda ranges: {  # type: ignore[method-assign]
        **{
            "done": ranges,
            "value": sum(b - a for a, b in ranges),
            "files": [],
            "levels": {},
            "seconds": 0.001,
            "busy": 0.001,
        },
        **{"worker": "a", "address": "a", "engine": "cpu"},
    }
    record = PhaseRecord("phase", 1 << 20, journal)
    dispatch(cluster, record, [Task(0, 1 << 20, 1 << 20)])
    assert record.complete
    assert record.ranges >= 10_000
    assert record.done == [(0, 1 << 20)]
    assert cluster._futures < 100
    assert len(journal.batches) < 20


@settings(max_examples=50, deadline=None)
@given(TASKS, st.integers(), st.booleans())
def test_files_are_merged_in_a_tree_and_values_are_combined(tasks, seed, late):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher, "_LATE", 0.0 if late else 4.0)
        patch.setattr(dispatcher, "_COMMIT_SECONDS", 0.0)
        journal, env, total = Journal(), environment(), tasks[-1].last
        record = PhaseRecord("phase", total, journal)
        dispatch(Cluster(random.Random(seed)), record, tasks, env, Merging())
    assert record.complete
    assert set(journal.batches) == {1}
    assert sum(partial.value for partial in record.partials) == total
    files = record.files()
    assert sum(file["sum"] for file in files) == total
    assert env.resources.disk.used == 10 * len(files)
    assert len(files) < 8 * 3  # less than 8 for every height of the tree, of at most 500 files


@settings(max_examples=50, deadline=None)
@given(TASKS, st.data())
def test_pieces_cover_a_range_and_are_of_about_equal_work(tasks, data):
    profile, total = WorkProfile(tasks), tasks[-1].last
    first = data.draw(st.integers(0, total - 1))
    last, pieces = data.draw(st.integers(first + 1, total)), data.draw(st.integers(1, 40))
    cut = profile.cut(first, last, pieces)
    assert [begin for begin, _ in cut] == [first, *(end for _, end in cut[:-1])]
    assert cut[-1][1] == last
    assert len(cut) <= pieces
    assert all(begin < end for begin, end in cut)
    assert sum(profile.size(*piece) for piece in cut) == pytest.approx(profile.size(first, last))
    if len(cut) == pieces:  # each has its share, but for the roots at its ends
        densest = max(profile.size(at, at + 1) for at in range(first, last))
        share = profile.size(first, last) / pieces
        most = 2 * densest + share / 2  # where tasks end near by
        assert all(abs(profile.size(*piece) - share) <= most + 1e-6 for piece in cut)
    assert sum(profile.progress(*piece) for piece in profile.cut(0, total, pieces)) == sum(task.size for task in tasks)


def test_pieces_are_of_equal_work_where_it_is_known_better_than_by_tasks():
    tasks = [Task(first, first + 100, 100) for first in range(0, 1000, 100)]
    work = WorkSoFar(np.arange(0, 1001, 10), np.arange(0.0, 1001, 10) ** 3)
    profile = WorkProfile(tasks, work)
    shares = [profile.size(*piece) for piece in profile.cut(0, 1000, 5)]
    assert len(shares) == 5
    assert max(shares) < 1.5 * sum(shares) / 5
    assert profile.cut(0, 1000, 5)[0][1] > 500
    assert profile.size(0, 500) < 0.2 * profile.size(500, 1000)
    assert [profile.progress(first, first + 50) for first in range(0, 1000, 50)] == [50] * 20


def test_what_is_dispatched_first_is_cut_by_the_estimate_of_the_work():
    tasks, cluster = [Task(first, first + 100, 100) for first in range(0, 1000, 100)], Cluster(random.Random(1))
    record, asked, ask = PhaseRecord("phase", 1000, Journal()), [], cluster.ask
    cluster.ask = lambda phase, ranges, *more: (asked.extend(ranges), ask(phase, ranges, *more))[1]
    dispatch(cluster, record, tasks, phase=Steep())
    assert sum(partial.value for partial in record.partials) == 1000
    first = asked[: dispatcher._WAITING * len(WORKERS)]
    assert all(last - begin < 100 for begin, last in first)
    assert min(begin for begin, _ in first) > 300  # the longest come first
    assert len(asked) < 200


class Overlapping(Plain):
    overlaps = True


def longest_at_first(*, on_devices: bool = False, graph: Any = None, phase: type[Phase] = Plain) -> int:
    tasks, cluster = [Task(first, first + 100, 100) for first in range(0, 900, 100)], Cluster(random.Random(1))
    record, asked, ask = PhaseRecord("phase", 900, Journal()), [], cluster.ask
    cluster.on_devices = on_devices
    cluster.ask = lambda phase, ranges, *more: (asked.extend(ranges), ask(phase, ranges, *more))[1]
    dispatch(cluster, record, tasks, environment(graph), phase())
    assert sum(partial.value for partial in record.partials) == 900
    return max(last - first for first, last in asked[: len(WORKERS)])


def test_devices_get_longer_ranges_at_first():
    assert longest_at_first(on_devices=True) > 2 * longest_at_first()


def test_ranges_that_overlap_end_with_short_ones() -> None:
    """Then all devices end at about the same time: the longest ranges are first, and every third is cut again."""
    tasks, cluster = [Task(first, first + 10, 10) for first in range(0, 9000, 10)], Cluster(random.Random(1))
    cluster.on_devices = True
    cluster._answer = lambda ranges: {  # type: ignore[method-assign]
        **{"done": ranges, "value": sum(last - first for first, last in ranges), "files": [], "levels": {}},
        **{"seconds": 1.0, "busy": 1.0, "worker": "a", "address": "a", "engine": "cuda"},
    }
    record, asked, ask = PhaseRecord("phase", 9000, Journal()), [], cluster.ask
    cluster.ask = lambda phase, ranges, *more: (asked.extend(ranges), ask(phase, ranges, *more))[1]
    dispatch(cluster, record, tasks, phase=Overlapping())
    lengths = [last - first for first, last in asked]
    assert sum(lengths) == 9000
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] >= 3 * lengths[-1]


def test_workers_that_stream_get_longer_ranges_at_first():
    """Each range reads the lists of its roots' neighbours anew."""
    assert longest_at_first(graph=object.__new__(StoredGraph)) > 2 * longest_at_first()


def test_pieces_end_where_tasks_do_where_there_are_many():
    """A part of a task may cost a device as much as the whole."""
    tasks = [Task(first, first + 10, 1 + first % 70) for first in range(0, 5000, 10)]
    for first, last, pieces in ((0, 5000, 16), (1230, 3210, 7), (5, 4995, 3)):
        cut = WorkProfile(tasks).cut(first, last, pieces)
        assert len(cut) == pieces
        assert all(end % 10 == 0 for _, end in cut[:-1])
    assert len(WorkProfile(tasks[:1]).cut(0, 10, 4)) == 4
