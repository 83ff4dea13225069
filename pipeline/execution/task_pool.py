"""The tasks of a phase that no worker has begun, shared by the engines of a process.

One engine takes them whole, from the front. Where two engines share a phase (G-thinkerCG, section IV), the first takes
from the front, in large ranges, and the other one from the end, in small ones: roots are in order of degree, so the
first engine gets those with the largest subtrees. Every range is a share of what is left, by the speeds that were
measured, and takes about half of the time that is left (guided self-scheduling): both engines end at about the same
time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from longwall.pipeline.execution.phase import Task

_SHARE = 0.5  # of the time that is left, that a range may take
_LEAST_SECONDS = {"cuda": 2e-3, "cpu": 2e-4}  # of a range: below, what it costs to begin one shows
_GUESSED = {"cuda": 64.0, "cpu": 1.0}  # speeds of a worker, before any is measured


@dataclass(eq=False)
class Team:
    """The workers of one engine in a phase.

    Attributes
    ----------
    engine
        Its name.
    workers
        Their number.
    longest
        Most roots of a range, for which memory is reserved.
    ranges, size, seconds
        What they have done: ranges, their sizes, and how long they took, added up over the workers.
    """

    engine: str
    workers: int
    longest: int
    ranges: int = 0
    size: int = 0
    seconds: float = 0.0

    @property
    def measured(self) -> float:
        """Size that a worker does in a second; 0 where that is not known yet."""
        return self.size / self.seconds if self.size and self.seconds > 0 else 0.0


class TaskPool:
    """Tasks that wait.

    Parameters
    ----------
    tasks
        In the order of their roots.
    teams
        The engines that take them; the first from the front, another one from the end.
    """

    def __init__(self, tasks: Sequence[Task], teams: Sequence[Team]):
        self._tasks, self._teams = deque(tasks), teams
        self._left = sum(task.size for task in tasks)
        self._lock = threading.Lock()

    def take(self, team: Team) -> Task | None:
        """Return what a worker of a team does next, None where nothing is left that is worth its while."""
        with self._lock:
            if not self._tasks:
                return None
            first = team is self._teams[0]
            task = self._tasks.popleft() if first else self._tasks.pop()
            if len(self._teams) > 1:
                taken, rest = _cut(task, self._wanted(team), team.longest, from_front=first)
                if rest is not None:
                    (self._tasks.appendleft if first else self._tasks.append)(rest)
                if taken is None:
                    return None
                task = taken
            self._left -= task.size
            return task

    def done(self, team: Team, task: Task, seconds: float) -> None:
        """Take note of what a task took."""
        with self._lock:
            team.ranges, team.size, team.seconds = team.ranges + 1, team.size + task.size, team.seconds + seconds

    def _wanted(self, team: Team) -> float:
        """Return the size of the next range of a team; 0 where it would end later than the others."""
        known = [one for one in self._teams if one.measured]
        unit = sum(one.measured / _GUESSED[one.engine] for one in known) / len(known) if known else 1.0
        speeds = {one.engine: one.measured or _GUESSED[one.engine] * unit for one in self._teams}
        speed = speeds[team.engine]
        wanted = self._left * _SHARE * speed / sum(speeds[one.engine] * one.workers for one in self._teams)
        least = speed * _LEAST_SECONDS[team.engine] if known else 0.0
        if team is self._teams[0]:
            return max(wanted, least, 1.0)
        return wanted if wanted >= least else 0.0


def _cut(task: Task, wanted: float, longest: int, *, from_front: bool) -> tuple[Task | None, Task | None]:
    """Cut a task; return what is taken, and the rest."""
    first, last, size = task
    roots = last - first
    if wanted <= 0 or (not from_front and wanted < size / roots / 2):  # a root is too much
        return None, task
    taken = min(max(int(roots * wanted / size), 1) if size else roots, longest, roots)
    if taken == roots:
        return task, None
    part = size * taken // roots
    if from_front:
        return Task(first, first + taken, part), Task(first + taken, last, size - part)
    return Task(last - taken, last, part), Task(first, last - taken, size - part)
