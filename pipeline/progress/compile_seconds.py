"""The seconds in which this process has compiled kernels."""

import sys


def compile_seconds() -> float:
    """Return the seconds; the command line shows progress and help without importing kernels, which have the clock."""
    clock = sys.modules.get("longwall.kernels.jit.compile_clock")
    return float(clock.COMPILING.seconds()) if clock is not None else 0.0
