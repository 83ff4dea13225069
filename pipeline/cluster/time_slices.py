"""Do ranges of roots in time slices, and stop when their time is over."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Sequence

from longwall.pipeline.execution.phase import Task, Worker
from longwall.pipeline.run_store.commit_log import Range
from longwall.storage.errors import RunError

_SLICES = 16  # of a range: its first slice is such a part, then slices take such a part of the time
# That a slice on a device should take: kernels end when their longest block does, however few roots they were given.
# Ever shorter slices made 5-cliques of R-MAT 20 with 71 million edges take four times as long as tasks of 0.1 s. So a
# device does whole tasks, as long as they take no longer.
_DEVICE_SECONDS = 1.0
_MOST_GROWTH = 4.0
_SHORT = 2.0  # a slice that is shorter than it should be by this factor


def do_ranges(
    worker: Worker,
    tasks: Sequence[Task],
    ranges: Sequence[Range],
    seconds: float,
    cancel: threading.Event,
    *,
    on_device: bool,
    whole_tasks: bool = False,
) -> list[Range]:
    """Do ranges, or as much of them as the time allows: one slice at least.

    Parameters
    ----------
    worker
        Does it; no slice is longer than a task.
    tasks
        As this process cuts them: its memory is reserved for them.
    ranges
        What to do, in this order.
    seconds
        The time.
    cancel
        Set when the ranges are no longer wanted.
    on_device
        Whether the worker's engine is a device.
    whole_tasks
        Whether ranges are cut only at the ends of tasks, since each part of a task reads lists anew and may cost as
        much as the task. Slices by time would become shorter and shorter, and each would read the same lists.

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
    of_slice = max(seconds / _SLICES, _DEVICE_SECONDS if on_device else 0.0)
    done: list[Range] = []
    for first, last in ranges:
        if done and time.monotonic() >= until:
            break
        if whole_tasks:
            upto = _do_tasks(worker, ends, first, last, until, cancel)
        else:
            upto = _do_range(worker, ends, first, last, (seconds, of_slice, until), cancel, on_device=on_device)
        done.append((first, upto))
        if upto < last:
            break
    return done


def _do_tasks(worker: Worker, ends: list[int], first: int, last: int, until: float, cancel: threading.Event) -> int:
    """Do a range task by task until the time is over; return the end of the part that is done."""
    at = first
    while True:
        upto = min(last, ends[bisect_right(ends, at)])
        worker.run(at, upto)
        if cancel.is_set():
            raise RunError("the run was cancelled")
        if upto == last or time.monotonic() >= until:
            return upto
        at = upto


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
    """Do a range, or a part of it; return the end of what is done. Times: of all, of a slice, and when it is over."""
    seconds, of_slice, until = times
    at, length = first, max(int((last - first) * min(of_slice / seconds, 1.0)), 1)
    while True:
        start, upto = time.monotonic(), min(at + length, last, ends[bisect_right(ends, at)])
        worker.run(at, upto)
        if cancel.is_set():
            raise RunError("the run was cancelled")
        now = time.monotonic()
        if upto == last or now >= until:
            return upto
        growth = of_slice / max(now - start, 1e-9)
        length = max(int((upto - at) * min(max(growth, 1 / _MOST_GROWTH), _MOST_GROWTH)), 1)
        if on_device and growth >= _SHORT:
            length = last - upto
        at = upto
