"""Arrays of the device: a NumPy array over device memory, which no NumPy function gets to see."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cupy._device import emulated
from cupy._memory import MemoryPointer, allocate


class _Buffer:
    """What an array's memory belongs to; NumPy keeps it alive as the base of its arrays."""

    def __init__(self, pointer: MemoryPointer, size: int):
        self.pointer = pointer
        data = (pointer.ptr, False)
        self.__array_interface__ = {"data": data, "typestr": "|u1", "shape": (size,), "version": 3}


def _on_device(memory: MemoryPointer, shape: Any, dtype: Any, strides: Any = None, order: str = "C") -> Any:
    """Return a NumPy array over device memory."""
    shape = (int(shape),) if not isinstance(shape, tuple | list) else tuple(int(n) for n in shape)
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    flat = np.asarray(_Buffer(memory, count * dtype.itemsize)).view(dtype)
    if strides is None:
        return flat.reshape(shape, order=order)
    return np.lib.stride_tricks.as_strided(flat, shape, strides)


def _owner(array: Any) -> _Buffer | None:
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, _Buffer) else None


def wrap(found: Any) -> Any:
    """Make what a NumPy function gave the device's; numbers become arrays without dimensions."""
    if isinstance(found, tuple | list):
        return type(found)(map(wrap, found))
    if isinstance(found, np.generic):
        found = np.asarray(found)
    if not isinstance(found, np.ndarray):
        return found
    if _owner(found) is None and found.size:
        order = "F" if found.flags.f_contiguous and not found.flags.c_contiguous else "C"
        copy = _on_device(allocate(found.nbytes), found.shape, found.dtype, order=order)
        copy[...] = found
        found = copy
    return ndarray._of(found)


def unwrap(value: Any) -> Any:
    """Return what is the device's to NumPy; arrays of the host are refused, as CuPy refuses them."""
    if isinstance(value, ndarray):
        return value._array
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, tuple | list):
        return type(value)(map(unwrap, value))
    if isinstance(value, dict):
        return {key: unwrap(item) for key, item in value.items()}
    return value


