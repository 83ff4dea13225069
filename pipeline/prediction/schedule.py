"""How long the workers of a cluster take for a phase: the dispatcher, simulated.

As `longwall.pipeline.cluster.dispatcher` does, ranges of equal estimated work are asked for, the longest first; a
worker has one more in its queue, answers when its time is over, and what is left is cut again. The coordinator handles
one request at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

CUTS, DEVICE_CUTS = 8, 3
"""Ranges for each worker at first; for one that has a device."""
MOST_SECONDS, LEAST_SECONDS = 5.0, 0.5
"""Of a request."""
_MOST_EVENTS = 200_000  # that are simulated; a phase of more is as long as its work, divided evenly


class Makespan(NamedTuple):
    """What the simulation found.

    Attributes
    ----------
    seconds
        Until the last worker is done.
    requests
        How many there were.
    dispatching
        Seconds in which the coordinator handled requests.
    """

    seconds: float
    requests: int
    dispatching: float


def simulate(strata: Sequence[float], slots: int, longest: float, request_seconds: float, cuts: int = CUTS) -> Makespan:
    """Simulate the workers of a phase.

    Parameters
    ----------
    strata
        Seconds of one worker for strata of equal estimated work.
    slots
        Number of workers that do a range at a time each.
    longest
        Seconds of the longest root: it cannot be divided.
    request_seconds
        What a request takes the coordinator.
    cuts
        Ranges for each worker at first.
    """
    work = sum(strata)
    pieces = _pieces(strata, cuts * slots)
    if work / MOST_SECONDS + len(pieces) > _MOST_EVENTS:
        requests = len(pieces) + int(work / MOST_SECONDS)
        spent = requests * request_seconds
        return Makespan(max(work / slots, longest, spent), requests, spent)
    waiting = [-piece for piece in pieces]
    heapify(waiting)
    free = [0.0] * slots  # when each is
    ready, left, requests, end = 0.0, work, 0, 0.0  # the coordinator, what is not asked for yet
    while waiting:
        piece = -heappop(waiting)
        at = heappop(free)
        ready = max(ready, at - request_seconds) + request_seconds  # asked for before the worker is free
        allowed = max(min(left / slots / 2, MOST_SECONDS), LEAST_SECONDS, request_seconds * slots, longest)
        done = min(piece, allowed)
        if piece - done > 0:
            heappush(waiting, -(piece - done) / 2)
            heappush(waiting, -(piece - done) / 2)
        finish = max(at, ready) + done
        heappush(free, finish)
        left, requests, end = left - done, requests + 1, max(end, finish)
    return Makespan(max(end, longest), requests, requests * request_seconds)


def _pieces(strata: Sequence[float], number: int) -> list[float]:
    """Cut strata of equal estimated work, one behind the other, into as many pieces of equal estimated work."""
    if not strata or not number:
        return []
    found, each = [], len(strata) / number
    for piece in range(number):
        begin, end, seconds = piece * each, (piece + 1) * each, 0.0
        for at in range(int(begin), min(int(end - 1e-9) + 1, len(strata))):
            seconds += strata[at] * (min(end, at + 1) - max(begin, at))
        found.append(seconds)
    return found
