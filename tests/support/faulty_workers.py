"""What a started process does in place of being a worker: started processes import this module."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from longwall.pipeline.cluster.started.worker_main import WorkerStart


def leave(start: WorkerStart, parent: Any) -> None:
    """End before the process is a worker."""


def come_at_the_second_try(start: WorkerStart, parent: Any) -> None:
    """Be killed, as by a system without memory, where there is no such file yet."""
    assert start.device is not None
    there = Path(start.device)
    if there.exists():
        parent.send(None)
        parent.recv()
        parent.recv()
    there.touch()
    os.kill(os.getpid(), signal.SIGKILL)


def never_come(start: WorkerStart, parent: Any) -> None:
    """Be no worker."""
    with suppress(EOFError):
        while True:
            parent.recv()
