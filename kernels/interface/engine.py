"""The interface of an engine: one set of kernels and the memory that it works in.

The packages above do not ask which engine they have. Workers of one engine may run in parallel threads, each with
a workspace of its own (`Searcher`, `RangeCounter`, ...); an engine says how many pay off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, Access, GraphArrays

if TYPE_CHECKING:
    from longwall.kernels.interface.kernels import Kernels
    from longwall.kernels.interface.pages import PageFrames

Array = Any  # a NumPy or a CuPy array
Put = Callable[[int, NDArray[Any]], None]
"""Takes a piece of an array that will not change any more: its first item's place, and the items."""
COPY_BUFFER = 4 << 20
"""Bytes of a page-locked buffer for what is on its way to a device; less room for them is of no use."""
WORTH_BUFFERS = 64 << 20
"""Bytes of arrays from which on such buffers pay off: the driver copies less in the time that it takes to lock them."""


class Call(NamedTuple):
    """The name of a function of `Kernels`, and those of its arguments that its sources depend on."""

    name: str
    arguments: Mapping[str, Any]


def call(function: Callable[..., Any], **arguments: Any) -> Call:
    """Return a call of a function of `Kernels`."""
    return Call(function.__name__, arguments)


class EngineUnavailable(Exception):
    """The engine that was asked for does not work on this machine; the message says why."""


class DeviceFull(EngineUnavailable):
    """There is a device, but its memory is taken."""

    def __init__(self) -> None:
        super().__init__(
            "the device's memory is taken: end the processes that use it, or choose another device with "
            "CUDA_VISIBLE_DEVICES"
        )


class WorkspaceTooLarge(Exception):
    """The workspace of one worker exceeds what the engine was given.

    Attributes
    ----------
    needed
        The bytes that it needs.
    advice
        What the user can do, if that is known.
    """

    def __init__(self, needed: int):
        super().__init__(f"a workspace of {needed} bytes is needed")
        self.needed, self.advice = needed, ""


class ShortOfMemory(MemoryError):
    """An allocation failed; a smaller one may work.

    Attributes
    ----------
    place
        What has no memory left: the ``"host"``, the ``"device"``, or what the ``"limit"`` lets the engine have of it.
    wanted
        The bytes that were requested, None where they are not known.
    """

    def __init__(self, place: Literal["host", "device", "limit"], wanted: int | None = None):
        super().__init__(f"no memory left ({place}), {wanted} bytes were wanted")
        self.place, self.wanted = place, wanted


class EngineLost(Exception):
    """The engine's device is gone or its context broken, for good; the message says what was seen."""


@contextmanager
def host_faults() -> Iterator[None]:
    """Raise a `MemoryError` as `ShortOfMemory`."""
    try:
        yield
    except ShortOfMemory:
        raise
    except MemoryError as error:
        raise ShortOfMemory("host") from error


class MemoryPeak(NamedTuple):
    """The most device memory that was in use while an engine was open, in bytes.

    Attributes
    ----------
    allocator
        What the engine's pool held, its cache included.
    driver
        What the driver missed of what was free when the engine was opened, looked at whenever the pool grew: the pool,
        the kernels' code and stacks, and whatever other processes took meanwhile.
    before
        What was in use when the engine was opened: the context, and other processes.
    """

    allocator: int
    driver: int
    before: int


@dataclass(frozen=True)
class Ablation:
    """Optimisations that can be switched off, so that benchmarks can measure what each is worth.

    Attributes
    ----------
    two_pass
        Extensions are done twice, to count and to write, instead of once into blocks of a pool.
    grouped
        Rows that share a prefix are extended together.
    page_order
        What is read of host memory is read in the order of its pages.
    """

    two_pass: bool = False
    grouped: bool = True
    page_order: bool = True


class Device(Protocol):
    """The hardware that kernels run on. Kernels take it as their first argument; each engine's has more that they read.

    Attributes
    ----------
    name
        The hardware, in words.
    ablation
        Optimisations that are switched off.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def ablation(self) -> Ablation: ...  # noqa: D102

    def stream(self) -> AbstractContextManager[Any]:
        """Return a context, for one thread at a time: its kernels run beside those of other contexts."""


class CopiesAhead(list[Put]):
    """Callables that take the pieces of arrays, one callable for each array.

    Parameters
    ----------
    puts
        The callables.
    arrays
        Waits until all pieces that were taken are copied, and returns the engine's arrays.
    """

    def __init__(self, puts: Iterable[Put], arrays: Callable[[], list[Array]]):
        super().__init__(puts)
        self.arrays = arrays


class EngineMemory(Protocol):
    """The memory of an engine's own: a device's, of which all arrays come that are made within `Engine.faults`."""

    def free(self) -> int | None:
        """Return the bytes free for arrays, with what is cached; None where the engine works in host memory."""

    def spare(self) -> int:
        """Return the bytes that no array holds under the limit, nor are cached."""

    def limit(self, size: int) -> None:
        """Let the engine's arrays take at most `size` bytes of the device, all together."""

    def fill(self, there: Array, values: NDArray[Any]) -> None:
        """Copy an array of the host into one of the engine's, of the same shape and type; no memory is locked for it.

        Kernels that were launched before read what was there before.
        """

    def release(self, *, garbage: bool = True) -> None:
        """Return cached memory to the device: a failed allocation may succeed then.

        Parameters
        ----------
        garbage
            Whether Python's garbage is collected first, in which an error may have left arrays: stops all threads for
            50 ms.
        """

    def trim(self) -> None:
        """Return cached memory to the device if it is more than a small call needs."""

    def peak(self) -> MemoryPeak | None:
        """Return the most device memory that was in use so far, None where the engine works in host memory."""


