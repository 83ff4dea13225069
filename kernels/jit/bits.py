"""Machine instructions on words of bits, for which Numba has no names."""

from typing import Any

from longwall.kernels.jit.compile import Intrinsic


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
