"""Do ranges of roots step by step, and stop when their time is over."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Sequence

from longwall.pipeline.execution.thread_executor import Task, Worker
from longwall.pipeline.run_store.commit_log import Range
from longwall.storage.errors import RunError

_STEPS = 16  # of a range: its first step is such a part, then steps take such a part of the time
# That a step on a device should take: kernels end when their longest block does, however few roots they were given.
# Ever shorter steps made 5-cliques of R-MAT 20 with 71 million edges take four times as long as tasks of 0.1 s. So a
# device does whole tasks, as long as they take no longer.
_DEVICE_SECONDS = 1.0
_MOST_GROWTH = 4.0
_SHORT = 2.0  # a step that is so much shorter than it should be


def do_ranges(
    worker: Worker,
    tasks: Sequence[Task],
    ranges: Sequence[Range],
    seconds: float,
    cancel: threading.Event,
    *,
    on_device: bool,
) -> list[Range]:
    """Do ranges, or as much of them as the time allows: one step at least.

    Parameters
    ----------
    worker
        Does it; no step is longer than a task.
    tasks
        As this process would deal them out: its memory is booked for them.
    ranges
        What to do, in this order.
    seconds
        The time.
    cancel
        Set when nobody wants the ranges any more.
    on_device
        Whether the worker's engine is a device.

    Returns
    -------
    list of (int, int)
        What is done: the first of the ranges, and of the last one perhaps only the beginning.

    Raises
    ------
    RunError
        If they were cancelled.
    """
    seconds = max(seconds, 1e-9)
    ends, until = [task.last for task in tasks], time.monotonic() + seconds
    of_step = max(seconds / _STEPS, _DEVICE_SECONDS if on_device else 0.0)
    done: list[Range] = []
    for first, last in ranges:
        if done and time.monotonic() >= until:
            break
        upto = _do_range(worker, ends, first, last, (seconds, of_step, until), cancel, on_device=on_device)
        done.append((first, upto))
        if upto < last:
            break
    return done


def _do_range(
    worker: Worker,
    ends: list[int],
    first: int,
    last: int,
    times: tuple[float, float, float],
    cancel: threading.Event,
    *,
    on_device: bool,
) -> int:
    """Do a range, or a part of it; gives the end of what is done. Times: of all, of a step, and when it is over."""
    seconds, of_step, until = times
    at, length = first, max(int((last - first) * min(of_step / seconds, 1.0)), 1)
    while True:
        start, upto = time.monotonic(), min(at + length, last, ends[bisect_right(ends, at)])
        worker.run(at, upto)
        if cancel.is_set():
            raise RunError("the run was cancelled")
        now = time.monotonic()
        if upto == last or now >= until:
            return upto
        growth = of_step / max(now - start, 1e-9)
        length = max(int((upto - at) * min(max(growth, 1 / _MOST_GROWTH), _MOST_GROWTH)), 1)
        if on_device and growth >= _SHORT:
            length = last - upto
        at = upto
