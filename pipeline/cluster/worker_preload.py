"""Loaded by workers that are started for a run: signals of a terminal are for the coordinator, which ends them."""

import signal
from typing import Any


def dask_setup(worker: Any) -> None:  # noqa: ARG001 - as Dask calls it
    """Let a worker's process ignore Ctrl-C and the end of its terminal; called by Dask in its main thread."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
