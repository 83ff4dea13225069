"""How the engines of a process share the tasks of a phase."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.task_pool import TaskPool, Team

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
tasks_of = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 60), st.integers(0, 500)), min_size=1, max_size=12)


def made(pieces: list[tuple[int, int, int]]) -> list[Task]:
    """Tasks in ascending order, with gaps between some of them."""
    tasks, at = [], 0
    for gap, roots, size in pieces:
        tasks.append(Task(at + gap, at + gap + roots, size))
        at += gap + roots
    return tasks


@relaxed
@given(tasks_of)
def test_one_engine_takes_the_tasks_whole_and_in_their_order(pieces: list[tuple[int, int, int]]) -> None:
    tasks, team = made(pieces), Team("cpu", 2, 10)
    pool = TaskPool(tasks, [team])
    assert [pool.take(team) for _ in tasks] == tasks
    assert pool.take(team) is None


@relaxed
@given(tasks_of, st.integers(0, 1000), st.integers(1, 70), st.integers(1, 70))
def test_two_engines_take_every_root_once(
    pieces: list[tuple[int, int, int]], seed: int, longest: int, other: int
) -> None:
    draw, tasks = random.Random(seed), made(pieces)
    teams = [Team("cuda", 1, longest), Team("cpu", 3, other)]
    pool, taken = TaskPool(tasks, teams), []
    speeds = {"cuda": draw.uniform(1, 1000), "cpu": draw.uniform(1, 1000)}
    idle: set[str] = set()
    while len(idle) < 2:
        team = draw.choice(teams)
        task = pool.take(team)
        if task is None:
            idle.add(team.engine)
            continue
        assert task.last - task.first <= max(team.longest, 1)
        taken.append(task)
        pool.done(team, task, max(task.size, 1) / speeds[team.engine])
    while (task := pool.take(teams[0])) is not None:  # what is not worth the other's while
        taken.append(task)
    roots = sorted(root for task in taken for root in range(task.first, task.last))
    assert roots == sorted(root for task in tasks for root in range(task.first, task.last))
    assert sum(task.size for task in taken) == sum(task.size for task in tasks)


def test_engines_share_by_their_speeds_and_end_together() -> None:
    total, speeds = 1_000_000, {"cuda": 9000.0, "cpu": 500.0}
    teams = [Team("cuda", 1, total), Team("cpu", 2, total)]
    pool = TaskPool([Task(0, total, total)], teams)
    free = [(0.0, 0, teams[0]), (0.0, 1, teams[1]), (0.0, 2, teams[1])]
    ends = {}
    while free:
        at, number, team = free.pop(free.index(min(free, key=lambda one: one[:2])))
        task = pool.take(team)
        if task is None:
            ends[number] = at
            continue
        seconds = task.size / speeds[team.engine]
        pool.done(team, task, seconds)
        free.append((at + seconds, number, team))
    best = total / (9000 + 2 * 500)
    assert sum(team.size for team in teams) == total
    assert max(ends.values()) < 1.02 * best
    assert teams[1].size > 0.08 * total
