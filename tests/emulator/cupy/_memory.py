"""Device memory as CuPy hands it out: pools, pointers, and memory of other kinds."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cupy._device import emulated, runtime

_UNIT = 512  # pools give multiples of it


class OutOfMemoryError(MemoryError):
    """Device memory, or a pool's limit, does not suffice."""

    def __init__(self, size: int, total: int, limit: int = 0):
        self._size, self._total, self._limit = size, total, limit
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(text + (f", limit set to: {limit:,} bytes)." if limit else ")."))


class BaseMemory:
    """A range of memory that kernels can reach: `ptr` and `size`."""

    ptr = 0
    size = 0
    device_id = 0

    @property
    def device(self) -> Any:
        """The device that it belongs to."""
        from cupy.cuda import Device

        return Device(self.device_id)


class Memory(BaseMemory):
    """Memory of the device itself."""

    def __init__(self, size: int):
        from cupy.cuda import runtime as errors

        emulated.require()
        if not emulated.take(size):
            raise errors.CUDARuntimeError(errors.errorMemoryAllocation)
        self.size = size
        self.ptr = runtime().emulator_allocate(size) if size else 0
        if size and not self.ptr:
            emulated.give(size)
            raise RuntimeError("the emulator has used up its addresses; run fewer tests in one process")

    def __del__(self) -> None:
        if self.ptr:
            runtime().emulator_release(self.ptr)
            emulated.give(self.size)


class ManagedMemory(BaseMemory):
    """Managed memory; it is not counted as the device's, wherever its pages would be."""

    def __init__(self, size: int):
        emulated.require()
        self.size = size
        self.ptr = runtime().emulator_allocate(size) if size else 0

    def __del__(self) -> None:
        if self.ptr:
            runtime().emulator_release(self.ptr)


