"""The coordinator of a run on a Dask cluster: deals the ranges of a phase out, and commits what comes back."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from longwall.pipeline.checkpoint import Partial, Phase
from longwall.pipeline.cluster.replica import Answer, Job, close, parts, serve
from longwall.pipeline.context import RunContext
from longwall.pipeline.workers import Task, Worker, missing_tasks
from longwall.storage.errors import FinalError, InputError, RunError

_SECONDS = 5.0  # of a task: what is left of its range then is dealt out again
_LATE_SECONDS = 4 * _SECONDS  # a task that takes longer is given to another worker as well
_WAITING = 2  # tasks for each thread of the cluster, so that none waits for the next one
_CUTS = 8  # ranges for each thread at first
_COMMIT_SECONDS = 1.0
_LOOK_SECONDS, _POLL_SECONDS = 0.5, 0.002
_ALONE_SECONDS = 60.0  # without any worker, before the run is given up


@dataclass
class _Asked:
    """A range that a worker does, and the other future for it where there is one."""

    first: int
    last: int
    since: float
    twin: Any = None


class DaskScheduler:
    """Where tasks run: the workers of a cluster.

    Parameters
    ----------
    client
        Of the cluster, a ``distributed.Client``.
    job
        What replicas are made from.
    retries
        How often a range may be lost with its worker.

    Attributes
    ----------
    engines
        Names of the engines that worked so far.
    """

    def __init__(self, client: Any, job: Job, retries: int):
        self._client, self._job, self._retries = client, job, retries
        self._serial = count()
        self._threads, self._looked = 0, float("-inf")
        self._alone_since: float | None = None
        self.engines: set[str] = set()

    def run(
        self,
        context: RunContext,
        phase: Phase,
        tasks: Sequence[Task],
        workers: int,  # noqa: ARG002 - of this process
        make_worker: Callable[[int], Worker],  # noqa: ARG002 - replicas make their own
    ) -> list[Any]:
        """Deal out what the phase lacks; see `longwall.pipeline.workers.run_tasks`."""
        left = list(missing_tasks(tasks, phase))
        context.observer.advance(sum(task.size for task in tasks) - sum(task.size for task in left))
        if left:
            _Dealing(self, context, phase, left).work()
        return [partial.value for partial in phase.partials]

    def ask(self, phase: Phase, first: int, last: int) -> Any:
        """Ask for a range; gives a future."""
        return self._client.submit(
            serve,
            self._job,
            phase.name,
            first,
            last,
            _SECONDS,
            pure=False,
            key=f"longwall-{self._job['id']}-{phase.name}-{first}-{next(self._serial)}",
            retries=self._retries,
        )

    def threads(self) -> int:
        """Threads of the cluster, one at least.

        Raises
        ------
        RunError
            If the cluster is gone, or its workers are for a minute.
        """
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            if self._client.status != "running":
                raise RunError("the cluster's scheduler is gone")
            self._threads, self._looked = sum(self._client.nthreads().values()), now
            if self._threads:
                self._alone_since = None
            else:
                self._alone_since = self._alone_since or now
                if now - self._alone_since > _ALONE_SECONDS:
                    raise RunError(f"the cluster has had no worker for {_ALONE_SECONDS:.0f} s: start some")
        return max(self._threads, 1)

    def adopt(self, name: str) -> None:
        """Move a file to the run's results, if it is one of them: others may be of ranges that were done twice."""
        folder, _, name = name.partition("/")
        if folder == "results.partial":
            run = Path(self._job["run"])
            (parts(run, self._job["id"]) / name).rename(run / folder / name)

    @property
    def loop(self) -> Any:
        """Of the client."""
        return self._client.loop

    def drop(self, futures: list[Any]) -> None:
        """Want futures no more."""
        with suppress(Exception):  # the cluster may be gone
            self._client.cancel(futures, force=True)

    def close(self) -> None:
        """End the replicas."""
        with suppress(Exception):
            self._client.run(close, self._job["id"], wait=False)


