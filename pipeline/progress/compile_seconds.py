"""The seconds in which this process has compiled kernels."""

import sys


def compile_seconds(unit: str = "") -> float:
    """Return the seconds, 0 for a phase whose work is compiling (its `unit` is kernels).

    The command line shows progress and help without importing kernels, which have the clock.
    """
    if unit == "kernels":
        return 0.0
    clock = sys.modules.get("longwall.kernels.jit.compile_clock")
    return float(clock.COMPILING.seconds()) if clock is not None else 0.0