class UnownedMemory(BaseMemory):
    """Somebody else's memory; `owner` is kept alive."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1):
        self.ptr, self.size, self._owner = ptr, size, owner
        self.device_id = max(device_id, 0)


class PinnedMemory(BaseMemory):
    """Page-locked host memory, which kernels can reach."""

    def __init__(self, size: int, flags: int = 0):
        emulated.require()
        self.size = size
        self._buffer = (ctypes.c_char * max(size, 1))()
        self.ptr = ctypes.addressof(self._buffer)
        runtime().emulator_add_host(self.ptr, size)

    def __del__(self) -> None:
        if self.ptr:
            runtime().emulator_remove_host(self.ptr)


class _PooledMemory(BaseMemory):
    """A block of a pool: memory of exactly the size that was asked for, counted as CuPy rounds it."""

    def __init__(self, size: int, pool: MemoryPool):
        self._pool = weakref.ref(pool)
        self._memory, self._chunk = pool.take(size, -(-size // _UNIT) * _UNIT)
        self.ptr, self.size = self._memory.ptr, size

    def __del__(self) -> None:
        pool = self._pool()
        if self.ptr and pool is not None:
            pool.give(self._chunk)


class _Chunk:
    """A part of what a pool has of the device, and its neighbours if it was split off."""

    def __init__(self, size: int, stream: int, prev: _Chunk | None = None, next_: _Chunk | None = None):
        self.size, self.stream, self.prev, self.next = size, stream, prev, next_

    def split(self, size: int) -> _Chunk:
        """Keep `size` bytes. Return the rest."""
        rest = _Chunk(self.size - size, self.stream, self, self.next)
        if self.next is not None:
            self.next.prev = rest
        self.size, self.next = size, rest
        return rest

    def join(self) -> None:
        """Take the next one in."""
        assert self.next is not None
        self.size, self.next = self.size + self.next.size, self.next.next
        if self.next is not None:
            self.next.prev = self


class MemoryPointer:
    """A place in a range of memory."""

    def __init__(self, mem: BaseMemory, offset: int):
        self.mem, self._offset = mem, offset

    @property
    def ptr(self) -> int:
        """The address."""
        return self.mem.ptr + self._offset

    @property
    def device(self) -> Any:
        """The device that the memory belongs to."""
        return self.mem.device

    @property
    def device_id(self) -> int:
        """Its number."""
        return self.mem.device_id

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self._offset + offset)

    def __sub__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self._offset - offset)

    def memset(self, value: int, size: int) -> None:
        """Fill with a byte."""
        emulated.require()
        ctypes.memset(self.ptr, value, size)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """Fill with a byte."""
        self.memset(value, size)

    def copy_from_host(self, mem: Any, size: int) -> None:
        """Copy from an address of the host."""
        emulated.require()
        ctypes.memmove(self.ptr, _address(mem), size)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy from an address of the host."""
        self.copy_from_host(mem, size)

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy from another place of the device."""
        emulated.require()
        ctypes.memmove(self.ptr, src.ptr, size)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        """Copy from another place of the device."""
        self.copy_from_device(src, size)

    def copy_from(self, mem: Any, size: int) -> None:
        """Copy from the host or the device."""
        if isinstance(mem, MemoryPointer):
            self.copy_from_device(mem, size)
        else:
            self.copy_from_host(mem, size)

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy from the host or the device."""
        self.copy_from(mem, size)

    def copy_to_host(self, mem: Any, size: int) -> None:
        """Copy to an address of the host."""
        emulated.require()
        ctypes.memmove(_address(mem), self.ptr, size)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy to an address of the host."""
        self.copy_to_host(mem, size)


class PinnedMemoryPointer:
    """Page-locked memory as a buffer."""

    mem: PinnedMemory

    @property
    def ptr(self) -> int:
        """The address."""
        return self.mem.ptr

    def size(self) -> int:
        """Bytes."""
        return self.mem.size


def _pinned_pointer(mem: PinnedMemory) -> Any:
    buffer = type("PinnedMemoryPointer", (PinnedMemoryPointer, ctypes.c_char * mem.size), {})
    pointer = buffer.from_address(mem.ptr)
    pointer.mem = mem
    return pointer


class MemoryPool:
    """Memory that is kept for later: `total_bytes` falls when free blocks are given back, not before.

    The pool counts as CuPy's does: a block goes back to the stream that it was made on, an allocation takes the
    smallest of that stream that suffices and leaves the rest of it, and a block of which a part is in use is not given
    back. What it keeps when it is collected stays taken, too.
    """

    def __init__(self, allocator: Callable[[int], MemoryPointer] | None = None):
        self._allocator = allocator
        self._used = self._total = 0
        self._limit = 0
        self._free: dict[int, list[_Chunk]] = {}
        self._lock = threading.RLock()

    def __del__(self) -> None:
        if self._allocator is None:
            emulated.give(self._used)  # but not what is free

    def malloc(self, size: int) -> MemoryPointer:
        """Allocate."""
        return MemoryPointer(_PooledMemory(size, self) if size else BaseMemory(), 0)

    def take(self, size: int, counted: int) -> tuple[BaseMemory, _Chunk]:
        """Allocate for a block."""
        from cupy.cuda import get_current_stream

        emulated.require()
        with self._lock:
            stream = get_current_stream().ptr
            free = self._free.setdefault(stream, [])
            chunk = min((one for one in free if one.size >= counted), key=lambda one: one.size, default=None)
            if chunk is None:
                self._grow(counted)
                chunk = _Chunk(counted, stream)
            else:
                free.remove(chunk)
                if chunk.size > counted:
                    free.append(chunk.split(counted))
            self._used += counted
            memory = _Uncounted(size) if self._allocator is None else self._allocator(size).mem
            return memory, chunk

    def _grow(self, size: int) -> None:
        if self._limit and self._total + size > self._limit:
            self.free_all_blocks()
        if self._limit and self._total + size > self._limit:
            raise OutOfMemoryError(size, self._total, self._limit)
        if self._allocator is None and not emulated.take(size):
            self.free_all_blocks()
            if not emulated.take(size):
                raise OutOfMemoryError(size, self._total, self._limit)
        self._total += size

    def give(self, chunk: _Chunk) -> None:
        """Take a block back."""
        with self._lock:
            self._used -= chunk.size
            free = self._free[chunk.stream]
            while chunk.next in free:
                free.remove(chunk.next)
                chunk.join()
            while chunk.prev in free:
                chunk = chunk.prev
                free.remove(chunk)
                chunk.join()
            free.append(chunk)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give free blocks back to the device."""
        with self._lock:
            for free in self._free.values():
                whole = [one for one in free if one.prev is None and one.next is None]
                free[:] = [one for one in free if one not in whole]
                size = sum(one.size for one in whole)
                self._total -= size
                if self._allocator is None:
                    emulated.give(size)

    def used_bytes(self) -> int:
        """Bytes of blocks in use."""
        return self._used

    def free_bytes(self) -> int:
        """Bytes of blocks that are kept."""
        return self._total - self._used

    def total_bytes(self) -> int:
        """Both."""
        return self._total

    def n_free_blocks(self) -> int:
        """Number of blocks that are kept."""
        return int(self._total > self._used)

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Bound `total_bytes`; 0 for no bound."""
        if fraction is not None:
            size = int(emulated.memory * fraction)
        self._limit = size or 0

    def get_limit(self) -> int:
        """The bound, 0 for none."""
        return self._limit


class _Uncounted(BaseMemory):
    """Device memory that a pool has counted."""

    def __init__(self, size: int):
        self.size = size
        self.ptr = runtime().emulator_allocate(size)
        if not self.ptr:
            raise RuntimeError("the emulator has used up its addresses; run fewer tests in one process")

    def __del__(self) -> None:
        if self.ptr:
            runtime().emulator_release(self.ptr)


class PinnedMemoryPool:
    """Page-locked memory that is not kept."""

    def malloc(self, size: int) -> Any:
        """Allocate."""
        return _pinned_pointer(PinnedMemory(size))

    def free_all_blocks(self) -> None:
        """Give free blocks back: there are none."""

    def n_free_blocks(self) -> int:
        """Number of blocks that are kept."""
        return 0


def _address(mem: Any) -> int:
    return int(mem.value) if isinstance(mem, ctypes.c_void_p) else int(mem)


_default_pool, _pinned_pool = MemoryPool(), PinnedMemoryPool()
_allocator: Callable[[int], MemoryPointer] = _default_pool.malloc
_own = threading.local()


def allocate(size: int) -> MemoryPointer:
    """Allocate for an array, as was set."""
    chosen = getattr(_own, "allocator", None)
    pointer: MemoryPointer = (chosen or _allocator)(size)
    return pointer


def set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    """Choose where arrays are allocated; None: by the device, without a pool."""
    global _allocator
    _allocator = allocator or malloc


@contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """Choose where this thread's arrays are allocated."""
    before = getattr(_own, "allocator", None)
    _own.allocator = allocator or malloc
    try:
        yield
    finally:
        _own.allocator = before


def get_allocator() -> Callable[[int], MemoryPointer]:
    """Where arrays are allocated."""
    return getattr(_own, "allocator", None) or _allocator


def malloc(size: int) -> MemoryPointer:
    """Allocate without a pool."""
    return MemoryPointer(Memory(size), 0)


def malloc_managed(size: int) -> MemoryPointer:
    """Allocate managed memory."""
    return MemoryPointer(ManagedMemory(size), 0)


def alloc_pinned_memory(size: int) -> Any:
    """Allocate page-locked memory of the host."""
    return _pinned_pool.malloc(size)


def get_default_memory_pool() -> MemoryPool:
    """The pool that arrays come from where nothing else is set."""
    return _default_pool


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    """The pool of page-locked memory."""
    return _pinned_pool
