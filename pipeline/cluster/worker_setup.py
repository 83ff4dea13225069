"""Loaded by the workers that are started for a run: Ctrl-C in the terminal is for the coordinator, which ends them."""

import signal
from typing import Any


def dask_setup(worker: Any) -> None:  # noqa: ARG001 - as Dask calls it
    """Make a worker's process deaf to Ctrl-C; called by Dask in its main thread."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
