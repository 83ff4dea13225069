"""New arrays."""

from typing import Any

import numpy as np

from cupy._array import ndarray, unwrap, wrap
from cupy._device import emulated


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return an array of garbage."""
    emulated.require()
    return ndarray(shape, dtype, order=order)


def empty_like(prototype: ndarray, dtype: Any = None, shape: Any = None) -> ndarray:
    """Return an array of garbage."""
    return empty(prototype.shape if shape is None else shape, dtype or prototype.dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    """Return an array of one value."""
    made = empty(shape, dtype or np.asarray(unwrap(fill_value)).dtype, order)
    made.fill(fill_value)
    return made


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return an array of zeros."""
    return full(shape, 0, dtype, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return an array of ones."""
    return full(shape, 1, dtype, order)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """Return a range of numbers."""
    bounds = (0, start) if stop is None else (start, stop)
    made: ndarray = wrap(np.arange(*map(_number, bounds), _number(step), dtype=dtype))
    return made


def _number(value: Any) -> Any:
    return value._array[()] if isinstance(value, ndarray) else value


def array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", ndmin: int = 0) -> ndarray:
    """Copy to the device."""
    emulated.require()
    if isinstance(obj, list | tuple) and any(isinstance(item, ndarray) for item in obj):
        obj = [item.get() if isinstance(item, ndarray) else item for item in obj]
    given = obj._array if isinstance(obj, ndarray) else obj
    made = np.array(given, dtype=dtype, order=order, ndmin=ndmin)
    if made.dtype.kind not in "?biufc":
        raise ValueError(f"Unsupported dtype {made.dtype}")
    found: ndarray = wrap(made)
    return found


def asarray(a: Any, dtype: Any = None, order: str | None = None) -> ndarray:
    """Copy to the device, unless it is there."""
    if isinstance(a, ndarray) and (dtype is None or a.dtype == dtype):
        return a
    return array(a, dtype)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """Return an array whose rows lie one behind the other."""
    if isinstance(a, ndarray) and (dtype is None or a.dtype == dtype) and a.flags.c_contiguous:
        return a
    return array(a, dtype, order="C")


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
    """Copy to the host."""
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a, order=order)
