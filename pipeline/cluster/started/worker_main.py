"""The process of a worker that is started for a run: it opens the run at once, and works when a scheduler is there.

Signals of a terminal do not reach it: they are for the coordinator, which ends it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple

from longwall.storage.errors import RunError, reason_of

if TYPE_CHECKING:
    from longwall.pipeline.cluster.worker_process import RunHeader

HOST, PROTOCOL = "127.0.0.1", "tls://"
"""Where the processes of a cluster of this machine listen: others, and other users, reach nothing."""
END_SECONDS = 5.0
"""That a process may take to release what it has."""


class WorkerStart(NamedTuple):
    """What a process begins with."""

    name: str
    threads: int
    device: str | None
    """The GPU that it sees, as ``CUDA_VISIBLE_DEVICES`` names it; None: all that its parent sees."""
    header: RunHeader | None
    """Of the run that it opens; None: the scheduler's clients say which."""


class Meeting(NamedTuple):
    """Where the scheduler is, and how it is worked for."""

    address: str
    security: Any
    """A ``distributed.Security``."""
    folder: str
    """For the worker's files."""
    settings: dict[str, Any]
    """Of Dask."""


def main(start: WorkerStart, parent: Connection) -> None:
    """Be a worker, until the scheduler ends or `parent` is closed, whatever ends the process at its other end.

    Parameters
    ----------
    start
        What to begin with.
    parent
        Brings a `Meeting`, and gets None when the worker is there, or why it is not.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which some library may let through again
    try:
        _be(start, parent)
    except (EOFError, BrokenPipeError):  # the coordinator is gone, or wants no workers any more
        pass
    except Exception as error:  # of a library, or of the system
        with suppress(OSError):
            cause = error.__cause__ or error  # Dask itself says only that a worker failed
            parent.send(reason_of(cause) or type(cause).__name__)
    finally:
        _leave()


def _be(start: WorkerStart, parent: Connection) -> None:
    if start.device is not None:  # libraries look at it when they are first used, which is later
        from longwall.kernels import prepare_engine

        os.environ["CUDA_VISIBLE_DEVICES"] = start.device
        prepare_engine("cuda")
    dask_there = threading.Event()
    threading.Thread(target=_open_run, args=(start, dask_there), daemon=True).start()
    import distributed  # noqa: F401 - while the coordinator does

    dask_there.set()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the coordinator says what matters
    meeting = parent.recv()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    asyncio.run(_work(start, meeting, parent))


async def _work(start: WorkerStart, meeting: Meeting, parent: Connection) -> None:
    import dask
    from distributed import Worker

    with dask.config.set(meeting.settings):
        worker = Worker(
            meeting.address,
            name=start.name,
            nthreads=start.threads,
            host=HOST,
            protocol=PROTOCOL,
            security=meeting.security,
            memory_limit=0,  # none
            dashboard=False,
            local_directory=meeting.folder,
        )
        async with worker:
            parent.send(None)
            await worker.finished()


def _open_run(start: WorkerStart, dask_there: threading.Event) -> None:
    """Begin to open the run; if that fails, the next request gets the error."""
    from longwall.pipeline.cluster.worker_process import open_run

    if start.header is not None:
        with suppress(RunError):
            open_run(start.header, start.threads)
        dask_there.wait()  # imports take turns, and the worker waits for Dask first, then for its graph
        import longwall.pipeline.planning.planner  # noqa: F401 - most phases that are asked for later are among them


def _end_with(parent: Connection) -> None:
    """End when the coordinator does, or wants that."""
    with suppress(EOFError, OSError):
        parent.recv()
    _leave()


def _leave() -> None:
    """Release what a run has on disk, and end without what an interpreter does in the end, which takes long."""
    from longwall.pipeline.cluster.worker_process import end

    too_long = threading.Timer(END_SECONDS, os._exit, (1,))
    too_long.daemon = True
    too_long.start()
    end()
    os._exit(0)
