"""The tasks of a phase that no worker has begun, shared by the engines of a process.

One engine takes them whole, from the front. Where two engines share a phase (G-thinkerCG, section IV), the run's engine
takes from the front, whole tasks or large ranges, and the second one from the end, in small ones: roots are in order of
degree, so the first engine gets those with the largest subtrees. How large ranges are is decided in `engine_choice.py`.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.sharing.engine_choice import (
    LATE,
    LEAST_GAIN,
    MIXED,
    OVERDUE,
    PROBE_SHARE,
    REST,
    Situation,
    adds_little,
    lead_takes,
    may_join,
    second_takes,
)
from longwall.pipeline.execution.sharing.pace import Pace
from longwall.pipeline.execution.sharing.trials import Trials


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
    cuts
        Whether it takes tasks in ranges where a second engine may join.
    beginning
        Seconds that one needs to begin a range; 0 where that is not known.
    ranges, size
        What they have committed: ranges, and their sizes.
    work, seconds
        The same lately: the work, and how long it took, added up over the workers; older ranges count less.
    last
        The largest work of the ranges that they did lately.
    """

    engine: str
    workers: int
    longest: int
    cuts: bool = False
    beginning: float = 0.0
    ranges: int = 0
    size: int = 0
    work: float = 0.0
    seconds: float = 0.0
    last: float = 0.0

    @property
    def speed(self) -> float:
        """Work that all workers do in a second; 0 where that is not known yet."""
        return self.workers * self.work / self.seconds if self.seconds > 0 else 0.0

    def learn(self, work: float, seconds: float) -> None:
        """Take note of a range."""
        kept = 1 - 1 / (1 + self.workers)
        self.work, self.seconds = kept * self.work + work, kept * self.seconds + seconds
        self.last = max(work, kept * self.last)


@dataclass(eq=False)
class _Launch:
    """The range that the leading engine is at.

    Attributes
    ----------
    work, began
        Its work, and when it began.
    clean
        Whether the second engine was at nothing then.
    alone
        Whether it has been at nothing since then, too.
    """

    work: float
    began: float
    alone: bool
    clean: bool


