"""When a second engine joins a phase, and how much either takes at a time: the policy, and all of its thresholds.

The run's engine, which leads, takes ranges of roots from the front, the second one from the end. Sharing must never
cost more than a few percent:

- A launch of the leading engine takes as long as its slowest root, whatever else there is in it. So where the graph is
  in its memory its tasks stay whole, and only phases of several tasks are shared. Where it waits for the host link
  instead, it takes half of what is left, by the speeds that were measured, but no range of less than `LEAST_LAUNCH`.
- Nothing waits for the second engine to begin. It opens its side beside the running phase, and its first range, which
  may have to load kernels, stays in the pool until it is done: if the leading engine takes that range first, the result
  is dropped.
- A leading engine that turns out to be the slower one is waited for while it does its last range. So its ranges are
  short against the time that the phase has run, too.
- Otherwise all that is ever waited for are the last ranges of the second engine. They are expected to take at most half
  of the time that the leading engine will still be busy and, of a slower one, `WAIT_SHARE` of the time so far. Work is
  misjudged, though, since one root may take longer than millions of others: a worker that lets the leading engine wait
  for longer than that would need to do its uncommitted ranges, or `LEAST_WAIT`, is stopped, and the leading engine does
  them.
- A range of the leading engine may take a fixed time besides its work (`pace.py`). Once that is known its ranges are
  long against it, up to its whole share of what is left, and it leaves the rest to the second engine where that needs
  less than the fixed time.
- The leading engine may be slower beside the second one, since both need Python's lock, cores, and the host's memory.
  So the second one begins between two ranges of the leading engine. It pauses once that has done one beside it, for one
  range, and again where the sum is less than the leading engine alone would do (`trials.py`): then it leaves.
- A second engine that adds less than `LEAST_GAIN` leaves: it competes for memory and for Python's lock. A leading
  engine that adds less rests for `REST` times as long as its last range took: the second one may wait for it in the
  end, but the range may have had the roots with the most work, too.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

CUT_ACCESS: Container[str] = ("managed", "adaptive", "zero-copy")
"""Where the graph's adjacency is if tasks of the leading engine are cut into ranges."""
FIRST_SHARE = 1 / 1024
"""Of the work: the first such range, which measures its speed; often it has the hubs."""
LEAST_LAUNCH = 0.01
"""Seconds that a later range of it takes at least: cutting off the end of a launch costs up to a millisecond."""
JOIN_AFTER = 0.03
"""Seconds that a phase has run before a second engine joins: most phases are over then."""
JOIN_LEFT = 0.75
"""Seconds that the leading engine will need for what is left then. An H200 took 0.02 to 0.2 s longer beside 16 cores,
which wait for the same lock, in phases of 0.2 to 0.6 s that the cores could not have made much shorter."""
PROBE_LEFT = 0.1
"""The same where the second engine looks how fast it is."""
PROBE_SHARE = 1 / (1 << 14)
"""Of the work: ranges of a second engine whose speed is not known; a few milliseconds, if the phase takes a second."""
LEARN_GROWTH = 4
"""Times the work of the first range, that the second one has: together they tell the time that every range takes."""
LEAST_TIMES = 8.0
"""Times as long as every range takes besides its work, that the work of the leading engine's takes at least."""
LEAD_GROWTH = 8
"""Times the work of its last range that one of the leading engine has at most: the first roots may be light ones."""
GROWTH = 4
"""Times the work of its last ranges that one of the second engine has at most: work differs from root to root."""
WAIT_SHARE = 0.1
"""Of the time that the phase has run, that a range of the slower engine takes at most."""
ALONE_SHARE = 0.25
"""Of the same time, that a range of the leading engine takes at most before a second one has joined."""
LEAST_RANGE = 1e-3
"""Seconds that it takes at least."""
LOCK_SHARE = 0.25
"""Of Python's lock that all workers of the second engine may have to begin ranges: the leading engine needs it, too."""
LEAST_WAIT = 0.005
"""Seconds that the leading engine waits for the last ranges of the second one, at least."""
COMMIT_SECONDS = 0.5
"""Of work that a worker of the second engine may lose where it is stopped."""
LEAST_GAIN = 0.03
"""Of what the leading engine did meanwhile: what the second one must do to stay."""
CLEARLY = 1.5
"""Times the speed that the leading engine had beside the second one: the next roots may be so much lighter."""
LATE, OVERDUE, MIXED = 2.0, 3.0, 9.0
"""Times as long as expected, that a range of the leading engine takes when the second one pauses; and when it goes on
again, where it was at nothing, and where it was at work, when the range began."""
REST = 2.0
"""Times as long as its last range took, that a leading engine rests that added too little."""
BUDGET_SHARE = 0.5
"""Of what is free of the host's budget, that a second engine has for itself."""


def runs_beside(kind: str, access: str) -> bool:
    """Return whether a run opens a second engine.

    Parameters
    ----------
    kind
        ``engine.kind``; the run's engine is a device's.
    access
        Where the graph's adjacency is. With "auto" the host helps where the device's budget does not hold it: then the
        device waits for the host link, and the host's cores do not.
    """
    return kind == "both" or (kind == "auto" and access in ("adaptive", "zero-copy"))


