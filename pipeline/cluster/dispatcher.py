"""Dispatch the ranges of a phase to a cluster, and commit what comes back.

Ranges are cut by estimated work, and the longest are asked for first, short ones by the bundle. A worker answers when
its time is over, with as much as it has done; what is left is cut again. Towards the end of a phase the times become
shorter, so that all workers end at about the same time.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import ceil
from typing import TYPE_CHECKING, Any

from longwall.pipeline.cluster.work_profile import WorkProfile
from longwall.pipeline.cluster.worker_process import RangeResult
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import MergingPhase, NotEnoughMemory, Phase, Task
from longwall.pipeline.execution.thread_executor import RANGES
from longwall.pipeline.run_store.commit_log import (
    Commit,
    PartialResult,
    PhaseRecord,
    Range,
    checkpoint_bytes,
)
from longwall.pipeline.run_store.row_limit import RowCut, shortened
from longwall.stages.stage_timer import sum_figures
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.streaming.stored_graph import StoredGraph

if TYPE_CHECKING:
    from longwall.pipeline.cluster.cluster_workers import ClusterWorkers

_SECONDS = 5.0  # of a range, at most
# The same for workers that stream; and before a range of a sticky phase is late, since another worker begins it anew.
_LONG_SECONDS = 75.0
_LEAST_SECONDS = 0.5  # of a range: a request for less costs too much
_LEAST_OVERLAPPED = 0.1  # the same if the device works on another range meanwhile
_FIRST_SECONDS = 1.0  # while no speed is known
_REQUEST_SECONDS = 0.01  # that the cluster's scheduler and this process may take for a request
_LATE = 4.0  # a range that takes this many times as long is given to another worker as well
_AVOID_SECONDS = 60.0  # that the worker which had it gets no other request
_WAITING = 2  # ranges for each thread of the cluster, so that none waits for the next one
# Ranges for each thread at first. A device ends each of them with few tasks left, and what it has not begun of a range
# is cut again: 5-cliques of R-MAT 24 took two H200s 6.8 s with 8, and 5.4 s with 3.
_CUTS, _DEVICE_CUTS = 8, 3
# If a device works on two ranges at a time, every third of these is cut again. The longest are dispatched first, so the
# last ones are short, and all devices end at about the same time.
_EVERY, _SHORTER = 3, 4
_COMMIT_SECONDS = 1.0
_MERGED = 8  # files that are merged into one


@dataclass(eq=False)
class _Asked:
    """Ranges that are one request, or the same of several workers; or files to be merged."""

    ranges: list[Range]
    preferred: str | None = None  # worker
    files: list[dict[str, Any]] = field(default_factory=list)
    merges: int = 0  # that the files have behind them
    since: float = 0.0
    lost: int = 0
    futures: list[Any] = field(default_factory=list)


@dataclass
class _Found:
    """What is to be committed, the bytes of what it replaces, and how many merges its files have behind them."""

    ranges: list[Range]
    partial: PartialResult
    freed: int = 0
    merges: int = 0


@dataclass
class _Done:
    """What one worker did of a phase."""

    ranges: int = 0
    roots: int = 0
    seconds: float = 0.0


class Dispatcher:
    """A phase while its ranges are dispatched.

    Parameters
    ----------
    workers
        The cluster.
    env
        The run.
    phase
        The phase.
    record
        What is finished of it.
    tasks, missing
        Its tasks, and what is missing of them.
    """

    def __init__(
        self,
        workers: ClusterWorkers,
        env: Coordinator,
        phase: Phase,
        record: PhaseRecord,
        tasks: Sequence[Task],
        missing: list[Task],
    ):
        self._workers, self._env, self._phase, self._record = workers, env, phase, record
        self._pickled = workers.pickled(phase)
        self._profile, self._rows = WorkProfile(tasks, phase.work(env)), RowCut(phase.wanted_rows)
        self._order = count()
        # By work, the most first, for each preferred worker.
        self._pending: defaultdict[str | None, list[tuple[float, int, int, int]]] = defaultdict(list)
        self._waiting = 0.0  # the work of what is pending
        self._asked: dict[Any, _Asked] = {}
        self._bundles: set[_Asked] = set()
        self._done: defaultdict[str, _Done] = defaultdict(_Done)
        self._work = self._seconds = 0.0  # that is done, and what it took
        self._files: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)  # by the merges behind them
        self._found: list[_Found] = []
        self._committed = time.monotonic()
        self._file_up(0, record.files())
        # In each process one worker streams the graph, and reads lists anew for each range.
        streams = isinstance(env.graph, StoredGraph)
        self._one_each = phase.sticky or streams or (workers.on_devices and not phase.overlaps)
        self._least_seconds = _LEAST_OVERLAPPED if workers.on_devices and phase.overlaps else _LEAST_SECONDS
        self._most_seconds = _LONG_SECONDS if streams else _SECONDS
        self._first_seconds = _LONG_SECONDS if streams else min(_FIRST_SECONDS, _SECONDS)
        self._late = _LONG_SECONDS if self._one_each else _SECONDS
        joined = _joined(missing)
        cuts = _DEVICE_CUTS if workers.on_devices or streams else _CUTS
        share = sum(self._profile.size(*one) for one in joined) / (cuts * workers.threads(self._one_each))
        for first, last in joined:
            pieces = self._profile.cut(first, last, max(ceil(self._profile.size(first, last) / max(share, 1.0)), 1))
            for number, piece in enumerate(pieces):
                self._put(*piece, _SHORTER if phase.overlaps and number % _EVERY == 0 else 1)

    def finish(self) -> None:
        """Dispatch until all ranges are committed.

        Raises
        ------
        NotEnoughMemory
            If a worker process has no room for the phase, and the plan has another way.
        InputError, RunError
            If no worker can do a range.
        KeyboardInterrupt
            If the run was cancelled.
        """
        try:
            while any(self._pending.values()) or self._bundles or self._merging():
                if self._env.cancel.is_set():
                    raise KeyboardInterrupt
                threads = self._workers.threads(self._one_each)
                while (height := self._merging()) and len(self._bundles) < _WAITING * threads:
                    self._ask_merge(height - 1)
                while any(self._pending.values()) and len(self._bundles) < _WAITING * threads:
                    self._ask_next(threads)
                if not any(self._pending.values()):
                    self._ask_again(threads)
                for future, answer in self._workers.arrived():
                    self._take(future, answer)
                if self._rows.reached:
                    self._skip()
                drained = not (self._bundles or any(self._pending.values()))
                if drained or time.monotonic() - self._committed >= _COMMIT_SECONDS:
                    self._commit()
        except BaseException:
            self._workers.drop(list(self._asked))
            raise
        for worker, done in self._done.items():
            self._env.metrics.record(f"{RANGES}{worker}", 0, done.roots, 0, done.seconds, 0, done.ranges)

    def _skip(self) -> None:
        """Drop what is left: all rows are there."""
        self._workers.drop(list(self._asked))
        self._asked.clear()
        self._bundles.clear()
        self._pending.clear()
        self._commit()
        rest = list(self._record.missing())
        self._record.commit(rest, PartialResult(0))
        self._env.observer.advance(sum(self._profile.progress(first, last) for first, last in rest))

    def _file_up(self, merges: int, files: Iterable[dict[str, Any]]) -> None:
        """Note files that are committed."""
        if isinstance(self._phase, MergingPhase):
            self._files[merges] += files

    def _merging(self) -> int:
        """Return one more than the merges behind files that are enough to be merged; 0 where there are none."""
        return next((merges + 1 for merges, files in self._files.items() if len(files) >= _MERGED), 0)

    def _ask_merge(self, merges: int) -> None:
        files = self._files[merges]
        asked = _Asked([], files=files[:_MERGED], merges=merges + 1)
        del files[:_MERGED]
        self._bundles.add(asked)
        self._ask(asked, _SECONDS)

    def _put(self, first: int, last: int, pieces: int, weight: float = 1.0) -> None:
        """Cut a range, to be dispatched; `weight`: how much more work it is than was estimated."""
        for begin, end in self._profile.cut(first, last, max(pieces, 1)):
            work = self._profile.size(begin, end) * weight
            self._waiting += work
            preferred = self._workers.preferred.get(begin) if self._phase.sticky else None
            heappush(self._pending[preferred], (-work, next(self._order), begin, end))

    def _time(self, threads: int, more: float = 0.0) -> float:
        """Return the seconds for a range, with `more` work than the pending one left."""
        if not self._work:
            return self._first_seconds
        left = (self._waiting + more) * self._seconds / self._work / threads
        return max(min(left / 2, self._most_seconds), self._least_seconds, _REQUEST_SECONDS * threads)

    def _ask_next(self, threads: int) -> None:
        seconds = self._time(threads)
        rate = self._seconds / self._work if self._work else seconds  # a range each while nothing is known
        ranges: list[Range] = []
        expected = 0.0
        preferred, busy = self._choose_worker()
        pending = self._pending[preferred]
        while pending and (not ranges or expected - pending[0][0] * rate <= seconds):
            work, _, first, last = heappop(pending)
            self._waiting += work
            expected -= work * rate
            ranges.append((first, last))
        asked = _Asked(ranges, preferred)
        self._bundles.add(asked)
        self._ask(asked, seconds, [preferred] if preferred and busy < _WAITING else [])

    def _choose_worker(self) -> tuple[str | None, int]:
        """Return the preferred worker of the next ranges, which has the least to do, and how many requests it has."""
        requests = Counter(asked.preferred for asked in self._bundles)
        worker = min((worker for worker, pending in self._pending.items() if pending), key=requests.__getitem__)
        return worker, requests[worker]

    def _ask(self, asked: _Asked, seconds: float, prefer: Sequence[str] = ()) -> None:
        future = self._workers.ask(self._pickled, asked.ranges, seconds, prefer, asked.files)
        asked.since = time.monotonic()
        asked.futures.append(future)
        self._asked[future] = asked

    def _ask_again(self, threads: int) -> None:
        """Request ranges that take long of other workers as well: those that have them may hang."""
        longest = _LATE * max(self._late, _REQUEST_SECONDS * threads)
        late = [asked for asked in self._bundles if time.monotonic() - asked.since > longest]
        if late:
            holders = self._workers.holders([future for asked in late for future in asked.futures])
            self._workers.avoid(holders, _AVOID_SECONDS)
        for asked in late:
            self._ask(asked, _SECONDS)

    def _take(self, future: Any, answer: Any) -> None:
        asked = self._asked.pop(future, None)
        if asked is None:
            return  # another was faster
        asked.futures.remove(future)
        if isinstance(answer, BaseException):
            self._failed(answer, asked)
        elif "reason" in answer:
            if not answer["fits"]:
                raise NotEnoughMemory(answer["reason"])
            self._workers.refused(answer["address"], answer["reason"])
            self._env.observer.note(f"the worker at {answer['address']} gets no more requests: {answer['reason']}")
        else:
            self._answered(asked, answer)
            return
        if not asked.futures:
            self._ask(asked, _SECONDS)

    def _failed(self, error: BaseException, asked: _Asked) -> None:
        """Raise what ends the run; return where a range may be requested once more."""
        from distributed import KilledWorker

        if isinstance(error, (InputError, FinalError)):
            raise error
        # This process does not cancel what it waits for, and what a worker raises of these is a refusal.
        if isinstance(error, (CancelledError, OSError)):
            raise RunError("the cluster's scheduler is gone") from error
        if not isinstance(error, KilledWorker):
            raise RunError(f"a worker of the cluster failed: {type(error).__name__}: {error}") from error
        asked.lost += 1
        if asked.lost > self._workers.retries:
            raise RunError(
                "a range was lost with its worker too often: find out why workers end, or raise scheduler.retries"
            ) from error

    def _answered(self, asked: _Asked, answer: RangeResult) -> None:
        self._bundles.remove(asked)
        for other in asked.futures:
            del self._asked[other]
        if asked.futures:
            self._workers.drop(asked.futures)
        ranges = [(first, last) for first, last in answer["done"]]
        found = PartialResult(answer["value"], tuple(answer["files"]), answer["levels"])
        if asked.files:
            found = replace(found, replaces=tuple(file["name"] for file in asked.files))
            self._found.append(_Found([], found, checkpoint_bytes(asked.files), asked.merges))
            return
        self._found.append(_Found(ranges, self._rows.cut(found)))
        if (share := self._rows.share) is not None:
            self._env.observer.near_limit(share)
        self._workers.engines.add(answer["engine"])
        done, work = self._done[answer["worker"]], 0.0
        for first, last in ranges:
            if self._phase.sticky:
                self._workers.preferred |= dict.fromkeys(range(first, last), answer["address"])
            done.ranges, done.roots = done.ranges + 1, done.roots + last - first
            work += self._profile.size(first, last)
            self._env.observer.advance(self._profile.progress(first, last))
        took = max(answer["seconds"], 1e-9)
        done.seconds += answer["busy"]
        if self._one_each:
            self._late = max(self._late, took)
        self._work, self._seconds = self._work + work, self._seconds + took
        self._put_back(asked.ranges[len(ranges) - 1 :], ranges[-1][1], took / work)

    def _put_back(self, ranges: list[Range], done: int, rate: float) -> None:
        """Put back what a worker had no time for: more hands for the rest of the range that it began."""
        (_, last), *others = ranges
        for range_ in others:
            self._put(*range_, 1)
        if done < last:
            threads = self._workers.threads(self._one_each)
            weight = max(rate * self._work / self._seconds, 1.0)
            left = self._profile.size(done, last)
            pieces = ceil(left * rate / max(self._time(threads, left * weight), 1e-9))
            self._put(done, last, min(max(pieces, 2), 2 * threads), weight)

    def _commit(self) -> None:
        """Adopt and record all that has come, for the price of one commit."""
        if self._found:
            disk, run = self._env.resources.disk, self._env.results.parent
            files = [file for one in self._found for file in one.partial.files]
            for file in files:
                self._workers.adopt(file["name"])
            disk.charge(checkpoint_bytes(files), "what the run has finished")
            for name in (file["name"] for file in files if file.get("cut")):
                self._env.log.store.local(name)
            commits = [(one.ranges, shortened(one.partial, run)) for one in self._found]
            if (aggregation := self._phase.aggregation) is not None:
                commits = [_combined(commits, aggregation.combine([partial.value for _, partial in commits]))]
            self._record.commit_all(commits)
            disk.charge(-sum(one.freed for one in self._found), "")
            for one in self._found:
                self._file_up(one.merges, one.partial.files)
        self._found, self._committed = [], time.monotonic()


def _combined(commits: Sequence[Commit], value: Any) -> Commit:
    """Return one commit with the contents of several, and the value for theirs."""
    partials = [partial for _, partial in commits]
    levels = sum_figures(partial.levels for partial in partials)
    files = tuple(file for partial in partials for file in partial.files)
    replaces = tuple(name for partial in partials for name in partial.replaces)
    ranges = [range_ for ranges, _ in commits for range_ in ranges]
    return ranges, PartialResult(value, files, levels, replaces)


def _joined(tasks: list[Task]) -> list[tuple[int, int]]:
    """Return the ranges of tasks, those that touch as one."""
    found: list[tuple[int, int]] = []
    for task in tasks:
        if found and found[-1][1] == task.first:
            found[-1] = (found[-1][0], task.last)
        else:
            found.append((task.first, task.last))
    return found
