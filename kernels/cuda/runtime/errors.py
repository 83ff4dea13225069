"""Turn errors of CUDA's libraries into those of an engine: the device is short of memory, or it is lost."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from longwall.kernels.interface.engine import EngineLost, ShortOfMemory

# Numbers of cudaError_t and CUresult, which agree here.
_SHORT = frozenset(
    {
        2,  # out of memory: also of a launch, whose threads' local memory is allocated by then
        701,  # a launch had not the resources that it needs
    }
)
# After these the context is of no further use: every call fails, and none of its results can be trusted.
_LOST = frozenset(
    {
        3,  # not initialized
        4,  # the driver is shutting down
        46,  # devices busy or unavailable
        100,  # no device
        101,  # invalid device
        201,  # invalid context
        214,  # uncorrectable ECC error
        219,  # uncorrectable NVLink error
        226,  # an exception that the device's error containment stopped
        700,  # illegal address
        702,  # launch timeout
        709,  # the context is destroyed
        710,  # assertion in a kernel
        714,  # hardware stack error
        715,  # illegal instruction
        716,  # misaligned address
        717,  # invalid address space
        718,  # invalid program counter
        719,  # launch failure
        721,  # a kernel leaked tensor memory
        802,  # the system (NVSwitch, for example) is not ready
        805,  # the connection to MPS failed
        806,  # MPS does not answer
        810,  # MPS ended this client
        999,  # unknown: among others of a device that has fallen off the bus
    }
)


def fault_of(status: int, reason: str) -> ShortOfMemory | EngineLost | None:
    """Return the error of an engine for a status of CUDA, None for errors of another kind.

    Parameters
    ----------
    status
        A ``cudaError_t`` or ``CUresult``.
    reason
        What CUDA calls it.
    """
    if status in _SHORT:
        return ShortOfMemory("device")
    return EngineLost(reason) if status in _LOST else None


class _Refused(threading.local):
    """The error of this thread's last allocation, None if it succeeded."""

    last: ShortOfMemory | None = None


REFUSED = _Refused()


class CudaFaults:
    """A context that takes its thread's arrays from an allocator, and raises CUDA's errors as an engine's.

    Other errors pass. CUDA's libraries that allocate by CuPy turn the allocator's error into a plain MemoryError: the
    context raises the error that the allocator has noted in `REFUSED`. A context inside another one takes 1 us.

    Parameters
    ----------
    xp
        cupy.
    allocate
        A CuPy allocator.

    Raises
    ------
    ShortOfMemory, EngineLost
        See :meth:`longwall.kernels.interface.engine.Engine.faults`.
    """

    __slots__ = ("_allocate", "_chosen", "_cuda")

    def __init__(self, xp: Any, allocate: Callable[[int], Any]):
        self._cuda, self._allocate = xp.cuda, allocate
        self._chosen: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        if self._cuda.get_allocator() != self._allocate:
            REFUSED.last = None
            chosen = self._cuda.using_allocator(self._allocate)
            chosen.__enter__()
            self._chosen = chosen

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if self._chosen is not None:
            self._chosen.__exit__(None, None, None)
        if error is not None:
            self._translate(error)

    def _translate(self, error: BaseException) -> None:
        """Raise an engine's error in place of CUDA's."""
        cuda = self._cuda
        if isinstance(error, ShortOfMemory):
            return
        if isinstance(error, cuda.memory.OutOfMemoryError):  # of another pool than the engine's
            raise ShortOfMemory("device") from error
        if isinstance(error, MemoryError):
            refused, REFUSED.last = REFUSED.last, None  # so that it, with its frames, lives no longer than it is raised
            raise (refused or ShortOfMemory("host")) from error
        if isinstance(error, cuda.runtime.CUDARuntimeError | cuda.driver.CUDADriverError):
            fault = fault_of(int(error.status), str(error))
            if fault is not None:
                raise fault from error
