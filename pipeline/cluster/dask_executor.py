"""The coordinator of a run on a Dask cluster: what it knows of the cluster, and what it asks of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from longwall.pipeline.cluster.dispatcher import Dispatcher
from longwall.pipeline.cluster.worker_process import RunDescription, RunHeader, close, parts, prepare, serve, write_heat
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.thread_executor import Work, missing_tasks
from longwall.pipeline.run_store.commit_log import Phase, Range
from longwall.pipeline.run_store.store import RunStore
from longwall.storage.errors import RunError
from longwall.storage.pages.heat_record import add_records
from longwall.storage.remote.urls import is_url

_LOOK_SECONDS = 0.5
_ALONE_SECONDS = 60.0  # without any worker, before the run is given up
_CLOSE_SECONDS, _HEAT_SECONDS = 2.0, 10.0
_GONE = "the cluster's scheduler is gone"


class DaskScheduler:
    """Where tasks run: the workers of a cluster.

    Parameters
    ----------
    client
        Of the cluster, a ``distributed.Client``.
    job
        What replicas are made from.
    retries
        How often a range may be lost with its workers.

    Attributes
    ----------
    retries
        See above.
    engines
        Names of the engines that worked so far.
    homes
        The worker that did each root last, for phases whose roots are kept.
    """

    def __init__(self, client: Any, job: RunDescription, retries: int):
        self._client, self._job, self.retries = client, job, retries
        self._serial = count()
        self._arrived: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self._workers: dict[str, int] = {}
        self._avoided: dict[str, float] = {}
        self._looked = float("-inf")
        self._alone_since: float | None = None
        self.engines: set[str] = set()
        self.homes: dict[int, str] = {}

    def run(self, context: Environment, work: Work) -> list[Any]:
        """Deal out what the phase lacks; see `longwall.pipeline.execution.thread_executor.run_tasks`."""
        left = list(missing_tasks(work.tasks, work.phase))
        context.observer.advance(sum(task.size for task in work.tasks) - sum(task.size for task in left))
        if left:
            Dispatcher(self, context, work, left).finish()
        return [partial.value for partial in work.phase.partials]

    def ask(
        self,
        phase: Phase,
        ranges: list[Range],
        seconds: float,
        prefer: Collection[str] = (),
        files: Sequence[dict[str, Any]] = (),
    ) -> Any:
        """Ask for ranges, or for files that are merged.

        Parameters
        ----------
        phase
            The phase.
        ranges
            What to do.
        seconds
            After which its worker should answer with what it has.
        prefer
            Addresses of the workers that should do it, if they are there; any will do if not given.
        files
            Files of commits, to be merged.

        Returns
        -------
        distributed.Future
            `arrived` gives it with its answer.
        """
        wanted = set(prefer) & self._workers.keys() - self._avoided.keys()
        workers = wanted or (set(self._workers) - set(self._avoided) if self._avoided else set())
        future = self._client.submit(
            serve,
            self._job,
            phase.name,
            ranges,
            seconds,
            list(files),
            pure=False,
            key=f"longwall-{self._job['id']}-{phase.name}-{next(self._serial)}",
            retries=self.retries,
            workers=sorted(workers) or None,
            allow_other_workers=bool(workers),
        )
        asyncio.run_coroutine_threadsafe(self._fetch(future), self._client.loop.asyncio_loop)
        return future

    async def _fetch(self, future: Any) -> None:
        # Waits again where an answer was lost with its worker, which makes others do the range.
        try:
            self._arrived.put((future, await future))
        except BaseException as error:  # cancelled, or whatever the worker raised: `arrived` tells
            self._arrived.put((future, error))

    def arrived(self) -> list[tuple[Any, Any]]:
        """Wait a moment for answers; gives futures, each with its answer or what was raised."""
        found = []
        with suppress(Empty):
            found.append(self._arrived.get(timeout=_LOOK_SECONDS))
            while True:
                found.append(self._arrived.get_nowait())
        return found

    def threads(self, kept: bool = False) -> int:
        """Threads of the cluster, one at least; one of each worker where it keeps roots, which no two may change.

        Raises
        ------
        RunError
            If the cluster is gone, or its workers are for a minute.
        """
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            if self._client.status != "running":
                raise RunError(_GONE)
            try:
                self._workers, self._looked = dict(self._client.nthreads()), now
            except OSError as error:
                raise RunError(_GONE) from error
            self._avoided = {worker: until for worker, until in self._avoided.items() if now < until}
            if self._workers:
                self._alone_since = None
            else:
                self._alone_since = self._alone_since or now
                if now - self._alone_since > _ALONE_SECONDS:
                    raise RunError(f"the cluster has had no worker for {_ALONE_SECONDS:.0f} s: start some")
        there = [1 if kept else number for worker, number in self._workers.items() if worker not in self._avoided]
        return max(sum(there), 1)

    def holders(self, futures: Collection[Any]) -> set[str]:
        """The addresses of the workers that have one of these to do."""
        keys = {future.key for future in futures}
        return {worker for worker, doing in self._client.processing().items() if not keys.isdisjoint(doing)}

    def avoid(self, workers: Collection[str], seconds: float) -> None:
        """Ask others for so long, if there are others."""
        until = time.monotonic() + seconds
        self._avoided |= {worker: max(until, self._avoided.get(worker, until)) for worker in workers}

    def refused(self, worker: str, reason: str) -> None:
        """Ask a worker no more that cannot do a range.

        Raises
        ------
        RunError
            With the reason, if no other is left.
        """
        self.avoid([worker], float("inf"))
        if self._workers.keys() <= self._avoided.keys():
            raise RunError(reason)

    def adopt(self, name: str) -> None:
        """Move a file to the run's results, if it is one of them: others may be of ranges that were done twice.

        At a URL it is there, and those that no commit names are left out in the end.
        """
        folder, _, name = name.partition("/")
        if folder == "results.partial" and not is_url(self._job["run"]):
            run = Path(self._job["run"])
            (parts(run, self._job["id"]) / name).rename(run / folder / name)

    def drop(self, futures: list[Any]) -> None:
        """Want futures no more."""
        with suppress(Exception):  # the cluster may be gone
            self._client.cancel(futures, force=True)

    def write_heat(self, store: RunStore) -> None:
        """Write what every level read of every page, added up over the workers that are there, if any knows."""
        with suppress(Exception):  # figures that nobody needs to go on
            names = _run_everywhere(self._client, write_heat, self._job["id"], _HEAT_SECONDS).values()
            folder = parts(Path(), self._job["id"])
            files = [store.local(str(folder / name)) for name in names if isinstance(name, str)]
            if files:
                add_records(files, store.folder / "heat.parquet")


def begin_replicas(client: Any, opening: RunHeader) -> None:
    """Let the workers that are there read the graph; others do when they are asked for ranges."""
    with suppress(Exception):  # they will be asked again
        _run_everywhere(client, prepare, opening, _CLOSE_SECONDS, wait=False)


def end_replicas(client: Any, job_id: str) -> None:
    """End the replicas of a job; those of workers that hang end once they go on."""
    with suppress(Exception):  # the cluster may be gone
        _run_everywhere(client, close, job_id, _CLOSE_SECONDS, wait=False)


def _run_everywhere(client: Any, function: Any, argument: Any, seconds: float, **options: Any) -> Any:
    """Call a function on all workers; waits for so long, since some may hang."""

    async def run() -> Any:
        return await client.run(function, argument, on_error="return", **options)

    return asyncio.run_coroutine_threadsafe(run(), client.loop.asyncio_loop).result(seconds)
