"""Add and multiply whole numbers from 0 to `HUGE`, which stands for itself and every larger number.

A result below `HUGE` is exact: numbers are never negative, so a saturated operand makes the result `HUGE`, unless it is
multiplied by 0. No answer is computed from `HUGE`.
"""

import numpy as np

from longwall.kernels.jit.compile import compiled

HUGE = np.int64(2**62)
_HALF = np.int64(2**31)  # the product of two smaller numbers is less than `HUGE`


@compiled
def plus(a, b):
    """Add two numbers: neither ``HUGE - b`` nor a sum below `HUGE` wraps."""
    return HUGE if a >= HUGE - b else a + b


@compiled
def times(a, b):
    """Multiply two numbers: a * b is less than `HUGE` exactly if a is at most ``(HUGE - 1) // b``."""
    if a < _HALF and b < _HALF:
        return a * b
    if b != 0 and a > (HUGE - 1) // b:
        return HUGE
    return a * b
