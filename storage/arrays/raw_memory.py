"""What kernels need to work on memory by address: loads, and calls of functions in C, which hold no GIL either.

An address is an int64. Who passes one keeps the memory while the kernel runs, and knows how much of it there is.
"""

from typing import Any

import numpy.typing as npt

from longwall.kernels.jit.compile import Intrinsic

LEVEL, BYTE_SHUFFLE = 5, 1
"""Of what `call_encoder` makes."""


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
    """Call Blosc's ``int decompress(source, target, size, 1 thread)`` at an address; return what it does."""
    from numba import types

    def generate(_context, builder, _signature, arguments):
        function, source, target, size = arguments
        return _called(builder, function, (source, "pointer"), (target, "pointer"), (size, "size"), (1, "int"))

    return types.int64(*[types.int64] * 4), generate


@Intrinsic
def call_encoder(_typing_context, function, codec, itemsize, source, size, target, capacity):  # noqa: ARG001 - see above
    """Call Blosc's ``int compress(level, shuffle, itemsize, size, source, target, room, codec, block, threads)``."""
    from numba import types

    def generate(_context, builder, _signature, arguments):
        function, codec, itemsize, source, size, target, capacity = arguments
        return _called(
            builder,
            function,
            *((LEVEL, "int"), (BYTE_SHUFFLE, "int"), (itemsize, "size"), (size, "size"), (source, "pointer")),
            *((target, "pointer"), (capacity, "size"), (codec, "pointer"), (0, "size"), (1, "int")),
        )

    return types.int64(*[types.int64] * 7), generate


def _called(builder, function, *arguments):
    """Write a call of a function in C that returns an int: of values or constants, each with its kind."""
    from llvmlite import ir

    kinds = {"int": ir.IntType(32), "size": ir.IntType(64), "pointer": ir.IntType(8).as_pointer()}
    types = [kinds[kind] for _, kind in arguments]
    called = builder.inttoptr(function, ir.FunctionType(kinds["int"], types).as_pointer())
    values = [
        ir.Constant(kinds[kind], value)
        if isinstance(value, int)
        else builder.inttoptr(value, kinds[kind])
        if kind == "pointer"
        else value
        for value, kind in arguments
    ]
    return builder.sext(builder.call(called, values), ir.IntType(64))
