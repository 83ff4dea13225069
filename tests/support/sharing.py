"""Phases that two engines share however short they are."""

from __future__ import annotations

import threading

import pytest

from longwall.pipeline.execution import task_pool
from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.task_pool import TaskPool, Team
from longwall.pipeline.execution.thread_executor import _Tasks


def share_every_phase(patch: pytest.MonkeyPatch, *, stops: bool = False) -> None:
    """Let a second engine join at once; the first one waits for its first range before it takes its own second one.

    Even if the second engine is late on a busy machine, it is not stopped, unless a test is about that.
    """
    for name in ("JOIN_LEFT", "LEAST_RANGE"):
        patch.setattr(task_pool, name, 0.0)
    if not stops:
        patch.setattr(TaskPool, "overdue", False)
    tried: dict[TaskPool, threading.Event] = {}
    begun: set[TaskPool] = set()
    take, share = TaskPool.take, _Tasks._share

    def patient_take(pool: TaskPool, team: Team) -> Task | None:
        event = tried.setdefault(pool, threading.Event())
        lead = team is pool._lead
        if lead and pool in begun and pool._shared and pool._waiting:
            event.wait(20)
        task = take(pool, team)
        if lead:
            begun.add(pool)
        elif task is not None:
            event.set()
        return task

    def tried_share(tasks: _Tasks, second: object) -> None:
        try:
            share(tasks, second)  # type: ignore[arg-type]
        finally:
            tried.setdefault(tasks._pool, threading.Event()).set()

    patch.setattr(TaskPool, "take", patient_take)
    patch.setattr(_Tasks, "_share", tried_share)
