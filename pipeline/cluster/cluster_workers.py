"""The workers of a Dask cluster, and the requests to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from longwall.pipeline.cluster.worker_process import (
    PickledPhase,
    RunDescription,
    RunHeader,
    close,
    describe,
    parts,
    prepare,
    serve,
    write_heat,
)
from longwall.pipeline.execution.phase import Phase
from longwall.pipeline.run_store.commit_log import Range
from longwall.pipeline.run_store.store import RunStore
from longwall.storage.errors import RunError
from longwall.storage.pages.heat_record import add_records
from longwall.storage.remote.urls import is_url

_LOOK_SECONDS = 0.5
_ALONE_SECONDS = 60.0  # without any worker, before the run is given up
_CLOSE_SECONDS, _HEAT_SECONDS = 2.0, 10.0
_GONE = "the cluster's scheduler is gone"


class ClusterWorkers:
    """The workers of a cluster.

    Parameters
    ----------
    client
        Of the cluster, a ``distributed.Client``.
    run
        What worker processes have to know of it.
    retries
        How often a range may be lost with its workers.
    on_devices
        Whether workers are known to work with devices.

    Attributes
    ----------
    retries, on_devices
        See above.
    engines
        Names of the engines that worked so far.
    preferred
        Root -> the address of the worker that did it last, for sticky phases.
    """

    def __init__(self, client: Any, run: RunDescription, retries: int, *, on_devices: bool = False):
        self._client, self._run, self.retries, self.on_devices = client, run, retries, on_devices
        self._phases = count()
        self._serial = count()
        self._arrived: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self._workers: dict[str, int] = {}
        self._avoided: dict[str, float] = {}
        self._looked = float("-inf")
        self._alone_since: float | None = None
        self.engines: set[str] = set()
        self.preferred: dict[int, str] = {}

    def pickled(self, phase: Phase) -> PickledPhase:
        """Return a phase as the next one that worker processes work at."""
        from distributed.protocol.pickle import dumps

        return PickledPhase(number=next(self._phases), pickled=dumps(phase))

    def ask(
        self,
        phase: PickledPhase,
        ranges: list[Range],
        seconds: float,
        prefer: Collection[str] = (),
        files: Sequence[dict[str, Any]] = (),
    ) -> Any:
        """Ask for ranges, or for files that are merged.

        Parameters
        ----------
        phase
            See `pickled`.
        ranges
            What to do.
        seconds
            The time after which the worker should answer with what it has.
        prefer
            Addresses of the workers that should do it, if they are there; any will do if not given.
        files
            Files of commits, to be merged.

        Returns
        -------
        distributed.Future
            `arrived` returns it with its answer.
        """
        wanted = set(prefer) & self._workers.keys() - self._avoided.keys()
        workers = wanted or (set(self._workers) - set(self._avoided) if self._avoided else set())
        future = self._client.submit(
            serve,
            self._run,
            phase,
            ranges,
            seconds,
            list(files),
            pure=False,
            key=f"longwall-{self._run['id']}-{phase['number']}-{next(self._serial)}",
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
        except BaseException as error:  # cancelled, or raised by the worker: `arrived` returns it
            self._arrived.put((future, error))

    def arrived(self) -> list[tuple[Any, Any]]:
        """Wait a moment for answers; return futures, each with its answer or what was raised."""
        found = []
        with suppress(Empty):
            found.append(self._arrived.get(timeout=_LOOK_SECONDS))
            while True:
                found.append(self._arrived.get_nowait())
        return found

    def threads(self, one_each: bool = False) -> int:
        """Return the number of threads of the cluster, at least 1; with `one_each`, count one for each worker.

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
        there = [1 if one_each else number for worker, number in self._workers.items() if worker not in self._avoided]
        return max(sum(there), 1)

    def holders(self, futures: Collection[Any]) -> set[str]:
        """Return the addresses of the workers that have one of these to do."""
        keys = {future.key for future in futures}
        return {worker for worker, doing in self._client.processing().items() if not keys.isdisjoint(doing)}

    def avoid(self, workers: Collection[str], seconds: float) -> None:
        """Prefer others for so long, if there are others."""
        until = time.monotonic() + seconds
        self._avoided |= {worker: max(until, self._avoided.get(worker, until)) for worker in workers}

    def refused(self, worker: str, reason: str) -> None:
        """Avoid a worker from now on, which cannot do a range.

        Raises
        ------
        RunError
            With the reason, if no other is left.
        """
        self.avoid([worker], float("inf"))
        if self._workers.keys() <= self._avoided.keys():
            raise RunError(reason)

    def adopt(self, name: str) -> None:
        """Move a committed result file into the results. Files of duplicate attempts stay behind.

        At a URL it is there already, and files that no commit names are left out in the end.
        """
        folder, _, name = name.partition("/")
        if folder == "results.partial" and not is_url(self._run["run"]):
            run = Path(self._run["run"])
            (parts(run, self._run["id"]) / name).rename(run / folder / name)

    def drop(self, futures: list[Any]) -> None:
        """Cancel requests."""
        with suppress(Exception):  # the cluster may be gone
            self._client.cancel(futures, force=True)

    def write_heat(self, store: RunStore) -> None:
        """Write what every level read of every page, added up over the workers that know it."""
        with suppress(Exception):  # figures that no result depends on
            names = _run_everywhere(self._client, write_heat, self._run["id"], _HEAT_SECONDS).values()
            folder = parts(Path(), self._run["id"])
            files = [store.local(str(folder / name)) for name in names if isinstance(name, str)]
            if files:
                add_records(files, store.folder / "heat.parquet")


def open_on_workers(client: Any, header: RunHeader) -> None:
    """Let the workers that are there open the run; others open it with their first request."""
    with suppress(Exception):  # the first request opens it anyway
        _run_everywhere(client, prepare, header, _CLOSE_SECONDS, wait=False)


def describe_on_workers(client: Any, run: RunDescription) -> None:
    """Send the workers that are there the place of the coordinator's graph; others get it with their first request."""
    with suppress(Exception):  # the first request says where it is, too
        _run_everywhere(client, describe, run, _CLOSE_SECONDS, wait=False)


def close_on_workers(client: Any, run_id: str) -> None:
    """Close the run on all workers; those that hang close it once they continue."""
    with suppress(Exception):  # the cluster may be gone
        _run_everywhere(client, close, run_id, _CLOSE_SECONDS, wait=False)


def _run_everywhere(client: Any, function: Any, argument: Any, seconds: float, **options: Any) -> Any:
    """Call a function on all workers; wait for so long at most, since some may hang."""

    async def run() -> Any:
        return await client.run(function, argument, on_error="return", **options)

    return asyncio.run_coroutine_threadsafe(run(), client.loop.asyncio_loop).result(seconds)
