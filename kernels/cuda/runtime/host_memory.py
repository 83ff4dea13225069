"""Host memory that kernels read: page-locked and mapped ("zero-copy"), or managed, whose pages can be moved."""

import weakref
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import EngineUnavailable

Array = Any  # a CuPy array

_MAPPED = 2  # cudaHostRegisterMapped
_CONCURRENT_MANAGED_ACCESS = 89  # cudaDevAttrConcurrentManagedAccess
_SHARES_PAGES = 8 << 20  # bytes: shorter arrays may lie in one operating system's page with others
_BLOCK = 2 << 20  # bytes in which the driver keeps managed memory on the device
_registered: weakref.WeakValueDictionary[tuple[int, int], "_Registration"] = weakref.WeakValueDictionary()


class _Registration:
    """Page-locked memory of an array, for as long as something refers to it."""

    _locked = False

    def __init__(self, xp: Any, array: NDArray[Any]):
        # Locking touched memory takes a sixteenth of the time of allocating locked memory (48 GB/s to 2.8).
        self._runtime, self._array = xp.cuda.runtime, array
        try:
            self._runtime.hostRegister(array.ctypes.data, array.nbytes, _MAPPED)
        except xp.cuda.runtime.CUDARuntimeError as error:
            raise EngineUnavailable(
                f"the graph's memory cannot be locked for the device ({error}): choose another access, or raise the "
                "limit of locked memory (ulimit -l)"
            ) from None
        self._locked = True

    def __del__(self) -> None:
        if self._locked:
            self._runtime.hostUnregister(self._array.ctypes.data)


def mapped(xp: Any, array: NDArray[Any]) -> Array:
    """Let kernels read an array where it is, over the host link.

    Parameters
    ----------
    xp
        cupy.
    array
        Contiguous; short ones are copied, since pages can be locked only once.

    Returns
    -------
    cupy.ndarray
        The same memory, or that of the copy, which it keeps alive.
    """
    owner: Any
    if array.nbytes < _SHARES_PAGES:
        owner = xp.cuda.alloc_pinned_memory(max(array.nbytes, 1))
        np.frombuffer(owner, array.dtype, array.size)[:] = array.ravel()
        address = owner.ptr
    else:
        address, key = array.ctypes.data, (array.ctypes.data, array.nbytes)
        owner = _registered.get(key)
        if owner is None:
            owner = _registered[key] = _Registration(xp, array)
    # Under unified addressing the device reads locked memory at the host's address.
    memory = xp.cuda.UnownedMemory(address, array.nbytes, owner, xp.cuda.Device().id)
    return xp.ndarray(array.shape, array.dtype, xp.cuda.MemoryPointer(memory, 0))


def copied_to_map(array: NDArray[Any]) -> int:
    """Bytes of the host that `mapped` takes for a copy of an array."""
    return array.nbytes if array.nbytes < _SHARES_PAGES else 0


class _ManagedMemory:
    """Managed memory as NumPy sees it; it lives as long as an array over it."""

    def __init__(self, xp: Any, length: int, dtype: np.dtype[Any]):
        nbytes = length * dtype.itemsize
        whole = xp.cuda.malloc_managed(nbytes + _BLOCK)
        self.pointer = whole + -whole.ptr % _BLOCK
        self.__array_interface__ = {
            "shape": (length,),
            "typestr": dtype.str,
            "data": (self.pointer.ptr, False),
            "version": 3,
        }


def managed_array(xp: Any, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make an empty host array in managed memory, which `ManagedArray` lets kernels read without a copy."""
    return np.asarray(_ManagedMemory(xp, length, dtype))


def is_managed(array: NDArray[Any]) -> bool:
    """Whether an array came from `managed_array`."""
    owner: object = array.base
    return isinstance(owner, _ManagedMemory)


class ManagedArray:
    """An array in managed memory, at first on the host.

    Pages whose home is the host are read over the link at its full rate, in any order: 51 GB/s for random lines on an
    H200, where registered memory has 7.5.

    Parameters
    ----------
    xp
        cupy.
    values
        What it holds; copied unless it is in managed memory.
    home
        "host": kernels read pages there; "device": pages are there once they were moved, or written by a kernel; None:
        a page that a kernel touches moves to the device.

    Attributes
    ----------
    array : cupy.ndarray
        For kernels.

    Raises
    ------
    EngineUnavailable
        If the bindings for moving pages are missing.
    """

    def __init__(self, xp: Any, values: NDArray[Any], *, home: Literal["host", "device"] | None):
        self._xp = xp
        self._runtime = _bindings()
        if not can_move_pages(xp):
            raise EngineUnavailable(
                'the device cannot share managed memory with the host: choose the access "zero-copy"'
            )
        # CUDA 12 has the calls that take a location beside older ones that take a number.
        self._prefetch = getattr(self._runtime, "cudaMemPrefetchAsync_v2", self._runtime.cudaMemPrefetchAsync)
        self._give_advice = getattr(self._runtime, "cudaMemAdvise_v2", self._runtime.cudaMemAdvise)
        if not is_managed(values):
            copy = managed_array(xp, values.size, values.dtype)
            copy[:] = values
            values = copy
        memory: Any = values.base
        self.array = xp.ndarray(values.shape, values.dtype, memory.pointer)
        self._stream = xp.cuda.Stream(non_blocking=True)
        self._host = self._location(self._runtime.cudaMemLocationType.cudaMemLocationTypeHost, 0)
        self._device = self._location(
            self._runtime.cudaMemLocationType.cudaMemLocationTypeDevice, int(xp.cuda.Device().id)
        )
        advice = self._runtime.cudaMemoryAdvise
        if home is not None:
            location = self._host if home == "host" else self._device
            self._advise(advice.cudaMemAdviseSetPreferredLocation, location)
            self._advise(advice.cudaMemAdviseSetAccessedBy, self._device)

    def move(self, ranges: NDArray[np.int64], *, to_device: bool) -> None:
        """Move ranges of items, int64[k, 2]; kernels that are launched after this wait for it."""
        size, base = self.array.itemsize, self.array.data.ptr
        location = self._device if to_device else self._host
        # What ran before has read the pages that leave.
        self._stream.wait_event(self._xp.cuda.get_current_stream().record())
        for first, last in ranges.tolist():
            place = (base + first * size, (last - first) * size)
            self._check(self._prefetch(*place, location, 0, self._stream.ptr))
        self._xp.cuda.get_current_stream().wait_event(self._stream.record())

    def _location(self, kind: Any, number: int) -> Any:
        location = self._runtime.cudaMemLocation()
        location.type, location.id = kind, number
        return location

    def _advise(self, advice: Any, location: Any) -> None:
        # The driver refuses advice on no bytes.
        self._check(self._give_advice(self.array.data.ptr, max(self.array.nbytes, 1), advice, location))

    def _check(self, answer: tuple[Any]) -> None:
        status = int(answer[0])
        if status:
            raise self._xp.cuda.runtime.CUDARuntimeError(status)


def can_move_pages(xp: Any) -> bool:
    """Whether pages of managed memory can be on the host while kernels run, and can be moved."""
    try:
        _bindings()
    except EngineUnavailable:
        return False
    device = xp.cuda.Device()
    return bool(xp.cuda.runtime.deviceGetAttribute(_CONCURRENT_MANAGED_ACCESS, device.id))


def _bindings() -> Any:
    try:
        from cuda.bindings import runtime
    except ImportError:
        raise EngineUnavailable(
            "moving pages of managed memory needs cuda-bindings: pip install 'longwall[cuda]', "
            'or choose the access "zero-copy"'
        ) from None
    return runtime
