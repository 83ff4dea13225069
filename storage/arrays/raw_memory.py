"""What kernels need to work on memory by address: loads, and calls of functions in C, which hold no GIL either.

An address is an int64. Who passes one keeps the memory while the kernel runs, and knows how much of it there is.
"""

from typing import Any

import numpy.typing as npt

from longwall.kernels.jit import Intrinsic


def address_of(array: npt.NDArray[Any]) -> int:
    """Return where the items of a contiguous array lie; the caller keeps the array."""
    address: int = array.__array_interface__["data"][0]
    return address


@Intrinsic
def load_word(_typing_context, address):  # noqa: ARG001 - Numba reads the signature
    """Return the 8 bytes at an address as a uint64; it need not be a multiple of 8."""
    from llvmlite import ir
    from numba import types

    def generate(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(types.int64), generate


@Intrinsic
def load_byte(_typing_context, address):  # noqa: ARG001 - Numba reads the signature
    """Return the byte at an address, as a uint64."""
    from llvmlite import ir
    from numba import types

    def generate(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(place), ir.IntType(64))

    return types.uint64(types.int64), generate


@Intrinsic
def store_byte(_typing_context, address, byte):  # noqa: ARG001 - Numba reads the signature
    """Write the low byte of a uint64 to an address."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        builder.store(builder.trunc(arguments[1], ir.IntType(8)), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@Intrinsic
def call_decoder(_typing_context, function, source, target, size):  # noqa: ARG001 - Numba reads the signature
    """Call ``int function(const void *source, void *target, size_t size, int 1)``, an address; return what it does."""
    from llvmlite import ir
    from numba import types

    def generate(_context, builder, _signature, arguments):
        pointer, word, number = ir.IntType(8).as_pointer(), ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(number, [pointer, pointer, word, number])
        called, *places = (
            builder.inttoptr(argument, to)
            for argument, to in zip(arguments[:3], (kind.as_pointer(), pointer, pointer), strict=True)
        )
        found = builder.call(called, [*places, arguments[3], ir.Constant(number, 1)])
        return builder.sext(found, word)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate
