"""How the engines of a process share the tasks of a phase."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.sharing.task_pool import TaskPool, Team

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
    pool = TaskPool(tasks, team)
    assert [pool.take(team) for _ in tasks] == tasks
    assert pool.take(team) is None


@relaxed
@given(tasks_of, st.integers(0, 1000), st.integers(1, 70))
def test_two_engines_take_every_root_once(pieces: list[tuple[int, int, int]], seed: int, longest: int) -> None:
    draw, tasks, now = random.Random(seed), made(pieces), [0.0]
    lead, second = Team("cuda", 1, 60, draw.random() < 0.7), Team("cpu", 3, longest)
    pool, taken = TaskPool(tasks, lead, shared=True, clock=lambda: now[0]), []
    speeds = {lead: draw.uniform(1, 1000), second: draw.uniform(1, 1000)}
    joins, breaks = draw.randrange(20), draw.choice([None, draw.randrange(40)])
    for step in range(300):
        now[0] += draw.uniform(0, 1)
        if step == joins and (probe := pool.probe(second)) is not None:
            assert probe.last - probe.first <= longest
            if draw.random() < 0.3:
                taken += [task for task in [pool.take(lead)] if task]
            taken += [probe] if pool.join(second, probe) else []
        team = draw.choice([lead, second])
        task = pool.take(team)
        if task is None:
            continue
        assert team is lead or task.last - task.first <= longest
        if step == breaks and team is second:
            pool.give_back([task])
            assert pool.take(second) is None
            continue
        taken.append(task)
        pool.done(team, task, max(task.size, 1) / speeds[team])
    pool.close()
    while (task := pool.take(lead)) is not None:
        taken.append(task)
    assert not pool.left
    roots = sorted(root for task in taken for root in range(task.first, task.last))
    assert roots == sorted(root for task in tasks for root in range(task.first, task.last))
    assert sum(task.size for task in taken) == sum(task.size for task in tasks)


def test_a_probe_is_of_no_use_once_its_roots_are_taken() -> None:
    lead, second = Team("cuda", 1, 10, cuts=True), Team("cpu", 1, 10)
    pool = TaskPool([Task(0, 2, 2)], lead, shared=True)
    probe = pool.probe(second)
    assert probe == (1, 2, 1)
    assert pool.take(lead) == (0, 1, 1)
    assert pool.take(lead) == (1, 2, 1)
    assert not pool.join(second, probe)
    assert not pool.joined


def test_no_engine_joins_a_pool_that_is_closed() -> None:
    lead, second = Team("cuda", 1, 10), Team("cpu", 1, 10)
    pool = TaskPool([Task(0, 10, 10)], lead, shared=True)
    probe = pool.probe(second)
    assert probe is not None
    pool.close()
    assert not pool.join(second, probe)
    assert pool.probe(second) is None
    assert pool.take(second) is None
    assert pool.take(lead) == (0, 10, 10)