_LEAST_SECONDS = 1e-9


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

    Attributes
    ----------
    joined
        Whether a second engine has joined.
    """

    def __init__(
        self, tasks: Sequence[Task], lead: Team, *, shared: bool = False, clock: Callable[[], float] = time.monotonic
    ):
        self._whole, self._firsts = tasks, [task.first for task in tasks]
        self._waiting = deque((task.first, task.last) for task in tasks)
        self._total = self._left = sum(self._work(task) for task in tasks)
        self._lead, self._shared, self._clock = lead, shared, clock
        self._second: Team | None = None
        self._launch: _Launch | None = None
        self._began = self._since = clock()
        self._pace = Pace()  # of the leading engine
        self._trials = Trials()
        self._at_work, self._at_work_on = 0, 0.0  # ranges that the second engine is at, and their work
        self._lead_work = self._second_work = 0.0  # since the second engine joined
        self._rests_until, self._yielded = 0.0, False  # the leading engine, while there is a second one
        self._uncommitted = 0.0  # work that the second engine has taken
        self._changed = threading.Condition()
        self.joined = False

    @property
    def left(self) -> bool:
        """Whether tasks wait."""
        return bool(self._waiting)

    @property
    def may_join(self) -> bool:
        """Whether a second engine should open its side of the phase."""
        with self._changed:
            return self._shared and not self.joined and may_join(self._situation())

    def take(self, team: Team) -> Task | None:
        """Return what a worker of a team does next, None where there is nothing for it now."""
        with self._changed:
            if not self._waiting:
                return None
            if team is not self._lead:
                return self._assist(team) if team is self._second and not self._paused else None
            if self._resting:
                return None
            if not self._shared:
                return self._from_front(None)
            work = lead_takes(self._situation()) if team.cuts else None
            if work == 0 and not self._yielded:  # the second engine will probably have done it before
                self._rests_until, self._yielded = self._clock() + self._pace.fixed, True
                return None
            task = self._from_front(work or None)
            self._launch = _Launch(self._work(task), self._clock(), not self._at_work, not self._at_work)
            self._changed.notify_all()
            return task

    def done(self, team: Team, task: Task, seconds: float) -> None:
        """Take note of what a task took."""
        with self._changed:
            work = self._work(task)
            team.learn(work, seconds)
            if team is not self._lead:
                self._second_work += work
                self._at_work, self._at_work_on = self._at_work - 1, self._at_work_on - work
                return
            self._pace.learn(work, seconds)
            launch, self._launch = self._launch, None
            if launch is not None:
                self._look_back(launch, seconds)
            self._changed.notify_all()

    def _look_back(self, launch: _Launch, seconds: float) -> None:
        """Find out by a range of the leading engine whether sharing is worth it."""
        second, now, trials = self._second, self._clock(), self._trials
        if second is None or not second.speed or launch.began < self._since or launch.alone != trials.pausing:
            return
        if not trials.pausing:
            self._lead_work += launch.work
            assisted = max(self._second_work, second.speed * (now - self._since))
            if adds_little(assisted, self._lead_work):
                self._end_sharing()
                return
            if adds_little(self._lead_work, self._second_work):
                self._rests_until = now + REST * seconds
                return
        if self._lead.cuts and not self._long and not (trials.closing and launch.clean):
            speed = launch.work / max(seconds - self._pace.fixed, seconds / 2)
            if trials.learn(speed, second.speed, now - self._began):
                self._end_sharing()

    def committed(self, team: Team, tasks: Sequence[Task]) -> None:
        """Take note of tasks whose results are safe."""
        with self._changed:
            team.ranges, team.size = team.ranges + len(tasks), team.size + sum(task.size for task in tasks)
            if team is not self._lead:
                self._uncommitted -= sum(self._work(task) for task in tasks)

    @property
    def lost_seconds(self) -> float:
        """Seconds that the leading engine would need for what the second one has taken and not committed."""
        with self._changed:
            return self._pace.seconds(self._uncommitted) if self._pace.speed else math.inf

    def probe(self, team: Team) -> Task | None:
        """Return the last range, which stays in the pool: what a second engine does before it joins."""
        with self._changed:
            if not self._waiting or not self._shared:
                return None
            first, last = self._waiting[-1]
            roots = min(self._roots(last - 1, PROBE_SHARE * self._total), team.longest)
            return self._task(max(last - roots, first), last)

    def join(self, team: Team, probe: Task) -> bool:
        """Let a second engine take part that has done its probe; False where it came too late, and is of no use."""
        with self._changed:
            if not self._shared or not self._waiting:
                return False
            first, last = self._waiting[-1]
            if last != probe.last or first > probe.first:
                return False
            self._cut_end(probe.first)
            self._second, self._since, self.joined = team, self._clock(), True
            return True  # how long the probe took says nothing: kernels were loaded

    def wait(self, team: Team, seconds: float) -> bool:
        """Wait until the leading engine begins or ends a range; return whether there may be more for a team then."""
        with self._changed:
            if self._waiting and team in (self._lead, self._second):
                self._changed.wait(seconds)
            return bool(self._waiting) and (team is self._second or team is self._lead)

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Put tasks back whose results are lost with the second engine, which takes no more."""
        with self._changed:
            work = sum(self._work(task) for task in tasks)
            self._put_back(tasks)
            self._left, self._uncommitted = self._left + work, self._uncommitted - work
            self._end_sharing()

    def close(self) -> None:
        """Let no engine join from now on."""
        with self._changed:
            self._end_sharing()

    @property
    def _proven(self) -> bool:
        """Whether the leading engine is known to be fast enough beside the second one, or to find out is too much."""
        return self._trials.slowed > 0 or self._long

    @property
    def _long(self) -> bool:
        """Whether the leading engine's ranges have to be long, so that a trial costs more than it could show."""
        pace = self._pace
        return pace.mostly_fixed or (pace.fixed > 0 and 2 * pace.fixed > LEAST_GAIN * pace.seconds(self._left))

    @property
    def _paused(self) -> bool:
        """Whether the second engine waits, so that it is seen how fast the leading one is without it."""
        launch, pace = self._launch, self._pace
        if launch is None or not pace.speed:
            return self._trials.pausing
        times = (self._clock() - launch.began) / pace.seconds(launch.work)
        if self._trials.pausing:
            return times < (OVERDUE if launch.clean else MIXED)
        if self._proven or pace.single or not self._lead.cuts:
            return False
        return LATE < times < OVERDUE if launch.began >= self._since else times < LATE

    @property
    def _resting(self) -> bool:
        """Whether the leading engine leaves the work to the second one."""
        return self._second is not None and self._clock() < self._rests_until

    def _end_sharing(self) -> None:
        self._shared, self._second = False, None
        self._changed.notify_all()

    def _situation(self) -> Situation:
        now, pace = self._clock(), self._pace
        speed, busy = pace.speed, 0.0
        if self._launch is not None:
            ran, work = now - self._launch.began, self._launch.work
            most = work / max(ran - pace.fixed, _LEAST_SECONDS)
            speed = min(speed or most, most)
            busy = max(pace.fixed + work / speed - ran, 0.0)
        alone = Situation(now - self._began, self._total, self._left, speed, pace.fixed, lead_busy=busy)
        alone = replace(alone, lead_last=pace.last, learning=pace.single)
        if (second := self._second) is None:
            return alone
        alone = replace(alone, joined=True, proven=self._proven, at_work_on=self._at_work_on)
        return replace(alone, speed=second.speed, workers=second.workers, last=second.last, beginning=second.beginning)

    def _assist(self, team: Team) -> Task | None:
        """Take a range for the second engine."""
        task = self._from_end(second_takes(self._situation()), team)
        if task is not None:
            self._at_work, self._at_work_on = self._at_work + 1, self._at_work_on + self._work(task)
            if self._launch is not None:
                self._launch.alone = False
        return task

    def _from_front(self, work: float | None) -> Task:
        """Take so much work of the first task, or all of it."""
        first, last = self._waiting.popleft()
        end = last if work is None else min(first + self._roots(first, work), last)
        if end < last:
            self._waiting.appendleft((end, last))
        return self._taken(first, end)

    def _from_end(self, work: float, team: Team) -> Task | None:
        first, last = self._waiting[-1]
        if work <= 0 or (team.speed and 2 * work < self._density(last - 1)):  # a root is too much
            return None
        return self._cut_end(max(last - min(self._roots(last - 1, work), team.longest), first))

    def _put_back(self, tasks: Sequence[Task]) -> None:
        """Have ranges wait again: in one piece where they follow each other, since each costs a launch."""
        ranges = sorted([*self._waiting, *((task.first, task.last) for task in tasks)])
        self._waiting.clear()
        for first, last in ranges:
            if self._waiting and self._waiting[-1][1] == first and self._origin(first).first != first:
                first = self._waiting.pop()[0]
            self._waiting.append((first, last))

    def _cut_end(self, at: int) -> Task:
        first, last = self._waiting.pop()
        if first < at:
            self._waiting.append((first, at))
        task = self._taken(at, last)
        self._uncommitted += self._work(task)
        return task

    def _taken(self, first: int, last: int) -> Task:
        task = self._task(first, last)
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
        """Return how many roots like one have so much work."""
        return max(round(work / self._density(root)), 1)

    def _task(self, first: int, last: int) -> Task:
        """Return a part of a task; the sizes of all its parts add up to its own."""
        whole = self._origin(first)
        roots = whole.last - whole.first
        before, behind = (whole.size * (root - whole.first) // roots for root in (first, last))
        return Task(first, last, behind - before)
