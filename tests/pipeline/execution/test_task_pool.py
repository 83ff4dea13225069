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
    pool = TaskPool(tasks, team)
    assert [pool.take(team) for _ in tasks] == tasks
    assert pool.take(team) is None


@relaxed
@given(tasks_of, st.integers(0, 1000), st.integers(1, 70))
def test_two_engines_take_every_root_once(pieces: list[tuple[int, int, int]], seed: int, longest: int) -> None:
    draw, tasks, now = random.Random(seed), made(pieces), [0.0]
    lead, second = Team("cuda", 1, 60), Team("cpu", 3, longest, warming=draw.randrange(4))
    pool, taken = TaskPool(tasks, lead, shared=True, clock=lambda: now[0]), []
    speeds = {lead: draw.uniform(1, 1000), second: draw.uniform(1, 1000)}
    joins, breaks = draw.randrange(20), draw.choice([None, draw.randrange(40)])
    for step in range(300):
        now[0] += draw.uniform(0, 1)
        if step == joins:
            pool.join(second)
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
    roots = sorted(root for task in taken for root in range(task.first, task.last))
    assert roots == sorted(root for task in tasks for root in range(task.first, task.last))
    assert sum(task.size for task in taken) == sum(task.size for task in tasks)


def test_no_engine_joins_a_pool_that_is_closed() -> None:
    lead, second = Team("cuda", 1, 10), Team("cpu", 1, 10)
    pool = TaskPool([Task(0, 10, 10)], lead, shared=True)
    pool.close()
    assert not pool.join(second)
    assert pool.take(second) is None
    assert pool.take(lead) == (0, 10, 10)


def test_no_engine_joins_a_pool_that_is_empty() -> None:
    lead, second = Team("cuda", 1, 10), Team("cpu", 1, 10)
    pool = TaskPool([Task(0, 1, 10)], lead, shared=True)
    assert pool.take(lead) == (0, 1, 10)
    assert not pool.join(second)


def test_engines_take_half_of_what_they_do_until_they_meet() -> None:
    now = [0.0]
    lead, second = Team("cuda", 1, 1000), Team("cpu", 2, 1000)
    pool = TaskPool([Task(0, 2560, 2560)], lead, shared=True, clock=lambda: now[0])
    assert pool.take(lead) == (0, 10, 10)
    assert pool.join(second)
    probe = pool.take(second)
    assert probe == (2559, 2560, 1)
    now[0] = 1.0
    pool.done(lead, Task(0, 10, 10), 1.0)
    pool.done(second, probe, 0.1)  # 20 roots a second by two workers
    # 2,549 roots are left: both meet after 85 s; a range of the lead takes no longer than the phase has run
    assert pool.take(lead) == (10, 20, 10)
    # The lead needs 1 + 253.9 s by itself; both meet after 85 s, and the second engine has two workers.
    assert pool.take(second) == (2134, 2559, 425)


def test_the_second_engine_takes_nothing_that_the_lead_does_sooner() -> None:
    now = [0.0]
    lead, second = Team("cuda", 1, 1000), Team("cpu", 1, 1000)
    pool = TaskPool([Task(0, 256, 256)], lead, shared=True, clock=lambda: now[0])
    first = pool.take(lead)
    assert first is not None
    assert pool.join(second)
    probe = pool.take(second)
    assert probe is not None
    now[0] = 1.0
    pool.done(lead, first, 1.0)
    pool.done(second, probe, 1000.0)  # the lead needs 254 s for all that is left, the second engine 1,000 s for a root
    assert pool.take(second) is None


def test_the_lead_waits_for_the_second_engine_as_long_as_the_work_would_take_it() -> None:
    now = [0.0]
    lead, second = Team("cuda", 1, 1000), Team("cpu", 1, 1000)
    pool = TaskPool([Task(0, 2, 2)], lead, shared=True, clock=lambda: now[0])
    first = pool.take(lead)
    assert first == (0, 1, 1)
    assert pool.join(second)
    lost = pool.take(second)
    assert lost == (1, 2, 1)
    now[0] = 1.0
    pool.done(lead, first, 1.0)
    assert pool.take(lead) is None
    now[0] = 1.9
    assert not pool.overdue
    assert pool.wait(lead, 0.0)
    now[0] = 2.1
    assert pool.overdue
    pool.give_back([lost])
    assert not pool.overdue
    assert pool.take(lead) == lost