def cuts_tasks(access: str) -> bool:
    """Return whether the leading engine takes its tasks in ranges, with the graph's adjacency there."""
    return access in CUT_ACCESS


@dataclass(frozen=True)
class Situation:
    """What is known of a phase that two engines share.

    Attributes
    ----------
    elapsed
        Seconds that it has run.
    total, left
        Its work in all, and what no engine has taken yet.
    lead_speed
        Work a second of the leading engine: measured or, where its range takes longer than expected, the most that it
        can be; 0 where it has not begun.
    lead_fixed
        Seconds that every range of it takes besides.
    learning
        Whether it has done one range alone, which cannot tell these from the speed.
    at_work_on
        Work of the ranges that the second engine is at.
    joined, proven
        Whether a second engine has joined, and whether the leading one was seen to be fast enough beside it.
    lead_busy
        Seconds until its range will probably end.
    speed
        The same of the second engine's workers, all together; 0 where it is not known.
    workers
        Their number.
    last
        The largest range that they did lately.
    lead_last
        The same of the leading engine.
    beginning
        Seconds that a worker of the second engine needs to begin a range, with Python's lock.
    """

    elapsed: float
    total: float
    left: float
    lead_speed: float = 0.0
    lead_fixed: float = 0.0
    learning: bool = False
    at_work_on: float = 0.0
    joined: bool = False
    proven: bool = False
    lead_busy: float = 0.0
    speed: float = 0.0
    workers: int = 1
    last: float = 0.0
    lead_last: float = 0.0
    beginning: float = 0.0

    @property
    def lead_left(self) -> float:
        """Seconds that the leading engine will still need by itself."""
        return self.lead_busy + self.lead_fixed + self.left / self.lead_speed if self.lead_speed else 0.0

    @property
    def joint_left(self) -> float:
        """Seconds that both need for what is left."""
        work = self.left + self.at_work_on + self.lead_speed * self.lead_fixed
        return self.lead_busy + work / (self.lead_speed + self.speed)


def may_join(now: Situation) -> bool:
    """Return whether a second engine should open its side of the phase."""
    return now.elapsed >= JOIN_AFTER and now.lead_left - now.lead_busy >= JOIN_LEFT


def adds_little(work: float, others: float) -> bool:
    """Return whether an engine adds too little to what the other one did in the same time."""
    return work < LEAST_GAIN * others


def stops(waited: float, lost: float) -> bool:
    """Return whether the leading engine should do what the workers of the second one are still at.

    Parameters
    ----------
    waited
        Seconds that the leading engine has had nothing to do.
    lost
        Seconds that it would need for all that these workers have not committed.
    """
    return waited >= max(LEAST_WAIT, lost)


def lead_takes(now: Situation) -> float:
    """Return the work of the leading engine's next range; 0 where the second one will have done all of it before."""
    if not now.lead_last:
        return now.total * FIRST_SHARE
    if now.speed and now.left <= now.speed * now.lead_fixed:
        return 0.0
    learned = LEARN_GROWTH * now.lead_last
    if now.learning and (not now.joined or learned <= WAIT_SHARE * now.joint_left * now.lead_speed):
        return min(learned, now.left)
    share = now.joint_left - now.lead_fixed  # seconds of work until both have nothing left
    seconds = now.joint_left / 2
    if not now.joined:
        seconds = min(seconds, ALONE_SHARE * now.elapsed)
    elif now.lead_speed < now.speed or not now.proven:
        seconds = min(seconds, WAIT_SHARE * now.elapsed)
    least = LEAST_LAUNCH if now.joined and not now.proven else max(LEAST_LAUNCH, LEAST_TIMES * now.lead_fixed)
    most = max(LEAD_GROWTH * now.lead_last, now.lead_speed * LEAST_TIMES * now.lead_fixed)
    taken = now.lead_speed * min(max(seconds, least), share)
    rest = now.lead_speed * (LEAST_LAUNCH if now.joined else least)
    return max(min(taken if now.left - taken > rest else now.left, most), 0.0)


def loses(beside: float, second: float, alone: float) -> bool:
    """Return whether two engines do less together, in a second, than would make sharing worth it.

    Parameters
    ----------
    beside, second
        Work a second of the leading engine beside the second one, and of that.
    alone
        The same of the leading engine alone.
    """
    return beside + second < (1 + LEAST_GAIN) * alone


def second_takes(now: Situation) -> float:
    """Return the work of the next range of a worker of the second engine; 0 where it had better wait."""
    if not now.speed:
        return now.total * PROBE_SHARE if now.lead_left >= PROBE_LEFT else 0.0
    least = max(LEAST_RANGE, now.beginning * now.workers / LOCK_SHARE)
    seconds = max(min(now.joint_left, now.left / now.speed) / 2, least)
    if now.speed < now.lead_speed:
        seconds = min(seconds, WAIT_SHARE * now.elapsed)
    if seconds < least or 2 * seconds > now.lead_left:
        return 0.0
    return min(seconds * now.speed / now.workers, GROWTH * now.last)
