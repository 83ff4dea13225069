"""Types of a kernel's arguments as a text: as kernels declare them, of values, and of Numba.

A type is written as in Numba and Cython: ``i8`` is an int64, ``u4[::1]`` an array of uint32 that is contiguous,
``u8[:,::1]`` a matrix in the order of C, ``i8[:]`` an array with any stride, ``const(u1[::1])`` one that is only read,
and may be read-only, ``none`` a None, and ``Found(i8, u4[::1])`` a named tuple.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import zip_longest
from typing import Any

import numpy as np

_CONTIGUOUS, _FORTRAN, _WRITEABLE = 0x1, 0x2, 0x400  # of `numpy.ndarray.flags.num`
_LAYOUT = _CONTIGUOUS | _FORTRAN | _WRITEABLE
_SCALARS: dict[Any, str] = {int: "i8", float: "f8", bool: "b1", type(None): "none"} | {
    np.dtype(name).type: np.dtype(name).str[1:] for name in "bhilqBHILQfd?"
}
_NAMED = re.compile(r"(\w+)\(")


def kind_of(value: Any) -> Any:
    """Return what the choice of the machine code depends on, as something that can be a key."""
    kind = type(value)
    if kind is np.ndarray or kind is np.memmap:
        return value.dtype, value.ndim, value.flags.num & _LAYOUT
    if kind is int and not -(2**63) <= value < 2**63:
        return None
    return (kind, tuple(map(kind_of, value))) if isinstance(value, tuple) else kind


def text_of_kinds(kinds: Sequence[Any]) -> str | None:
    """Return kinds of arguments as a text; None if one cannot be declared."""
    return _joined(kinds, _text_of_kind)


def text_of_types(types: Sequence[Any]) -> str | None:
    """Return Numba's types of arguments as a text; None if one cannot be declared."""
    return _joined(types, _text_of_type)


def types_of_text(text: str, names: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return Numba's types for a text; `names` has the classes of named tuples."""
    types: Any = import_module("numba.core.types")

    def named(name: str) -> Callable[..., Any]:
        return lambda *inner: types.BaseTuple.from_types(inner, names[name])

    known = {name: named(name) for name in _NAMED.findall(text)}
    known |= {
        "const": lambda array: array.copy(readonly=True),
        "tuple": lambda *inner: types.BaseTuple.from_types(inner),
    }
    found: tuple[Any, ...] = eval(f"({text},)", vars(types) | known)
    return found


def accepts(declared: str, given: str) -> bool:
    """Return whether a kernel that declares some types can be called with others."""
    return all(
        one in (other, any_stride := other.replace("::1", ":"), f"const({other})", f"const({any_stride})")
        for one, other in zip_longest(declared.split(", "), given.split(", "), fillvalue="")
    )


def _joined(values: Sequence[Any], text_of: Callable[[Any], str | None]) -> str | None:
    found = [text_of(value) for value in values]
    return None if None in found else ", ".join(map(str, found))


def _text_of_kind(kind: Any) -> str | None:
    if not isinstance(kind, tuple):
        return _SCALARS.get(kind)
    if not isinstance(kind[0], np.dtype):
        inner = text_of_kinds(kind[1])
        return None if inner is None else f"{kind[0].__name__}({inner})"
    dtype, dimensions, flags = kind
    if not dtype.isnative or dtype.type not in _SCALARS:
        return None
    layout = "C" if flags & _CONTIGUOUS else "F" if flags & _FORTRAN else "A"
    return _text_of_array(dtype.str[1:], dimensions, layout, mutable=bool(flags & _WRITEABLE))


def _text_of_type(one: Any) -> str | None:
    from numba.np.numpy_support import as_dtype

    types: Any = import_module("numba.core.types")

    if isinstance(one, types.BaseTuple):
        inner = text_of_types(one.types)
        return None if inner is None else f"{getattr(one, 'instance_class', tuple).__name__}({inner})"
    if isinstance(one, types.NoneType):
        return "none"
    array = isinstance(one, types.Array)
    number = one.dtype if array else one
    if not isinstance(number, types.Integer | types.Float | types.Boolean) or isinstance(number, types.Literal):
        return None
    name = str(as_dtype(number).str[1:])
    return _text_of_array(name, one.ndim, one.layout, mutable=one.mutable) if array else name


def _text_of_array(item: str, dimensions: int, layout: str, *, mutable: bool) -> str:
    axes = [":"] * dimensions
    if layout != "A" and dimensions:
        axes[-1 if layout == "C" else 0] = "::1"
    text = f"{item}[{','.join(axes)}]"
    return text if mutable else f"const({text})"
