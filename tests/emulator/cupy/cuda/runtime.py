"""As `cupy.cuda.runtime`: the calls of the CUDA runtime that the project uses or might."""
# ruff: noqa: N802, N803, N816

import ctypes
from typing import Any

from cupy._device import emulated, visible
from cupy._device import runtime as _runtime
from cupy._memory import ManagedMemory as _ManagedMemory
from cupy._memory import Memory as _Memory
from cupy._memory import OutOfMemoryError as _OutOfMemoryError
from cupy._memory import PinnedMemory as _PinnedMemory

memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = range(5)
hostAllocDefault, hostAllocPortable, hostAllocMapped, hostAllocWriteCombined = 0, 1, 2, 4
hostRegisterDefault, hostRegisterPortable, hostRegisterMapped = 0, 1, 2
hostRegisterIoMemory, hostRegisterReadOnly = 4, 8
memAttachGlobal, memAttachHost, memAttachSingle = 1, 2, 4
cudaMemAdviseSetReadMostly, cudaMemAdviseUnsetReadMostly = 1, 2
cudaMemAdviseSetPreferredLocation, cudaMemAdviseUnsetPreferredLocation = 3, 4
cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy = 5, 6
memoryTypeUnregistered, memoryTypeHost, memoryTypeDevice, memoryTypeManaged = range(4)
cudaDevAttrConcurrentManagedAccess, cudaDevAttrCanUseHostPointerForRegisteredMem = 89, 91
errorInvalidValue, errorMemoryAllocation = 1, 2
errorInvalidDevice, errorInvalidResourceHandle, errorIllegalAddress, errorUnknown = 101, 400, 700, 999
errorHostMemoryAlreadyRegistered, errorHostMemoryNotRegistered = 712, 713

_ERRORS = {
    1: "cudaErrorInvalidValue: invalid argument",
    2: "cudaErrorMemoryAllocation: out of memory",
    101: "cudaErrorInvalidDevice: invalid device ordinal",
    400: "cudaErrorInvalidResourceHandle: invalid resource handle",
    700: "cudaErrorIllegalAddress: an illegal memory access was encountered",
    712: "cudaErrorHostMemoryAlreadyRegistered: part or all of the requested memory range is already mapped",
    713: "cudaErrorHostMemoryNotRegistered: pointer does not correspond to a registered memory region",
    999: "cudaErrorUnknown: unknown error",
}


class CUDARuntimeError(RuntimeError):
    """The runtime refuses; `status` is its number."""

    def __init__(self, status: int):
        super().__init__(_ERRORS.get(status, f"error {status}"))
        self.status = status


_held: dict[int, Any] = {}  # memory that was allocated here, by address
_registered: dict[int, int] = {}


def getDeviceCount() -> int:
    """How many this process may see: a process uses the first of them."""
    return len(visible)


def getDevice() -> int:
    """The first."""
    return 0


def setDevice(device: int) -> None:
    """Choose the only one."""
    if device:
        raise CUDARuntimeError(errorInvalidDevice)


def driverGetVersion() -> int:
    """Of CUDA 13."""
    return 13000


def runtimeGetVersion() -> int:
    """Of CUDA 13."""
    return 13000


def getDeviceProperties(device: int) -> dict[str, Any]:
    """Describe the device."""
    setDevice(device)
    return {
        "name": b"emulated",
        "uuid": visible[0].to_bytes(16, "big"),
        "multiProcessorCount": emulated.multiprocessors,
        "sharedMemPerBlock": 48 << 10,
        "sharedMemPerBlockOptin": emulated.shared_memory,
        "sharedMemPerMultiprocessor": emulated.shared_memory + 1024,
        "totalGlobalMem": emulated.memory,
        "warpSize": 32,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiProcessor": 2048,
        "regsPerMultiprocessor": 65536,
        "regsPerBlock": 65536,
        "l2CacheSize": 50 << 20,
        "major": 9,
        "minor": 0,
        "concurrentManagedAccess": 1,
        "managedMemory": 1,
        "pageableMemoryAccess": 0,
        "canMapHostMemory": 1,
        "unifiedAddressing": 1,
        "asyncEngineCount": 3,
    }


