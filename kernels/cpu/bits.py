"""Bit counts as single machine instructions: Numba has no names for them."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def popcount(_typing_context, word):  # noqa: ARG001 - Numba reads the signature
    """Number of one bits of a uint64."""

    def generate(_context, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def trailing_zeros(_typing_context, word):  # noqa: ARG001 - Numba reads the signature
    """Position of the lowest one bit of a uint64 that is not zero."""

    def generate(_context, builder, _signature, arguments):
        never_zero = ir.Constant(ir.IntType(1), 1)
        return builder.cttz(arguments[0], never_zero)

    return types.int64(types.uint64), generate
