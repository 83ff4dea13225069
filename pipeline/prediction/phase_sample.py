"""Sample a phase: do small parts of it, spread over all of its roots, and time them.

The roots are cut into strata of equal estimated work, and of each a range at a random place is done by a worker of the
phase, on all threads at once, as in a run. What a range took stands for its stratum (a stratified sample of
clusters; Cochran, Sampling Techniques, chapters 5 and 9). The ranges grow until the time for them is used up; a phase
that takes less than that is done as a whole, and its time is known.

On the host, seconds are those of processors, so that a prediction is that of a machine that does nothing else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, inf
from queue import Empty, SimpleQueue
from random import Random
from typing import Any

from longwall.pipeline.cluster.work_profile import WorkProfile
from longwall.pipeline.execution.engine_errors import user_errors
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Worker, prepared_tasks
from longwall.pipeline.prediction.clock import Clock

_STRATA, _DEVICE_STRATA = 96, 12  # a device is at work only if a range is long
_HALVES = 8
_FIRST_SHARE = 1 / 256  # of every stratum, at first
_MOST_GROWTH = 32.0
_WHOLE = 0.5  # from this share on all of it is done
_FIRST_SECONDS = 20.0  # no range of the first round is begun later, unless more seconds are asked for
_AGAIN_BELOW_SECONDS = 5.0  # a phase is opened twice, and ranges are done twice: the first time, kernels are loaded
_CALLS = 3  # whose shortest says what a call takes beside the work

Range = tuple[int, int]


@dataclass(frozen=True)
class Stratum:
    """A range of roots with about as much work as the others are estimated to have.

    Attributes
    ----------
    seconds
        Predicted, of one worker.
    longest
        Predicted of one of its roots, which cannot be divided.
    """

    seconds: float
    longest: float


@dataclass(frozen=True)
class PhaseSample:
    """What a sample says of a phase.

    Attributes
    ----------
    name
        The phase's.
    load_seconds
        What loading kernels took, once in a process.
    open_seconds
        What every process does before its first range and after its last, such as making tables, or ending a file.
    strata
        The work, in the order of the roots.
    share
        The part of the estimated work that was done.
    values
        The values of what was done of it.
    file_bytes
        Predicted bytes of the files that the phase writes.
    open_processors
        Seconds of processors in `open_seconds`, of all threads.
    """

    name: str
    load_seconds: float
    open_seconds: float
    strata: tuple[Stratum, ...]
    share: float
    values: tuple[Any, ...] = ()
    file_bytes: float = 0.0
    open_processors: float = 0.0

    @property
    def seconds(self) -> float:
        """Predicted seconds of one worker."""
        return sum(one.seconds for one in self.strata)

    @property
    def longest(self) -> float:
        """Predicted seconds of the longest root."""
        return max((one.longest for one in self.strata), default=0.0)


def sample_phase(phase: Phase, env: Environment, seconds: float, seed: int = 0) -> PhaseSample:
    """Sample a phase for about a given number of seconds of this machine.

    Parameters
    ----------
    phase
        The phase; its tasks are not committed anywhere.
    env
        What the process works with; its files and results are in a folder that is removed.
    seconds
        The time, besides that of opening the phase. The first round of ranges may take longer; ranges of it that are
        not begun in this time, or in 20 seconds if it is shorter, count as being as fast as the others.
    seed
        Says where the ranges lie.

    Raises
    ------
    NotEnoughMemory, InputError, RunError
        As of the phase.
    """
    opening = _Opening(phase, env)
    loading = 0.0
    if opening.clock.elapsed < _AGAIN_BELOW_SECONDS:
        first = opening.clock.used
        opening.close()
        env.forget_layout()
        env.close()
        opening = _Opening(phase, env)
        loading = max(first - opening.clock.used, 0.0)
    try:
        if not opening.tasks:
            return PhaseSample(phase.name, loading, opening.clock.elapsed, (), 1.0)
        sampler = _Sampler(env, opening, Random(seed))
        try:
            return sampler.sample(phase.name, loading, seconds)
        except KeyboardInterrupt:
            env.cancel.set()
            env.engine.interrupt()
            raise
        finally:
            sampler.close()
    finally:
        opening.close()


class _Opening:
    """A phase that is open, and what that took."""

    def __init__(self, phase: Phase, env: Environment) -> None:
        self._opened = ExitStack()
        self.clock = Clock()
        try:
            self.tasks = prepared_tasks(phase, env)
            self._opened.enter_context(user_errors(env.engine))
            self.make_worker = self._opened.enter_context(phase.open(env)) if self.tasks else None
        except BaseException:
            self.close()
            raise
        self.clock.stop()

    def close(self) -> None:
        self._opened.close()


@dataclass
class _Round:
    """The ranges of a round, one for each stratum, with what they took."""

    strata: Sequence[Range]
    ranges: Sequence[Range]
    share: float
    seconds: list[float] = field(default_factory=list)
    elapsed: float = 0.0


class _Sampler:
    """The workers of a phase, one for each thread."""

    def __init__(self, env: Environment, opening: _Opening, random: Random) -> None:
        assert opening.make_worker is not None
        tasks = opening.tasks
        self._env, self._opening, self._random = env, opening, random
        self._profile, self._roots = WorkProfile(tasks), (tasks[0].first, tasks[-1].last)
        self._workers: list[Worker] = []
        self._lock = threading.Lock()
        self._make: MakeWorker = opening.make_worker
        self._now = time.perf_counter if env.resources.on_device else time.thread_time
        self._pool = ThreadPoolExecutor(env.engine.workers)
        self._values: list[Any] = []
        self._bytes = self._done = 0.0

    def sample(self, name: str, loading: float, seconds: float) -> PhaseSample:
        call = self._time_a_call()
        strata = self._strata()
        one = self._round(strata, _FIRST_SHARE)
        self._do(one, max(seconds, _FIRST_SECONDS))  # with kernels that are loaded on the way
        first = sum(one.seconds)
        if one.elapsed < _AGAIN_BELOW_SECONDS:
            self._do(one)
            loading += max(first - sum(one.seconds), 0.0)
        left = seconds - one.elapsed
        while one.share < 1.0:
            growth = min(left / max(one.elapsed, 1e-6), _MOST_GROWTH)
            if growth < 2.0:
                break
            whole = one.share * growth >= _WHOLE and left >= one.elapsed / one.share
            one = self._round(strata, 1.0 if whole else min(one.share * growth / 2, _WHOLE))
            self._do(one)
            left -= one.elapsed
        taking = self._take()
        done = max(self._done / self._profile.size(*self._roots), 1e-12)
        predicted = tuple(self._stratum(*of, call) for of in zip(strata, one.ranges, one.seconds, strict=True))
        used = self._opening.clock.used + taking * len(self._workers)
        return PhaseSample(
            name=name,
            load_seconds=loading,
            open_seconds=self._opened(one) + taking,
            strata=predicted,
            share=one.share,
            values=tuple(self._values),
            file_bytes=self._bytes / done,
            open_processors=used,
        )

    def _strata(self) -> list[Range]:
        """Cut the roots; the first stratum once more, into halves of what is left of it: hubs come first."""
        on_device = self._env.resources.on_device
        (first, last), *others = self._profile.cut(*self._roots, _DEVICE_STRATA if on_device else _STRATA)
        ends = {first + (last - first >> halves) for halves in range(0 if on_device else _HALVES)}
        cuts = sorted({first, last} | ends)
        return [*pairwise(cuts), *others]

    def _opened(self, one: _Round) -> float:
        """Return what opening the phase takes when others leave the machine alone."""
        clock, threads = self._opening.clock, len(self._workers)
        if self._env.resources.on_device:
            return clock.elapsed
        return clock.quiet(threads, max(one.elapsed * threads / max(sum(one.seconds), 1e-9), 1.0))

    def close(self) -> None:
        self._pool.shutdown()
        for worker in self._workers:
            worker.close()

    def _time_a_call(self) -> float:
        """Make a worker in every thread, and return what a call for one root takes: the last ones are the cheapest."""
        last = self._roots[1]

        def once(_: int) -> float:
            worker = self._make()
            with self._lock:
                self._workers.append(worker)
            times = []
            for _call in range(_CALLS):
                began = self._now()
                worker.run(last - 1, last)
                times.append(self._now() - began)
            return min(times)

        with_all = [self._pool.submit(self._guarded, once, number) for number in range(self._env.engine.workers)]
        calls: list[float] = [one.result() for one in with_all]
        return min(calls)

    def _guarded(self, work: Any, *arguments: Any) -> Any:
        with user_errors(self._env.engine):
            return work(*arguments)

    def _round(self, strata: Sequence[Range], share: float) -> _Round:
        ranges = []
        for first, last in strata:
            length = min(max(ceil((last - first) * share), 1), last - first)
            at = self._random.randint(first, last - length)
            ranges.append((at, at + length))
        done = sum(self._profile.size(*one) for one in ranges)
        return _Round(strata, ranges, min(done / self._profile.size(*self._roots), 1.0) if share < 1 else 1.0)

    def _do(self, one: _Round, most: float = inf) -> None:
        """Do the ranges on all threads, and note the time of each; no range is begun after `most` seconds."""
        start = time.perf_counter()
        sizes = [self._profile.size(*some) for some in one.ranges]
        queue: SimpleQueue[int] = SimpleQueue()
        done: list[int] = []
        one.seconds[:] = [0.0] * len(one.ranges)
        for number in self._random.sample(range(len(one.ranges)), len(one.ranges)):
            queue.put(number)

        def work(worker: Worker) -> None:
            try:
                while not self._env.cancel.is_set() and time.perf_counter() - start < most:
                    number = queue.get_nowait()
                    began = self._now()
                    worker.run(*one.ranges[number])
                    one.seconds[number] = self._now() - began
                    done.append(number)
            except Empty:
                pass

        for worked in [self._pool.submit(self._guarded, work, worker) for worker in self._workers]:
            worked.result()
        one.elapsed = time.perf_counter() - start
        size = sum(sizes[number] for number in done)
        self._done += size
        if left := set(range(len(sizes))).difference(done):
            one.share *= size / max(sum(sizes), 1e-12)
            each = sum(one.seconds) / max(size, 1e-12)
            for number in left:
                one.seconds[number] = each * sizes[number]

    def _take(self) -> float:
        """Take the partial results; return the seconds of a worker."""
        began = self._now()
        for worker in self._workers:
            found = self._guarded(worker.take_partial)
            self._values.append(found.value)
            self._bytes += sum(file.get("bytes", 0) for file in found.files)
        return (self._now() - began) / len(self._workers)

    def _stratum(self, stratum: Range, done: Range, seconds: float, call: float) -> Stratum:
        times = self._profile.size(*stratum) / max(self._profile.size(*done), 1e-12)
        work = max(seconds - call, 0.0)
        return Stratum(work * times + call, work / (done[1] - done[0]) + call)