class Paging(Protocol):
    """Access to a graph whose adjacency is not all on the device.

    Attributes
    ----------
    supported
        Whether "adaptive" and "managed" access work here.
    """

    @property
    def supported(self) -> bool: ...  # noqa: D102

    def host_array(self, length: int, dtype: np.dtype[Any], access: Access) -> NDArray[Any]:
        """Make an empty array on the host for an adjacency that `Engine.load` need not copy for such an access."""

    def send_back(self, graph: GraphArrays, ranges: NDArray[np.int64]) -> None:
        """Move parts of an adjacency that is loaded for "managed" access to the host: ranges of arcs, int64[k, 2]."""

    def frames(self, graph: GraphArrays, number: int, page_arcs: int) -> PageFrames:
        """Make room on the device for copies of pages of an adjacency that is loaded for "adaptive" access."""


class Engine(Protocol):
    """One implementation of the kernels.

    Attributes
    ----------
    name
        ``"cpu"`` or ``"cuda"``.
    xp
        The array module: numpy or cupy.
    workers
        Number of worker threads that pay off.
    device
        The hardware; the first argument of every kernel.
    kernels
        The table of its kernels.
    memory
        Its own memory.
    paging
        How it reads an adjacency that is not all on the device.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def xp(self) -> Any: ...  # noqa: D102
    @property
    def workers(self) -> int: ...  # noqa: D102
    @property
    def device(self) -> Device: ...  # noqa: D102
    @property
    def kernels(self) -> Kernels: ...  # noqa: D102
    @property
    def memory(self) -> EngineMemory: ...  # noqa: D102
    @property
    def paging(self) -> Paging: ...  # noqa: D102

    def tasks(self, size: int) -> int:
        """Number of tasks into which work over `size` roots should be cut: enough to balance and to show progress."""

    def copying_ahead(self, arrays: Sequence[NDArray[Any]], capacity: int) -> AbstractContextManager[CopiesAhead]:
        """Copy arrays of a graph to the device while they are filled, so that `load` finds them there.

        What was copied is given up where the device is short of memory, and by the next `load`.

        Parameters
        ----------
        arrays
            On the host, not filled yet.
        capacity
            Bytes of the host for page-locked buffers meanwhile.

        Returns
        -------
        CopiesAhead
            A callable for each array, which takes all its pieces, from any threads.

        Raises
        ------
        ShortOfMemory
            If the device has no room for them.
        """

    def load(
        self,
        graph: GraphArrays,
        access: Access = "resident",
        vertices: Collection[str] = VERTEX_ARRAYS,
        *,
        capacity: int = 0,
    ) -> GraphArrays:
        """Bring a host graph to where the kernels can read it.

        Parameters
        ----------
        graph
            On the host. Mapped arrays are read where they are: they must not change.
        access
            Where the adjacency is to be; an engine that works in host memory reads it where it is.
        vertices
            The arrays with an entry per vertex that are brought to the device; the others are mapped.
        capacity
            Bytes of the host for page-locked buffers meanwhile; without any, copies are slower.

        Raises
        ------
        EngineUnavailable
            If this machine cannot do it.
        """

    def host_copy(self, graph: GraphArrays, access: Access, vertices: Collection[str] = VERTEX_ARRAYS) -> int:
        """Return the bytes of the host that `load` takes for copies of a graph's arrays; parameters as of `load`."""

    def bring(self, array: NDArray[Any], *, mapped: bool) -> Array:
        """Bring an array of the host to where the kernels can read it; `mapped`: read it where it is."""

    def faults(self) -> AbstractContextManager[None]:
        """A thread's work with the engine: a context in which its arrays come from the engine's memory.

        It also raises what the engine's libraries raise as the exceptions below; everything else passes. Each thread
        needs one of its own; they may be nested.

        Raises
        ------
        ShortOfMemory
            If an allocation fails.
        EngineLost
            If the device or its context is of no further use.
        """

    def watch_compilation(self, report: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `report` once if a kernel has to be compiled while the context is open."""

    def compilations(self, calls: Iterable[Call]) -> list[Callable[[], object]]:
        """Return functions that threads may call, each to compile one source that is not loaded yet.

        Parameters
        ----------
        calls
            The calls that will need the sources. A source is left out if it depends on an argument that its call lacks.
        """

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can; the engine is of no further use."""
