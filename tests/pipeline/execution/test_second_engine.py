"""If a second engine fails, lacks memory or is stopped, the phase ends as without it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from sharing import share_every_phase

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker
from longwall.pipeline.execution.second_engine import SecondEngine
from longwall.pipeline.execution.stage_workers import RangeContext
from longwall.pipeline.execution.thread_executor import ThreadExecutor
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.stages.range_counting import CountCliques
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.observer import NullObserver

if TYPE_CHECKING:
    from longwall.storage.graph.graph import Graph

PHASE = RangeCount(CountCliques(3), 1e6)
PATIENCE = 20.0  # seconds until something counts as hanging


@pytest.fixture(scope="module")
def graph(lab: Any) -> Graph:
    made: Graph = lab.graph(nx.gnm_random_graph(60, 400, seed=1).edges)
    return made


@pytest.fixture(scope="module")
def triangles() -> int:
    return sum(nx.triangles(nx.gnm_random_graph(60, 400, seed=1)).values()) // 3


class Notes(NullObserver):
    """Keeps what the user is notified of."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


class Stage:
    """A run with two engines, the first of which has one worker."""

    def __init__(self, lab: Any, graph: Graph):
        self.second, self.notes, self.ranges_begun = SecondEngine(2), Notes(), False
        self.env: Coordinator = lab.context(graph, threads=1)
        self.env.executor, self.env.observer = ThreadExecutor(self.second), self.notes

    def ranges(self) -> list[int]:
        """How many ranges each engine did."""
        return [row.tasks for row in self.env.metrics.rows() if row.stage == "ranges of cpu"]


@pytest.fixture
def stage(lab: Any, graph: Graph, request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    share_every_phase(monkeypatch, stops="stopped" in request.node.name)
    made = Stage(lab, graph)
    yield made
    assert made.env.resources.host.used == graph.nbytes


def breaking(patch: pytest.MonkeyPatch, error: Exception, call: int) -> None:
    """Let the second engine's workers raise an error at a call, counted over all of them, and at all later ones.

    The first engine's worker waits for it after its first range.
    """
    calls, counting, struck, run = [0], threading.Lock(), threading.Event(), RangeContext.run

    def broken(context: RangeContext, first: int, last: int) -> None:
        if context.env.alone:
            assert not first or struck.wait(PATIENCE)
        else:
            with counting:
                calls[0] += 1
                if calls[0] >= call:
                    struck.set()
                    raise error
        run(context, first, last)

    patch.setattr(RangeContext, "run", broken)


@pytest.mark.parametrize("error", [MemoryError(), RunError("broken"), InputError("too small"), OSError(28, "full")])
@pytest.mark.parametrize("call", [2, 3, 5])
def test_what_is_lost_is_done_by_the_first_engine(
    stage: Stage, triangles: int, error: Exception, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, error, call)
    assert PHASE.run(stage.env) == triangles
    assert stage.second.lost
    assert len(stage.notes.texts) in (1, 2)
    assert all("the run goes on with one engine: " in text for text in stage.notes.texts)
    assert PHASE.run(stage.env) == triangles  # from its commits
    assert RangeCount(CountCliques(4), 1e6).run(stage.env) > 0
    assert len(stage.ranges()) == 3


def opening(patch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let an error end the second engine's attempts to open its side of a phase."""
    opened = RangeCount.open

    def broken(phase: RangeCount, env: Environment) -> AbstractContextManager[MakeWorker]:
        if not env.alone:
            raise error
        return opened(phase, env)

    patch.setattr(RangeCount, "open", broken)


@pytest.mark.parametrize("error", [RunError("no room"), InputError("too small")])
def test_an_engine_without_room_stays_out_of_the_phase(
    stage: Stage, triangles: int, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening(monkeypatch, error)
    assert PHASE.run(stage.env) == triangles
    assert not stage.second.lost  # it may have room for others
    assert not stage.notes.texts
    assert len(stage.ranges()) == 1


def test_a_fault_before_it_joins_ends_nothing(stage: Stage, triangles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    opening(monkeypatch, ZeroDivisionError("a fault"))
    assert PHASE.run(stage.env) == triangles
    assert stage.second.lost
    assert stage.notes.texts == ["the run goes on with one engine: a fault"]


@pytest.mark.parametrize("error", [OverflowError("too many"), ZeroDivisionError("a fault")])
def test_what_would_happen_to_any_engine_ends_the_run(
    stage: Stage, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, error, 2)
    with pytest.raises(FinalError if isinstance(error, OverflowError) else ZeroDivisionError, match=str(error)):
        PHASE.run(stage.env)
    assert stage.env.cancel.is_set()


def test_a_commit_that_fails_ends_the_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **how: object) -> None:
        raise RunError("the disk is full")

    monkeypatch.setattr(PhaseRecord, "commit", refuse)
    with pytest.raises(RunError, match="the disk is full"):
        PHASE.run(stage.env)


def test_a_run_that_is_cancelled_ends_both(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RangeContext.run

    def cancel(context: RangeContext, first: int, last: int) -> None:
        if context.env.alone:
            assert not first or stage.env.cancel.wait(PATIENCE)
        elif stage.ranges_begun:
            stage.env.cancel.set()
        else:
            stage.ranges_begun = True
        run(context, first, last)

    monkeypatch.setattr(RangeContext, "run", cancel)
    with pytest.raises(KeyboardInterrupt):
        PHASE.run(stage.env)


def test_a_worker_that_lets_the_first_engine_wait_is_stopped(
    stage: Stage, triangles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, counting, stuck, run = [0], threading.Lock(), threading.Event(), RangeContext.run

    def slow(context: RangeContext, first: int, last: int) -> None:
        if context.env.alone:
            assert not first or stuck.wait(PATIENCE)
        else:
            with counting:
                calls[0] += 1
                waits = calls[0] == 4
            if waits:
                stuck.set()
                stopped = context.env.engine.device.stop_flag  # type: ignore[attr-defined]
                ends = time.monotonic() + PATIENCE
                while not stopped[0] and time.monotonic() < ends:
                    time.sleep(0.001)
                assert stopped[0]
        run(context, first, last)

    monkeypatch.setattr(RangeContext, "run", slow)
    assert PHASE.run(stage.env) == triangles
    assert calls[0] >= 4
    assert not stage.second.lost
    assert not stage.notes.texts
    sizes = [row.rows_out for row in stage.env.metrics.rows() if row.stage == "ranges of cpu"]
    assert sum(sizes) == sum(task.size for task in PHASE.tasks(stage.env))
    assert RangeCount(CountCliques(4), 1e6).run(stage.env) > 0
    assert len(stage.ranges()) == 4  # two engines in either phase
