"""Estimated work per range of roots, by the tasks of a phase; ranges of equal work."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from longwall.pipeline.execution.phase import Task, WorkSoFar

_NEAR = 0.25  # of a piece: where a task ends so near to where a cut would be, the cut is there
_LEAST_SHARE = 0.01  # of the mean: the least work of a root, however little it is estimated to have


class WorkProfile:
    """The estimated work of the roots of a phase, evenly spread inside each task, or between roots with an estimate.

    Parameters
    ----------
    tasks
        Of the whole phase, one behind the other.
    work
        An estimate of the work; None: the tasks' sizes.
    """

    def __init__(self, tasks: Sequence[Task], work: WorkSoFar | None = None):
        self._tasks = np.array([tasks[0].first, *(task.last for task in tasks)], np.float64)
        self._sizes = np.concatenate([[0.0], np.cumsum([task.size for task in tasks])])
        self._bounds, ends = self._tasks, self._sizes
        if work is not None:
            self._bounds, ends = work.roots.astype(np.float64), work.ends
        lengths, sizes = np.diff(self._bounds), np.diff(ends)
        mean = max(float(sizes.sum()), 1.0) / float(lengths.sum())
        self._ends = np.concatenate([[0.0], np.cumsum(np.maximum(sizes, _LEAST_SHARE * mean * lengths))])

    def size(self, first: int, last: int) -> float:
        """Return the estimated work of a range."""
        before, after = np.interp([first, last], self._bounds, self._ends).tolist()
        return float(after - before)

    def progress(self, first: int, last: int) -> int:
        """Return the work of a range in whole units; all ranges of a phase add up to the sizes of its tasks."""
        before, after = np.interp([first, last], self._tasks, self._sizes).round().tolist()
        return int(after) - int(before)

    def cut(self, first: int, last: int, pieces: int) -> list[tuple[int, int]]:
        """Cut a range into a few parts of about equal work, at the ends of tasks if possible; none is empty."""
        begin, end = np.interp([first, last], self._bounds, self._ends)
        work = np.linspace(begin, end, pieces + 1)[1:-1]
        after = np.searchsorted(self._ends, work)
        nearest = after - (work - self._ends[after - 1] < self._ends[after] - work)
        # A part of a task may cost a device as much as all of it.
        near = np.abs(self._ends[nearest] - work) < _NEAR * (end - begin) / pieces
        inner = np.where(near, self._bounds[nearest], np.interp(work, self._ends, self._bounds))
        ends = np.unique(np.concatenate([[first], np.clip(np.rint(inner), first, last), [last]])).astype(np.int64)
        bounds: list[int] = ends.tolist()
        return list(pairwise(bounds))