def deviceGetAttribute(attribute: int, device: int) -> int:
    """Describe the device: managed memory and registered pointers work."""
    if attribute not in (cudaDevAttrConcurrentManagedAccess, cudaDevAttrCanUseHostPointerForRegisteredMem):
        raise NotImplementedError(f"attribute {attribute}")
    return 1


def memGetInfo() -> tuple[int, int]:
    """Bytes of device memory: free, and in all."""
    emulated.require()
    return emulated.free, emulated.memory


def deviceSynchronize() -> None:
    """Wait for all work."""
    from cupy.cuda import Device

    Device().synchronize()


def streamQuery(stream: int) -> int:
    """Return 0 if a stream's work is done, else 600; each call does one piece of the work that waits."""
    from cupy.cuda import _streams

    emulated.require()
    waiting = [one for one in list(_streams) if one.ptr == stream and not one.done]
    for one in waiting:
        one.catch_up(one.given - len(one._waiting) + 1)
    return 600 if waiting else 0


def check_status(status: int) -> None:
    """Raise the error of a status."""
    if status:
        raise CUDARuntimeError(status)


def streamSynchronize(stream: int) -> None:
    """Wait for a stream."""
    emulated.require()


def malloc(size: int) -> int:
    """Allocate device memory."""
    return _hold(_Memory, size)


def mallocManaged(size: int, flags: int = memAttachGlobal) -> int:
    """Allocate managed memory."""
    return _hold(_ManagedMemory, size)


def hostAlloc(size: int, flags: int) -> int:
    """Allocate page-locked memory."""
    return _hold(_PinnedMemory, size)


def _hold(kind: Any, size: int) -> int:
    try:
        memory = kind(size)
    except _OutOfMemoryError:
        raise CUDARuntimeError(errorMemoryAllocation) from None
    if memory.ptr:
        _held[memory.ptr] = memory
    return int(memory.ptr)


def free(ptr: int) -> None:
    """Free memory that `malloc` or `mallocManaged` gave."""
    if ptr and _held.pop(ptr, None) is None:
        raise CUDARuntimeError(errorInvalidValue)


def freeHost(ptr: int) -> None:
    """Free memory that `hostAlloc` gave."""
    free(ptr)


def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    """Copy."""
    emulated.require()
    ctypes.memmove(dst, src, size)


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """Copy."""
    memcpy(dst, src, size, kind)


def memset(ptr: int, value: int, size: int) -> None:
    """Fill with a byte."""
    emulated.require()
    ctypes.memset(ptr, value, size)


def memsetAsync(ptr: int, value: int, size: int, stream: int) -> None:
    """Fill with a byte."""
    memset(ptr, value, size)


def hostRegister(ptr: int, size: int, flags: int) -> None:
    """Page-lock memory of the host, so that kernels can reach it at the same address."""
    emulated.require()
    if not size:
        raise CUDARuntimeError(errorInvalidValue)
    if any(ptr < start + length and start < ptr + size for start, length in _registered.items()):
        raise CUDARuntimeError(errorHostMemoryAlreadyRegistered)
    _registered[ptr] = size
    _runtime().emulator_add_host(ptr, size)


def hostUnregister(ptr: int) -> None:
    """Undo `hostRegister`."""
    if _registered.pop(ptr, None) is None:
        raise CUDARuntimeError(errorHostMemoryNotRegistered)
    _runtime().emulator_remove_host(ptr)
    emulated.require()


def memAdvise(devPtr: int, count: int, advice: int, device: int) -> None:
    """Note the advice."""
    emulated.require()
    emulated.calls.append(("memAdvise", devPtr, count, advice, device))


def memPrefetchAsync(devPtr: int, count: int, dstDevice: int, stream: int) -> None:
    """Note the wish."""
    emulated.require()
    emulated.calls.append(("memPrefetchAsync", devPtr, count, dstDevice, stream))