class _Dealing:
    """A phase while its ranges are dealt out."""

    def __init__(self, scheduler: DaskScheduler, context: RunContext, phase: Phase, left: list[Task]):
        self._scheduler, self._context, self._phase = scheduler, context, phase
        self._size = sum(task.size for task in left) / sum(task.last - task.first for task in left)
        self._pending = deque(_cut([(task.first, task.last) for task in left], _CUTS * scheduler.threads()))
        self._asked: dict[Any, _Asked] = {}
        self._answers: list[Answer] = []
        self._committed = time.monotonic()
        self._of_worker: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])

    def work(self) -> None:
        """Deal out until all ranges are committed."""
        from distributed import as_completed

        arriving = as_completed([], loop=self._scheduler.loop)
        try:
            while self._pending or self._asked:
                if self._context.cancel.is_set():
                    raise KeyboardInterrupt
                threads = self._scheduler.threads()
                while self._pending and len(self._asked) < _WAITING * threads:
                    arriving.add(self._ask(*self._pending.popleft()))
                if not self._pending and len(self._asked) < threads:
                    self._ask_again(arriving)
                self._take(arriving)
                if time.monotonic() - self._committed >= _COMMIT_SECONDS:
                    self._commit()
            self._commit()
        except BaseException:
            self._scheduler.drop(list(self._asked))
            raise
        for worker, (ranges, seconds, roots) in self._of_worker.items():
            self._context.metrics.record(f"ranges of {worker}", 0, int(roots), 0, seconds, 0, int(ranges))

    def _ask(self, first: int, last: int, twin: Any = None) -> Any:
        future = self._scheduler.ask(self._phase, first, last)
        self._asked[future] = _Asked(first, last, time.monotonic(), twin)
        return future

    def _ask_again(self, arriving: Any) -> None:
        """Give a range that takes long to another worker as well: the one that has it may hang."""
        late = [
            (future, asked)
            for future, asked in self._asked.items()
            if asked.twin is None and time.monotonic() - asked.since > _LATE_SECONDS
        ]
        for future, asked in late:
            asked.twin = self._ask(asked.first, asked.last, future)
            arriving.add(asked.twin)

    def _take(self, arriving: Any) -> None:
        """Take in what has come, once something has."""
        deadline = time.monotonic() + _LOOK_SECONDS
        while not arriving.has_ready() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        while arriving.has_ready():
            future = next(arriving)
            asked = self._asked.pop(future, None)
            if asked is None:
                continue  # its twin was faster
            if future.status in ("pending", "lost"):
                # It was finished, and lost with its worker before it was fetched: another does it.
                self._asked[future] = asked
                arriving.add(future)
                continue
            if future.status != "finished":
                self._failed(future)
            if asked.twin is not None:
                del self._asked[asked.twin]
                self._scheduler.drop([asked.twin])
            self._answered(asked, future.result())

    def _answered(self, asked: _Asked, answer: Answer) -> None:
        first, last = answer["done"]
        self._answers.append(answer)
        self._scheduler.engines.add(answer["engine"])
        of_worker = self._of_worker[answer["worker"]]
        for i, more in enumerate((1, answer["seconds"], last - first)):
            of_worker[i] += more
        self._context.observer.advance(round((last - first) * self._size))
        if last < asked.last:  # it took too long: more hands
            self._pending.extendleft(_cut([(last, asked.last)], max(self._scheduler.threads(), 2)))

    def _failed(self, future: Any) -> None:
        if future.status != "error":
            raise RunError("the cluster's scheduler is gone")
        error = future.exception()
        if isinstance(error, (InputError, FinalError, RunError)):
            raise error
        raise RunError(f"a worker of the cluster failed: {type(error).__name__}: {error}") from error

    def _commit(self) -> None:
        for answer in self._answers:
            for file in answer["files"]:
                self._scheduler.adopt(file["name"])
            stored = sum(file.get("stored", 0) for file in answer["files"])
            self._context.accounts.disk.take(stored, "the levels of the checkpoint")
            self._phase.commit([answer["done"]], Partial(answer["value"], tuple(answer["files"]), answer["levels"]))
        self._answers, self._committed = [], time.monotonic()


def _cut(ranges: list[tuple[int, int]], pieces: int) -> list[tuple[int, int]]:
    """Cut ranges into about so many."""
    total = sum(last - first for first, last in ranges)
    step = max(-(-total // max(pieces, 1)), 1)
    return [(at, min(at + step, last)) for first, last in ranges for at in range(first, last, step)]
