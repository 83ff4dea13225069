"""The memory of an engine on its device: a pool that keeps a limit and says what it took at most, and copies to it."""

import gc
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.runtime.errors import REFUSED, CudaFaults, fault_of
from longwall.kernels.cuda.runtime.pools import open_pool
from longwall.kernels.interface.engine import DeviceFull, EngineLost, MemoryPeak, ShortOfMemory

KERNELS_BYTES = 64 << 20  # of a device, that arrays leave to the driver: for kernels' code and stacks
_UNIT = 512  # bytes, of which CuPy's pools allocate multiples
_TOGETHER = 1 << 20  # bytes of arrays that cross the link as one: a copy takes 0.1 ms, however small it is
_SMALL = 64 << 20  # bytes that are kept for small calls: the driver takes 0.05 to 0.3 ms for each block
_SMALL_SHARE = 32  # they are at most 1 / 32 of the device's free memory, or of the limit
_ZERO_WORDS = 62  # spare words of a page of zeros: with the two of a count they fill 512 bytes, a pool's least block
_SAMPLED = 16 << 20  # bytes by which the pool grows between two looks at the driver, which take 20 us each

Array = Any  # a CuPy array


class DeviceMemory:
    """A pool of device memory; see :class:`longwall.kernels.interface.engine.EngineMemory`.

    `allocate` is a CuPy allocator, for any number of threads.

    An array may outlive the engine; see `longwall.kernels.cuda.runtime.pools`.

    Parameters
    ----------
    xp
        cupy.
    """

    def __init__(self, xp: Any):
        self._xp, self._device = xp, int(xp.cuda.Device().id)
        self._pool = open_pool(xp, self)
        self._lock = threading.Lock()
        free, total = xp.cuda.runtime.memGetInfo()
        self._before = int(total) - int(free)
        self._opened = self._least_free = int(free)
        self._most = self._sampled = 0
        self._kept: list[tuple[weakref.ref[NDArray[Any]], Array]] = []
        self._small = min(_SMALL, int(free) // _SMALL_SHARE)
        self._zeros = _Zeros(xp)

    def allocate(self, size: int) -> Any:
        """Return `size` bytes, as a CuPy memory pointer.

        Raises
        ------
        ShortOfMemory
            If the device or the limit has no room for them, though all that is cached was freed.
        """
        memory = self._xp.cuda.memory
        try:
            pointer = self._pool.malloc(size)
        except memory.OutOfMemoryError:
            self._kept = []
            # The pool frees what it caches where the device has no more, but not where its limit is reached.
            self._free_cached()
            try:
                pointer = self._pool.malloc(size)
            except memory.OutOfMemoryError:
                place: Literal["limit", "device"] = "limit" if self._at_limit(size) else "device"
                REFUSED.last = ShortOfMemory(place, size)  # without its frames, which hold arrays
                raise ShortOfMemory(place, size) from None
        REFUSED.last = None
        if (taken := int(self._pool.total_bytes())) > self._most:
            with self._lock:
                self._most = max(taken, self._most)
                due = taken > self._sampled + _SAMPLED
                self._sampled = taken if due else self._sampled
            if due:
                self.sample()
        return pointer

    def zero_words(self, number: int) -> Any:
        """Return a pointer to a few zeroed words of 64 bits; see `allocate`."""
        return self._zeros.take(number, self.allocate)

    def prepare_small(self) -> None:
        """Cache a block that small arrays will be parts of."""
        self._pool.malloc(self._small)

    def allocate_apart(self, size: int) -> Any:
        """Return `size` bytes straight from the driver, outside of the pool and its limit, as `allocate` does."""
        memory = self._of_driver(size)
        if memory is None:
            self._kept = []
            self.release()
            memory = self._of_driver(size)
        if memory is None:
            raise ShortOfMemory("device", size)
        self.sample()
        return self._xp.cuda.MemoryPointer(memory, 0)

    def limit(self, size: int) -> None:
        """Let the pool hold at most `size` bytes from now on, what it caches included."""
        if size < _SMALL_SHARE * self._small:  # large arrays could not use the rest of the block
            self._free_cached()
        self._pool.set_limit(size=max(size, 1))  # to CuPy, 0 is no limit

    def fill(self, there: Array, values: NDArray[Any]) -> None:
        """Copy an array of the host, by way of what the driver keeps for that."""
        there.set(values)

    def release(self, *, garbage: bool = True) -> None:
        """Return cached blocks to the device."""
        if garbage:
            gc.collect()
        self._free_cached()

    def _free_cached(self) -> None:
        self._zeros.forget()
        self._pool.free_all_blocks()

    def trim(self) -> None:
        """Return cached blocks to the device if they are more than `_SMALL`."""
        if self._pool.free_bytes() > self._small:
            self._free_cached()

    def spare(self) -> int:
        """Bytes that the pool could still take of the device."""
        # What is cached may be the rest of a block of which a part is in use.
        limit = int(self._pool.get_limit())
        return (max(limit - int(self._pool.total_bytes()), 0) if limit else self._free()) + self._kept_bytes()

    def free(self) -> int:
        """Return the bytes free on the device for arrays, with those that the pool holds and no array uses."""
        with self._xp.cuda.Device(self._device):
            return max(self._free() - KERNELS_BYTES, 0) + int(self._pool.free_bytes()) + self._kept_bytes()

    def keep(self, arrays: Sequence[NDArray[Any]], there: Sequence[Array]) -> None:
        """Keep copies of host arrays, in the place of those that were kept before, until memory is short."""
        self._kept = list(zip(map(weakref.ref, arrays), there, strict=True))

    def take_kept(self, arrays: Sequence[NDArray[Any]]) -> list[Array | None]:
        """Return the copies of these very arrays that were kept; forget all others."""
        kept, self._kept = self._kept, []
        return [next((there for host, there in kept if host() is array), None) for array in arrays]

    def _kept_bytes(self) -> int:
        return sum(there.nbytes for _, there in self._kept)

    def sample(self) -> None:
        """Look at what the driver has left: for `peak`, where something else than the pool grew."""
        free = self._free()
        with self._lock:
            self._least_free = min(self._least_free, free)

    def peak(self) -> MemoryPeak:
        """Return the most that was in use so far."""
        with suppress(EngineLost), CudaFaults(self._xp, self.allocate):
            self.sample()
        return MemoryPeak(self._most, self._opened - self._least_free, self._before)

    def _of_driver(self, size: int) -> Any:
        """Return memory of the driver; None where the device has no room for it."""
        cuda = self._xp.cuda
        try:
            return cuda.Memory(size)
        except cuda.runtime.CUDARuntimeError as error:
            if isinstance(fault_of(int(error.status), ""), ShortOfMemory):
                return None
            raise

    def _at_limit(self, size: int) -> bool:
        """Return whether the pool's limit has no room for `size` bytes more."""
        limit = self._pool.get_limit()
        return bool(limit) and self._pool.total_bytes() + -(-size // _UNIT) * _UNIT > limit

    def _free(self) -> int:
        free, _ = self._xp.cuda.runtime.memGetInfo()
        return int(free)


def check_room(xp: Any) -> None:
    """Check that the current device has room for kernels and for some arrays.

    Raises
    ------
    DeviceFull
        If it has not, though all that earlier runs of this process have left there was given back.
    """
    if _has_room(xp):
        return
    gc.collect()  # what a failed run had may still be in cycles
    if not _has_room(xp):
        raise DeviceFull


def _has_room(xp: Any) -> bool:
    return bool(xp.cuda.runtime.memGetInfo()[0] > KERNELS_BYTES)


def copied(xp: Any, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    """Copy arrays of one dimension to the device; small ones as one, of which views are returned."""
    places, size = {}, 0
    for name, array in sorted(arrays.items(), key=lambda item: item[1].nbytes):
        capacity = -(-array.nbytes // _UNIT) * _UNIT
        if size + capacity > _TOGETHER:
            break
        places[name], size = size, size + capacity
    there = {name: copied_array(xp, array) for name, array in arrays.items() if name not in places}
    if places:
        whole = np.zeros(size, np.uint8)
        for name, at in places.items():
            whole[at : at + arrays[name].nbytes] = np.ascontiguousarray(arrays[name]).view(np.uint8)
        bytes_there = copied_array(xp, whole)
        for name, at in places.items():
            there[name] = bytes_there[at : at + arrays[name].nbytes].view(arrays[name].dtype)
    return there


def copied_array(xp: Any, array: NDArray[Any]) -> Array:
    """Copy an array by way of what the driver keeps: CuPy would lock, and keep, as much memory of the host besides."""
    there = xp.empty(array.shape, array.dtype)
    there.set(array)
    return there


class _Zeros:
    """Hands out zeroed 64-bit words, each once; a page is freed when nothing points to its words any more."""

    def __init__(self, xp: Any):
        self._xp = xp
        self._lock = threading.RLock()  # a signal handler may run a count while its thread holds the lock
        self._next: Any = None
        self._left = 0

    def take(self, number: int, allocate: Callable[[int], Any]) -> Any:
        """Return a pointer to a number of words, of a new page if need be."""
        with self._lock:
            if number > self._left:
                size = number + _ZERO_WORDS
                self._next, self._left = self._new_page(allocate, size), size
            words, self._next, self._left = self._next, self._next + 8 * number, self._left - number
            return words

    def forget(self) -> None:
        """Leave the page, which would keep all of the block that it is a part of."""
        with self._lock:
            self._next, self._left = None, 0

    def _new_page(self, allocate: Callable[[int], Any], size: int) -> Any:
        with self._xp.cuda.Stream.null as stream:
            page = allocate(8 * size)
            page.memset_async(0, 8 * size, stream)  # all streams wait for this one, except those of copies
        return page
