"""Phases that two engines share however short they are."""

from __future__ import annotations

import threading

import pytest

from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.sharing import engine_choice
from longwall.pipeline.execution.sharing.second_engine import SecondEngine
from longwall.pipeline.execution.sharing.task_pool import TaskPool, Team
from longwall.pipeline.execution.thread_executor import _Tasks


def share_every_phase(patch: pytest.MonkeyPatch) -> None:
    """Let a second engine join at once and stay, and the first one wait for it before it takes its second range."""
    patch.setattr(engine_choice, "CUT_ACCESS", ("resident", *engine_choice.CUT_ACCESS))
    for name in ("JOIN_AFTER", "JOIN_LEFT", "PROBE_LEFT", "LEAST_RANGE", "LEAST_LAUNCH", "LEAST_GAIN"):
        patch.setattr(engine_choice, name, 0.0)
    patch.setattr(engine_choice, "LEAST_WAIT", 20.0)  # however late it is on a busy machine
    tried: dict[TaskPool, threading.Event] = {}
    begun: set[TaskPool] = set()
    take, share, start = TaskPool.take, _Tasks._share, SecondEngine.start

    def patient_take(pool: TaskPool, team: Team) -> Task | None:
        if pool._shared and pool in begun and team is pool._lead and pool.left:
            tried.setdefault(pool, threading.Event()).wait(20)
        if team is pool._lead:
            begun.add(pool)
        return take(pool, team)

    def join(pool: TaskPool, team: Team, probe: Task) -> bool:
        joined = original_join(pool, team, probe)
        tried.setdefault(pool, threading.Event()).set()
        return joined

    def tried_share(tasks: _Tasks) -> None:
        try:
            share(tasks)
        finally:
            tried.setdefault(tasks._pool, threading.Event()).set()

    def begin(second: SecondEngine, work: object) -> bool:
        second.wait()
        return start(second, work)  # type: ignore[arg-type]

    original_join = TaskPool.join
    patch.setattr(TaskPool, "take", patient_take)
    patch.setattr(TaskPool, "join", join)
    patch.setattr(_Tasks, "_share", tried_share)
    patch.setattr(SecondEngine, "start", begin)
