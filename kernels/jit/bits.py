"""What Numba has no name for: the population count of a word, and its lowest one bit."""

from longwall.kernels.jit.compile import Intrinsic


@Intrinsic
def popcount(_typing_context, word):  # noqa: ARG001 - Numba reads the signature
    """Count the one bits of a uint64: a single machine instruction, for which Numba has no name."""
    from numba import types

    def generate(_context, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@Intrinsic
def trailing_zeros(_typing_context, word):  # noqa: ARG001 - Numba reads the signature
    """Position of the lowest one bit of a uint64 that is not zero."""
    from llvmlite import ir
    from numba import types

    def generate(_context, builder, _signature, arguments):
        never_zero = ir.Constant(ir.IntType(1), 1)
        return builder.cttz(arguments[0], never_zero)

    return types.int64(types.uint64), generate
