"""``longwall``, and ``python -m longwall``: what there is to do before the command line itself can be imported."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from longwall.pipeline.terminal.early_device import wake_driver_early
from longwall.storage.system.first_signals import NOTHING_LEFT, leave_at_signals


def main() -> None:
    """Run the command line and leave with its exit code."""
    from longwall.storage.system import signals

    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # they have no say here; to look for some takes 20 ms
    gc.set_threshold(100_000, *gc.get_threshold()[1:])  # what is imported stays: looking through it takes time
    # Where they were closed, the next files to be opened would take their places.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - no module more, and open to the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    wake_driver_early(sys.argv[1:])
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # paths have names that not every terminal can show
    with signals.interrupting():
        try:
            with signals.unwrapped():
                from longwall.pipeline.cli import main as command_line

                command_line()
        except (KeyboardInterrupt, SystemExit) as end:  # before a command began; later, commands print the message
            if isinstance(end, SystemExit) and not _of_an_interrupt(end):
                raise
            signals.ignore()
            print(NOTHING_LEFT, file=sys.stderr)
            sys.exit(signals.exit_code())
        finally:
            signals.ignore()


def _of_an_interrupt(end: SystemExit) -> bool:
    """Whether the parser of the command line made this exit of a KeyboardInterrupt, without a message."""
    return isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt)


def script() -> None:
    """Run the command line as a program, which leaves without taking itself apart: that takes a tenth of a second."""
    leave_at_signals()
    codes: list[int] = []
    if atexit._ncallbacks() == 0:  # then this one is the last to be called
        atexit.register(_leave, codes)
    try:
        main()
        codes.append(0)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            codes.append(end.code or 0)
        raise


def _leave(codes: list[int]) -> None:
    """Leave with the exit code where it is known, and all that was printed is written."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        for code in codes:
            os._exit(code)


if __name__ == "__main__":
    script()
