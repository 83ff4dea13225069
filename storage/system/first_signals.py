"""Signals that arrive while the program is being imported: it has done nothing yet, and ends at once."""

import os
import signal
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PYTHONS = (signal.SIG_DFL, signal.default_int_handler)
NOTHING_LEFT = "\ninterrupted: nothing is left behind"


def leave(number: int, _: FrameType | None = None) -> None:
    """End the process with the exit code that shells give a signal."""
    try:
        os.write(2, f"{NOTHING_LEFT}\n".encode())
    finally:
        os._exit(128 + number)


def leave_at_signals() -> None:
    """Let signals end the process with a message; signals that have another handler already keep it."""
    for number in ENDING:
        if signal.getsignal(number) in PYTHONS:
            signal.signal(number, leave)
