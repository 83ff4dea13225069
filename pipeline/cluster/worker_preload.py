"""Loaded by workers that are started for a run: signals of a terminal are for the coordinator, which ends them."""

import os
import signal
from typing import Any

OPENS_DEVICE = "LONGWALL_WORKER_OPENS_DEVICE"
"""The variable that is set for a worker which has a device of its own: it is opened while the worker connects."""


def dask_setup(worker: Any) -> None:  # noqa: ARG001 - as Dask calls it
    """Let a worker's process ignore Ctrl-C and the end of its terminal; called by Dask in its main thread."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if OPENS_DEVICE in os.environ:
        from longwall.kernels import prepare_engine

        prepare_engine("cuda")
