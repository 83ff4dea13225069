"""Machine instructions on words of bits, for which Numba has no names, and sums of two words."""

from typing import Any

import numpy as np

from longwall.kernels.jit.compile import Intrinsic, compiled


@Intrinsic
def popcount(_typing_context: Any, word: Any) -> Any:  # noqa: ARG001 - Numba reads the signature
    """Count the one bits of a uint64."""
    from numba import types

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@Intrinsic
def trailing_zeros(_typing_context: Any, word: Any) -> Any:  # noqa: ARG001 - Numba reads the signature
    """Position of the lowest one bit of a uint64 that is not zero."""
    from llvmlite import ir
    from numba import types

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        never_zero = ir.Constant(ir.IntType(1), 1)
        return builder.cttz(arguments[0], never_zero)

    return types.int64(types.uint64), generate


@compiled
def pop_bit(word: Any) -> tuple[Any, Any]:
    """Return the position of the lowest one bit of a uint64 that is not zero, and the word without it."""
    return trailing_zeros(word), word & (word - np.uint64(1))


@compiled
def pop_bit_of(word: Any, at: Any) -> tuple[Any, Any]:
    """Do the same with the word at a place of a bitmap: the position is that in the bitmap."""
    return (at << 6) + trailing_zeros(word), word & (word - np.uint64(1))


@compiled
def add_carry(low: Any, high: Any, number: Any) -> tuple[Any, Any]:
    """Add an int64 to low + 2**64 high, int64 each, of which low is modulo 2**64; see `two_words` for their number."""
    total = low + number
    return total, high + np.int64(np.uint64(total) < np.uint64(low)) + (number >> 63)
