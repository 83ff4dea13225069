"""Turn errors of CUDA's libraries into those of an engine: the device is short of memory, or it is lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def cuda_faults(xp: Any, allocate: Callable[[int], Any]) -> Iterator[None]:
    """Take this thread's arrays from `allocate`, and raise CUDA's errors as an engine's; others pass.

    CUDA's libraries that allocate by CuPy turn what `allocate` raises into a plain MemoryError: it is raised after all.

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
    cuda = xp.cuda
    refused: list[ShortOfMemory] = []

    def noting(size: int) -> Any:
        refused.clear()
        try:
            return allocate(size)
        except ShortOfMemory as error:
            refused.append(ShortOfMemory(error.place, error.wanted))  # without its frames, which hold arrays
            raise

    try:
        with cuda.using_allocator(noting):
            yield
    except ShortOfMemory:
        raise
    except cuda.memory.OutOfMemoryError as error:  # of another pool than the engine's
        raise ShortOfMemory("device") from error
    except MemoryError as error:
        raise (refused[0] if refused else ShortOfMemory("host")) from error
    except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
        fault = fault_of(int(error.status), str(error))
        if fault is None:
            raise
        raise fault from error
