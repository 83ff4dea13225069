"""Add and multiply whole numbers from 0 to `HUGE`, which stands for every larger one: no answer is made of it.

Less than `HUGE` is exact, since the numbers are never negative: a sum or product of them that is less than `HUGE` has
no part that is not, apart from one that is multiplied by 0.
"""

import numpy as np

from longwall.kernels.jit import compiled

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
