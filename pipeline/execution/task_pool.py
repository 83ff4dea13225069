"""The tasks of a phase that no worker has begun, shared by the engines of a process.

One engine takes them whole, from the front. If two engines share a phase (G-thinkerCG, section IV), the run's
engine, which leads, takes ranges of roots from the front, and the second one from the end: roots are in order of
degree, so the first engine gets those with the largest subtrees. Both know how fast the other one was so far, and so
where they will meet: a range takes half of the time until then. The second engine takes none that the leading one
would have done by itself before it ends.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longwall.pipeline.execution.phase import Task

JOIN_LEFT = 0.5
"""A second engine joins if the leading one needs at least these seconds for the remaining tasks."""
LEAST_RANGE = 0.01
"""Seconds that a range takes at least: each costs a launch, or Python's lock."""
FIRST_SHARE = 1 / 256
"""Of the work: the leading engine's first range, which measures its speed."""
PROBE_SHARE = 1 / (1 << 14)
"""Of the work: ranges of the second engine until its speed is known."""


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
    warming
        Ranges that tell no speed, since workers load kernels in them.
    ranges, size
        What they have committed: ranges, and their sizes.
    work, seconds
        What they did lately, and how long it took, added up over the workers; older ranges count less.
    """

    engine: str
    workers: int
    longest: int
    warming: int = 0
    ranges: int = 0
    size: int = 0
    work: float = 0.0
    seconds: float = 0.0

    @property
    def speed(self) -> float:
        """Work that all workers do in a second; 0 where that is not known yet."""
        return self.workers * self.work / self.seconds if self.seconds > 0 else 0.0

    def learn(self, work: float, seconds: float) -> None:
        """Take note of a range."""
        if self.warming:
            self.warming -= 1
            return
        kept = 1 - 1 / (1 + self.workers)
        self.work, self.seconds = kept * self.work + work, kept * self.seconds + seconds


class TaskPool:
    """Tasks that wait.

    Parameters
    ----------
    tasks
        In the order of their roots.
    lead
        The workers of the run's engine.
    shared
        Whether a second engine may join; then the run's engine has one worker.
    clock
        Returns the seconds.
    """

    def __init__(
        self, tasks: Sequence[Task], lead: Team, *, shared: bool = False, clock: Callable[[], float] = time.monotonic
    ):
        self._whole, self._firsts = tasks, [task.first for task in tasks]
        self._waiting = deque((task.first, task.last) for task in tasks)
        self._total = self._left = sum(self._work(task) for task in tasks)
        self._lead, self._shared, self._clock = lead, shared, clock
        self._second: Team | None = None
        self._began = clock()
        self._launch: tuple[float, float] | None = None  # work of the leading engine's range, and when it began
        self._idle_since: float | None = None  # the leading engine
        self._lent, self._lent_work = 0, 0.0  # ranges that the second engine has not committed
        self._changed = threading.Condition()

    @property
    def may_join(self) -> bool:
        """Whether a second engine should open its side of the phase."""
        with self._changed:
            speed = self._lead_speed()
            there = self._shared and self._second is None and bool(self._waiting)
            return there and speed > 0 and self._left >= JOIN_LEFT * speed

    def join(self, team: Team) -> bool:
        """Let a second engine take part; return False if it came too late."""
        with self._changed:
            if self._shared and self._waiting:
                self._second = team
            return self._second is team

    def close(self) -> None:
        """Give a second engine nothing from now on."""
        with self._changed:
            self._shared, self._second = False, None
            self._changed.notify_all()

    def take(self, team: Team) -> Task | None:
        """Return the next task of a worker of a team; None if no task is left for it now."""
        with self._changed:
            if team is not self._lead:
                return self._from_end(team) if self._waiting and team is self._second else None
            if not self._waiting:
                self._idle_since = self._idle_since or self._clock()
                return None
            self._idle_since = None
            task = self._from_front(self._lead_work() if self._shared else math.inf)
            self._launch = (self._work(task), self._clock())
            return task

    def wait(self, team: Team, seconds: float) -> bool:
        """Wait until something changes; return whether there may be more for a team then."""
        with self._changed:
            if more := self._may_get(team):
                self._changed.wait(seconds)
                more = self._may_get(team)
            return more

    def done(self, team: Team, task: Task, seconds: float) -> None:
        """Take note of what a task took."""
        with self._changed:
            team.learn(self._work(task), seconds)
            if team is self._lead:
                self._launch = None
                self._changed.notify_all()

    def committed(self, team: Team, tasks: Sequence[Task]) -> None:
        """Take note of tasks whose results are safe."""
        with self._changed:
            team.ranges, team.size = team.ranges + len(tasks), team.size + sum(task.size for task in tasks)
            if team is not self._lead:
                self._returned(tasks)

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Put tasks back whose results are lost with the second engine, which takes no more."""
        with self._changed:
            ranges = sorted([*self._waiting, *((task.first, task.last) for task in tasks)])
            self._waiting.clear()
            for first, last in ranges:  # in one piece where they follow each other, since each costs a launch
                if self._waiting and self._waiting[-1][1] == first and self._origin(first).first != first:
                    first = self._waiting.pop()[0]
                self._waiting.append((first, last))
            self._left += sum(self._work(task) for task in tasks)
            self._returned(tasks)
        self.close()

    @property
    def overdue(self) -> bool:
        """Whether the leading engine has waited as long as it needs for what the second one has not committed."""
        with self._changed:
            if self._idle_since is None or not self._lent or not self._lead.speed:
                return False
            return self._clock() - self._idle_since >= max(self._lent_work / self._lead.speed, LEAST_RANGE)

    def _may_get(self, team: Team) -> bool:
        return bool(self._waiting or self._lent) if team is self._lead else bool(self._waiting) and team is self._second

    def _returned(self, tasks: Sequence[Task]) -> None:
        self._lent, self._lent_work = self._lent - len(tasks), self._lent_work - sum(map(self._work, tasks))
        self._changed.notify_all()

    def _lead_speed(self) -> float:
        """Return the leading engine's speed: no more than its range shows that it is at; 0 where nothing is known."""
        speed = self._lead.speed
        if self._launch is None:
            return speed
        work, began = self._launch
        most = work / max(self._clock() - began, 1e-9)
        return min(speed or most, most)

    def _lead_work(self) -> float:
        """Return the work of the leading engine's next range, which is at none."""
        speed, now = self._lead.speed, self._clock()
        if not speed:
            return self._total * FIRST_SHARE
        meet = self._left / (speed + (self._second.speed if self._second is not None else 0.0))
        if self._second is None and meet < JOIN_LEFT:
            return math.inf
        seconds = max(min(meet / 2, now - self._began), LEAST_RANGE)  # speeds of short ranges say little
        return speed * (seconds if meet - seconds >= LEAST_RANGE else max(meet, LEAST_RANGE))

    def _from_front(self, work: float) -> Task:
        """Take an amount of work of the first task, or all of it."""
        first, last = self._waiting.popleft()
        end = min(first + self._roots(first, min(work, self._total)), last)
        if end < last:
            self._waiting.appendleft((end, last))
        return self._taken(first, end)

    def _from_end(self, team: Team) -> Task | None:
        """Take a range for a worker of the second engine, if it will end before the leading one could have done it."""
        first, last = self._waiting[-1]
        work, speed = self._total * PROBE_SHARE, self._lead_speed()
        lead_left = math.inf
        if team.speed and speed:
            busy = max(self._launch[0] / speed - (self._clock() - self._launch[1]), 0.0) if self._launch else 0.0
            lead_left = busy + self._left / speed
            meet = lead_left * speed / (speed + team.speed)
            work = max(meet / 2, LEAST_RANGE) * team.speed / team.workers
        roots = min(self._roots(last - 1, work), team.longest, last - first)
        if team.speed and roots * self._density(last - 1) * team.workers / team.speed > lead_left:
            return None
        self._waiting.pop()
        if first < last - roots:
            self._waiting.append((first, last - roots))
        task = self._taken(last - roots, last)
        self._lent, self._lent_work = self._lent + 1, self._lent_work + self._work(task)
        return task

    def _taken(self, first: int, last: int) -> Task:
        """Return a part of a task; the sizes of all its parts add up to its own."""
        whole = self._origin(first)
        roots = whole.last - whole.first
        before, behind = (whole.size * (root - whole.first) // roots for root in (first, last))
        task = Task(first, last, behind - before)
        self._left -= self._work(task)
        return task

    def _origin(self, root: int) -> Task:
        """Return the task of the phase that a root is of."""
        return self._whole[bisect_right(self._firsts, root) - 1]

    def _density(self, root: int) -> float:
        """Return the work of a root. Sizes are whole numbers, and those of roots would be 0."""
        task = self._origin(root)
        return (task.size or 1) / (task.last - task.first)

    def _work(self, task: Task) -> float:
        return self._density(task.first) * (task.last - task.first)

    def _roots(self, root: int, work: float) -> int:
        """Return the number of roots like this one that have an amount of work."""
        return max(round(work / self._density(root)), 1)
