"""``longwall``, and ``python -m longwall``: what there is to do before the command line itself can be imported."""

import gc
import os
import sys
from io import TextIOWrapper

from longwall.storage import signals


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(20_000, *gc.get_threshold()[1:])  # what is imported stays: looking through it takes time
    # Where they were closed, the next files to be opened would take their places.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - no module more, and open to the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # paths have names that not every terminal can show
    with signals.interrupting():
        try:
            from longwall.pipeline.cli import main as command_line
        except KeyboardInterrupt:
            print("\ninterrupted: nothing is left behind", file=sys.stderr)
            sys.exit(signals.exit_code())
        try:
            command_line()
        finally:
            signals.ignore()


if __name__ == "__main__":
    main()