def call(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Call a NumPy function with arrays of the device."""
    emulated.catch_up()
    out = named.get("out")
    with np.errstate(all="ignore"):
        found = function(*unwrap(given), **unwrap(named))
    if isinstance(out, tuple):
        (out,) = out
    return wrap(found) if out is None else out


def _index(key: Any) -> Any:
    """Indices may be lists and NumPy arrays: CuPy copies them to the device."""
    if isinstance(key, tuple):
        return tuple(map(_index, key))
    return key._array if isinstance(key, ndarray) else key


class ndarray:  # noqa: N801
    """An array of the device, as `cupy.ndarray`."""

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"):
        count = int(np.prod(shape, dtype=np.int64))
        memory = allocate(count * np.dtype(dtype).itemsize) if memptr is None else memptr
        self._array = _on_device(memory, shape, dtype, strides, order)

    @classmethod
    def _of(cls, array: Any) -> ndarray:
        made = cls.__new__(cls)
        made._array = array
        return made

    @property
    def data(self) -> MemoryPointer:
        """Where the first element is."""
        owner = _owner(self._array)
        if owner is None:
            return MemoryPointer(allocate(0).mem, 0)
        return owner.pointer + (self._array.ctypes.data - owner.pointer.ptr)

    @property
    def device(self) -> Any:
        """Where it is."""
        from cupy.cuda import Device

        return Device(0)

    @property
    def base(self) -> Any:
        """The array that this one is a view of, in words."""
        return None if isinstance(self._array.base, _Buffer) else self._array.base

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    size = property(lambda self: self._array.size)
    ndim = property(lambda self: self._array.ndim)
    nbytes = property(lambda self: self._array.nbytes)
    itemsize = property(lambda self: self._array.itemsize)
    strides = property(lambda self: self._array.strides)
    flags = property(lambda self: self._array.flags)
    T = property(lambda self: wrap(self._array.T))

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """Copy to the host."""
        emulated.catch_up()
        if out is None:
            return self._array.copy(order="C" if order == "A" else order)
        if not isinstance(out, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be obtained from cupy.ndarray, got {type(out)}")
        if out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(f"{out.dtype}{out.shape} cannot take {self.dtype}{self.shape}")
        if not (out.flags.c_contiguous or out.flags.f_contiguous):
            raise RuntimeError("`out` must be contiguous")
        out[...] = self._array
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy from the host."""
        emulated.catch_up()
        if not isinstance(arr, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be set to cupy.ndarray, got {type(arr)}")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old: {self.shape}, new: {arr.shape}")
        if not (self._array.flags.c_contiguous or self._array.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        self._array[...] = arr

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        return call(getattr(ufunc, method), *inputs, **named)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        import cupy

        return getattr(cupy, function.__name__)(*given, **named)

    def __getitem__(self, key: Any) -> Any:
        emulated.require()
        found = self._array[_index(key)]
        if not isinstance(found, np.ndarray) or _owner(found) is None:  # no view
            emulated.catch_up()
            found = self._array[_index(key)]
        return wrap(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        emulated.catch_up()
        if isinstance(value, np.ndarray) and value.size != 1:
            raise TypeError("a NumPy array cannot be assigned to a part of a CuPy array; use set()")
        self._array[_index(key)] = _index(value)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __index__(self) -> int:
        return operator.index(self._array)

    def __repr__(self) -> str:
        return repr(self._array)

    def __format__(self, spec: str) -> str:
        return format(self._array[()], spec)

    def fill(self, value: Any) -> None:
        """Set every element."""
        self[...] = value

    def sort(self, axis: int = -1) -> None:
        """Sort in place."""
        workspace = _sort_workspace(self.size, self.itemsize)
        call(self._array.sort, axis)
        del workspace

    def argsort(self, axis: Any = -1) -> Any:
        """Return the order of the elements; CuPy always sorts stably."""
        copy = self.copy()
        order = call(np.argsort, self, axis=axis, kind="stable")
        workspace = _sort_workspace(self.size, self.itemsize + 8)
        del copy, workspace
        return order


def _sort_workspace(count: int, item: int) -> MemoryPointer:
    """Allocate what Thrust's radix sort does: everything once more, and counts of tiles."""
    try:
        return allocate(count * item + (1 << 10) * -(-count // 4608) + (18 << 10) if count else 0)
    except MemoryError:
        raise MemoryError("std::bad_alloc") from None


def _add_method(name: str) -> None:
    def method(self: ndarray, *given: Any, **named: Any) -> Any:
        if name in ("view", "reshape"):
            emulated.require()
            found = getattr(self._array, name)(*unwrap(given), **unwrap(named))
            if _owner(found) is not None:  # nothing is read
                return wrap(found)
        return call(getattr(self._array, name), *given, **named)

    method.__name__ = name
    setattr(ndarray, name, method)


def _add_operators(name: str, function: Any) -> None:
    def forward(self: ndarray, other: Any) -> Any:
        return call(function, self, other)

    def reflected(self: ndarray, other: Any) -> Any:
        return call(function, other, self)

    def in_place(self: ndarray, other: Any) -> Any:
        call(function, self, other, out=self)
        return self

    setattr(ndarray, f"__{name}__", forward)
    setattr(ndarray, f"__r{name}__", reflected)
    setattr(ndarray, f"__i{name}__", in_place)


_METHODS = """
all any argmax argmin argpartition astype clip compress copy cumprod cumsum diagonal dot flatten item max mean
min nonzero partition prod put ravel repeat reshape round squeeze std sum swapaxes take tolist transpose var view
"""
for _name in _METHODS.split():
    _add_method(_name)
for _name, _function in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "matmul": np.matmul,
}.items():
    _add_operators(_name, _function)
for _name, _function in {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}.items():
    setattr(ndarray, f"__{_name}__", lambda self, other, _function=_function: call(_function, self, other))
for _name, _function in {
    "neg": np.negative,
    "pos": np.positive,
    "invert": np.invert,
    "abs": np.absolute,
}.items():
    setattr(ndarray, f"__{_name}__", lambda self, _function=_function: call(_function, self))
