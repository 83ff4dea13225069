"""What every counter of the CUDA engine shares: the device, launches, and results that come back."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.runtime.compile import kernel
from longwall.kernels.cuda.runtime.constants import THREADS as THREADS
from longwall.kernels.cuda.runtime.constants import WARP as WARP
from longwall.kernels.cuda.runtime.errors import CudaFaults
from longwall.kernels.cuda.runtime.memory import DeviceMemory
from longwall.kernels.exact_numbers import exact_number, two_words
from longwall.kernels.interface.engine import Ablation, WorkspaceTooLarge

Array = Any  # a CuPy array

_BLOCKS = 8  # per multiprocessor: as many such threads as it holds
_SHARED_WITHOUT_ASKING = 48 << 10
_PAGE_BYTES = 16 << 10
_NOT_READY = 600  # cudaErrorNotReady
# A wait begins with polls without a pause, since even `sleep(0)` takes 54 us; later pauses are a share of it.
_BUSY_SECONDS, _PAUSE_SHARE = 2e-3, 1 / 64


class Device:
    """A CUDA device and the flag that makes its running kernels return.

    Attributes
    ----------
    xp
        cupy.
    number
        The device's ordinal.
    name
        The device's name.
    multiprocessors
        Number of multiprocessors.
    shared_memory
        Bytes of shared memory that one block may have.
    memory
        Where arrays come from; see :func:`longwall.kernels.cuda.runtime.errors.CudaFaults`.
    ablation
        Optimisations that are switched off.
    """

    def __init__(self, xp: Any, ablation: Ablation):
        self.xp, self.ablation = xp, ablation
        self.number = int(xp.cuda.Device().id)
        properties = xp.cuda.runtime.getDeviceProperties(self.number)
        self.name = properties["name"].decode()
        self.multiprocessors = int(properties["multiProcessorCount"])
        self.shared_memory = int(properties["sharedMemPerBlockOptin"])
        self.memory = DeviceMemory(xp)
        with xp.cuda.using_allocator(self.memory.allocate):
            self.stop_flag = xp.zeros(1, xp.uint32)
        self.memory.prepare_small()  # after the flag, which as a part of the block would keep all of it for good
        # The flag is written while kernels run: by the copy engine, from page-locked memory, on a stream of its own.
        self._stop_stream = xp.cuda.Stream(non_blocking=True)
        self._one = xp.cuda.alloc_pinned_memory(4)
        np.frombuffer(self._one, np.uint32, 1)[0] = 1
        xp.cuda.runtime.deviceSynchronize()

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can."""
        runtime = self.xp.cuda.runtime
        with self.xp.cuda.Device(self.number):
            runtime.memcpyAsync(
                self.stop_flag.data.ptr, self._one.ptr, 4, runtime.memcpyHostToDevice, self._stop_stream.ptr
            )

    def synchronize(self) -> None:
        """Wait for the kernels of the current stream; see `_wait_for`."""
        _wait_for(self.xp.cuda.runtime, self.xp.cuda.get_current_stream())

    def stream(self) -> AbstractContextManager[Any]:
        """Return a CUDA stream; it and the default stream wait for each other's kernels."""
        made: AbstractContextManager[Any] = self.xp.cuda.Stream()
        return made

    @cached_property
    def copies(self) -> Any:
        """A stream for copies beside kernels: one for all, since what the pool has cached for a stream is its alone."""
        # Copies begin before the blocks of kernels that wait: they take few places, and the link is what is scarce.
        return self.xp.cuda.Stream(non_blocking=True, priority=-1)

    def faults(self) -> AbstractContextManager[None]:
        """Take this thread's arrays from `memory`, and raise CUDA's errors as an engine's."""
        return CudaFaults(self.xp, self.memory.allocate)

    def launch(
        self,
        source: str,
        function: str,
        arguments: tuple[Any, ...],
        *,
        blocks: int,
        threads: int,
        shared: int = 0,
        generated: str = "",
    ) -> None:
        """Launch a kernel.

        Parameters
        ----------
        source, function, generated
            See :func:`longwall.kernels.cuda.runtime.compile.kernel`.
        arguments
            Arrays; integers are passed as 64 bits.
        blocks, threads
            Size of the grid and of a block.
        shared
            Bytes of dynamic shared memory.
        """
        compiled = kernel(source, function, generated, self.number)
        if shared > _allowed.get(compiled, _SHARED_WITHOUT_ASKING):
            _allow(compiled, shared)
        compiled((blocks,), (threads,), arguments, shared_mem=shared)

    def launch_over(
        self,
        source: str,
        function: str,
        items: int,
        arguments: tuple[Any, ...],
        *,
        shared: int = 0,
        generated: str = "",
    ) -> None:
        """Launch a kernel with a thread for every item, each of which does more than one where there are very many."""
        blocks = min(max(-(-items // THREADS), 1), self.multiprocessors * _BLOCKS)
        self.launch(source, function, arguments, blocks=blocks, threads=THREADS, shared=shared, generated=generated)

    def result(self, number: int = 2) -> Array:
        """Return zeros, uint64[number], to which kernels add: by default a count and its floating-point twin."""
        return self.xp.ndarray((number,), np.uint64, self.memory.zero_words(number))

    def counters(self, number: int = 1) -> Any:
        """Return a pointer to zeroed 64-bit words for one launch, which takes 8 us less than an array."""
        return self.memory.zero_words(number)


_allowed: dict[Any, int] = {}  # dynamic shared memory, in bytes, of the kernels, which all engines share
_allowing = threading.RLock()  # a signal handler may run a count while its thread holds the lock


def _allow(compiled: Any, shared: int) -> None:
    """Let a kernel have more shared memory, and never less: another engine may launch it with more."""
    with _allowing:
        if shared > _allowed.get(compiled, _SHARED_WITHOUT_ASKING):
            compiled.max_dynamic_shared_size_bytes = _allowed[compiled] = shared
            compiled.preferred_shared_memory_carveout = 100  # percent: so that several such blocks fit


def exact(result: Array) -> int:
    """Fetch a count that kernels took modulo 2^64, checked by its floating-point twin.

    Raises
    ------
    OverflowError
        If the count does not fit 64-bit integers.
    """
    return checked(fetch(result))


def checked(host: NDArray[np.uint64]) -> int:
    """Return a fetched count; see `exact`."""
    count, estimate = _word(host)
    if estimate >= 2.0**62:
        raise OverflowError(f"a count of about {estimate:.3g} does not fit 64-bit integers")
    return count


def any_size(host: NDArray[np.uint64], residue: Callable[[int], NDArray[np.uint64]]) -> int:
    """Return a fetched count, of any size; `residue` counts again modulo a prime, and returns the fetched residue."""
    return exact_number(*_word(host), lambda prime: _word(residue(prime))[0])


def _word(host: NDArray[np.uint64]) -> tuple[int, float]:
    """Return a fetched count modulo 2**64, and its floating-point twin."""
    estimate = float(host.view(np.float64)[1])
    if np.isnan(estimate):
        raise RuntimeError("internal fault: a set outgrew its workspace")
    return int(host.view(np.int64)[0]), estimate


def _wait_for(runtime: Any, stream: Any) -> None:
    """Wait for a stream, or for all of the device if that is the default stream.

    Python handles no signal while the main thread is in a call of the driver. So this thread polls the stream: handlers
    run between two polls, and end the kernels.
    """
    if threading.get_ident() == threading.main_thread().ident:
        began, pointer, polled = time.perf_counter(), stream.ptr, False
        try:
            while runtime.streamQuery(pointer) == _NOT_READY:
                polled = True
                if (waited := time.perf_counter() - began) > _BUSY_SECONDS:
                    time.sleep(waited * _PAUSE_SHARE)
        finally:
            if polled:  # the runtime keeps this status, and a library may take it for an error of its next call
                with suppress(runtime.CUDARuntimeError):
                    runtime.check_status(_NOT_READY)
    if stream.ptr:
        stream.synchronize()
    else:
        runtime.deviceSynchronize()


def fetch(result: Array) -> NDArray[Any]:
    """Wait for the kernels and fetch a few words, such as those that `exact` checks."""
    import cupy

    # A copy to pageable memory takes 20 us more, and holds the driver's lock until the kernels have ended, so that
    # `interrupt` would wait.
    runtime, stream, size = cupy.cuda.runtime, cupy.cuda.get_current_stream(), result.nbytes
    if size > _PAGE_BYTES:
        _wait_for(runtime, stream)
        host: NDArray[Any] = result.get()
        return host
    page, words = _pages.get("fetched")
    runtime.memcpyAsync(page.ptr, result.data.ptr, size, runtime.memcpyDeviceToHost, stream.ptr)
    _wait_for(runtime, stream)
    fetched: NDArray[Any] = words[:size].view(result.dtype).copy()
    return fetched


def send(values: NDArray[Any], address: int) -> None:
    """Copy an array to an address of the device, after the kernels that were launched before."""
    import cupy

    runtime, stream, size = cupy.cuda.runtime, cupy.cuda.get_current_stream(), values.nbytes
    if size > _PAGE_BYTES:
        runtime.memcpyAsync(address, values.ctypes.data, size, runtime.memcpyHostToDevice, stream.ptr)
        return
    (page, words), copied = _pages.get("sent"), _pages.copied
    if copied is not None:
        copied.synchronize()
    words[:size].view(values.dtype)[:] = values
    runtime.memcpyAsync(address, page.ptr, size, runtime.memcpyHostToDevice, stream.ptr)
    _pages.copied = stream.record()


class _PinnedPages(threading.local):
    """Page-locked memory of a thread for small copies; copies of other memory take the driver 20 to 70 us.

    Attributes
    ----------
    copied
        The event that ends the last copy to the device; its page may be used again then.
    """

    copied: Any = None

    def __init__(self) -> None:
        self._pages: dict[str, tuple[Any, NDArray[np.uint8]]] = {}

    def get(self, name: str) -> tuple[Any, NDArray[np.uint8]]:
        """Return a page, and an array of its bytes."""
        if name not in self._pages:
            import cupy

            page = cupy.cuda.alloc_pinned_memory(_PAGE_BYTES)
            self._pages[name] = page, np.frombuffer(page, np.uint8, _PAGE_BYTES)
        return self._pages[name]


_pages = _PinnedPages()


def fetch_sum(words: Array) -> int:
    """Fetch a count that kernels added up as a ``WideSum``, modulo 2**128: uint64[2]."""
    low, high = fetch(words).tolist()
    return two_words(low, high)


def units_that_fit(wanted: int, bytes_each: int, memory: int) -> int:
    """Return how many warps or blocks, at most `wanted`, can have their workspace in `memory` bytes.

    Raises
    ------
    WorkspaceTooLarge
        If not even one can.
    """
    if bytes_each > memory:
        raise WorkspaceTooLarge(bytes_each)
    return wanted if not bytes_each else min(wanted, memory // bytes_each)
