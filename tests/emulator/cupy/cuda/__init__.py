"""Devices, streams, events and memory, as `cupy.cuda`."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from cupy._device import emulated
from cupy._memory import (
    BaseMemory,
    ManagedMemory,
    Memory,
    MemoryPointer,
    MemoryPool,
    PinnedMemory,
    PinnedMemoryPointer,
    PinnedMemoryPool,
    UnownedMemory,
    alloc_pinned_memory,
    get_allocator,
    malloc_managed,
    set_allocator,
    using_allocator,
)
from cupy.cuda import driver, memory, runtime

__all__ = [
    "BaseMemory",
    "Device",
    "Event",
    "ManagedMemory",
    "Memory",
    "MemoryPointer",
    "MemoryPool",
    "PinnedMemory",
    "PinnedMemoryPointer",
    "PinnedMemoryPool",
    "Stream",
    "UnownedMemory",
    "alloc_pinned_memory",
    "driver",
    "get_allocator",
    "get_current_stream",
    "get_elapsed_time",
    "malloc_managed",
    "memory",
    "runtime",
    "set_allocator",
    "using_allocator",
]


class Device:
    """A device; there is one."""

    def __init__(self, device: Any = None):
        self.id = int(device or 0)
        if self.id:
            raise runtime.CUDARuntimeError(runtime.errorInvalidDevice)

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *reason: object) -> None:
        pass

    def use(self) -> None:
        """Make it the current one."""

    def synchronize(self) -> None:
        """Wait for its work."""
        emulated.require()
        for stream in list(_streams):
            stream.catch_up()

    @property
    def compute_capability(self) -> str:
        """Of an H200."""
        return "90"

    @property
    def mem_info(self) -> tuple[int, int]:
        """Bytes of memory: free, and in all."""
        return runtime.memGetInfo()

    @property
    def attributes(self) -> dict[str, int]:
        """What the driver says of it."""
        properties = runtime.getDeviceProperties(0)
        return {
            "MultiProcessorCount": properties["multiProcessorCount"],
            "MaxSharedMemoryPerBlockOptin": properties["sharedMemPerBlockOptin"],
            "MaxSharedMemoryPerMultiprocessor": properties["sharedMemPerMultiprocessor"],
            "ConcurrentManagedAccess": 1,
            "ManagedMemory": 1,
            "PageableMemoryAccess": 0,
            "CanUseHostPointerForRegisteredMem": 1,
            "HostRegisterSupported": 1,
            "WarpSize": 32,
        }


class Event:
    """A moment; all work before it is done."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False):
        self.ptr = id(self)
        self._at: float | None = None
        self._stream, self._number = Stream.null, 0

    def record(self, stream: Any = None) -> None:
        """Note the moment."""
        emulated.require()
        self._at = time.perf_counter()
        self._stream = stream or get_current_stream()
        self._number = self._stream.given

    def synchronize(self) -> None:
        """Wait for it."""
        emulated.require()
        self.catch_up()

    def catch_up(self) -> None:
        """Run what its stream was given before."""
        self._stream.catch_up(self._number)

    @property
    def done(self) -> bool:
        """Whether it is past."""
        return True


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events that were recorded."""
    if start_event._at is None or end_event._at is None:
        raise runtime.CUDARuntimeError(runtime.errorInvalidResourceHandle)
    return (end_event._at - start_event._at) * 1e3


class Stream:
    """A stream; what it is given is done at once, or as late as is allowed (`emulated.late`).

    Attributes
    ----------
    given
        Number of things that it was given to do.
    """

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None):
        self.ptr = 0 if null else id(self)
        self.given = 0
        self._waiting: deque[Callable[[], None]] = deque()
        _streams.add(self)

    def give(self, work: Callable[[], None]) -> None:
        """Do some work, or keep it for later."""
        self.given += 1
        if emulated.late and self.ptr:
            self._waiting.append(work)
        else:
            work()

    def catch_up(self, number: int | None = None) -> None:
        """Do what is waiting; with `number`, only what was among the first so many."""
        while self._waiting and (number is None or self.given - len(self._waiting) < number):
            self._waiting.popleft()()

    def __enter__(self) -> Stream:
        _own.streams.append(self)
        return self

    def __exit__(self, *reason: object) -> None:
        _own.streams.pop()

    def use(self) -> Stream:
        """Make it the current one."""
        _own.streams[-1] = self
        return self

    @property
    def done(self) -> bool:
        """Whether all its work is done."""
        return not self._waiting

    def synchronize(self) -> None:
        """Wait for its work."""
        emulated.require()
        self.catch_up()

    def record(self, event: Event | None = None) -> Event:
        """Record an event."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        emulated.require()
        self.give(event.catch_up)


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
Stream.null = Stream(null=True)


class _Own(threading.local):
    """The streams that a thread has entered."""

    def __init__(self) -> None:
        self.streams = [Stream.null]


_own = _Own()


def get_current_stream(device_id: int = -1) -> Stream:
    """The stream that work goes to."""
    return _own.streams[-1]
