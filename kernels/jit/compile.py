"""Compile kernels with Numba: once per machine, on the first call; later runs load their machine code without Numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, update_wrapper
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from longwall.kernels.jit.callee import callee_type
from longwall.kernels.jit.compile_clock import COMPILING
from longwall.kernels.jit.kernel_cache import cached, load_machine_code
from longwall.kernels.jit.machine_code import array_text, tuple_text

_OPTIONS: Any = {"nogil": True, "_nrt": False}  # the second is not in Numba's type hints
_CONTIGUOUS, _FORTRAN, _WRITEABLE = 0x1, 0x2, 0x400  # of `numpy.ndarray.flags.num`
_LAYOUT = _CONTIGUOUS | _FORTRAN | _WRITEABLE
_SCALARS: dict[Any, str] = {int: "int64", float: "float64", bool: "bool", type(None): "none"} | {
    np.dtype(name).type: np.dtype(name).name for name in "bhilqBHILQfd?"
}
_reports: list[Callable[[], None]] = []


class Kernel:
    """A function that is compiled for each kind of arguments that it is called with.

    A call from Python takes the machine code from disk if it is there, or from Numba's dispatcher. Kernels that call
    the function take it in as code that is not compiled yet: see :mod:`longwall.kernels.jit.callee`.

    Parameters
    ----------
    function
        In the part of Python that Numba compiles.
    """

    def __init__(self, function: Callable[..., Any]):
        update_wrapper(self, function)
        self._function = function
        self._found: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._dispatcher: Any = None
        self._callee: Any = None
        self._lock = RLock()

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, which is loaded or compiled first."""
        kinds = tuple(map(_kind, arguments))
        found = self._found.get(kinds)
        return (found or self._find(kinds))(*arguments)

    def _find(self, kinds: tuple[Any, ...]) -> Callable[..., Any]:
        with self._lock:
            if kinds not in self._found:
                described = _describe(kinds)
                loaded = None if described is None else load_machine_code(self._function, described)
                self._found[kinds] = loaded or self.dispatcher
            return self._found[kinds]

    @property
    def dispatcher(self) -> Any:
        """What ``numba.njit`` makes of the function."""
        with self._lock:
            if self._dispatcher is None:
                self._dispatcher = cached(_njit()(self._function, no_cfunc_wrapper=True, **_OPTIONS))
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """For Numba, which compiles kernels that call this one."""
        with self._lock:
            if self._callee is None:
                self._callee = callee_type(_njit(), self._function, _OPTIONS)
            return self._callee


def compiled(function: Callable[..., Any]) -> Any:
    """Compile without the GIL, keep the machine code on disk, and do not count references.

    With reference counting every call counts its array arguments up and down, atomically; that took three quarters of
    the time of a search. Without it kernels cannot allocate: their workspace is handed to them.

    Parameters
    ----------
    function
        In the part of Python that Numba compiles.
    """
    return Kernel(function)


class Intrinsic:
    """An instruction that kernels may use, made when the first of them is compiled; see ``numba.extending.intrinsic``.

    Parameters
    ----------
    define
        From a typing context and the types of the arguments to a signature and a generator of code.
    """

    def __init__(self, define: Callable[..., Any]):
        self.__doc__ = define.__doc__
        self._define = define
        self._type: Any = None

    if TYPE_CHECKING:

        def __call__(self, *arguments: Any) -> Any: ...  # noqa: D102 - kernels only call it

    @property
    def _numba_type_(self) -> Any:
        if self._type is None:
            from numba.core.registry import cpu_target
            from numba.extending import intrinsic

            made, context = intrinsic(self._define), cpu_target.typing_context
            context.refresh()
            self._type = context.resolve_value_type(made)
        return self._type


def _kind(value: Any) -> Any:
    """Return what the choice of the machine code depends on, as something that can be a key."""
    kind = type(value)
    if kind is np.ndarray or kind is np.memmap:
        return value.dtype, value.ndim, value.flags.num & _LAYOUT
    if kind is int and not -(2**63) <= value < 2**63:
        return None
    return (kind, tuple(map(_kind, value))) if isinstance(value, tuple) else kind


def _describe(kinds: Sequence[Any]) -> str | None:
    """Return kinds of arguments as a text, as `machine_code.describe_types` does; None where there is none."""
    found = list(map(_text, kinds))
    return None if None in found else ", ".join(map(str, found))


def _text(kind: Any) -> str | None:
    if not isinstance(kind, tuple):
        return _SCALARS.get(kind)
    if isinstance(kind[0], np.dtype):
        return _array(*kind)
    inner = list(map(_text, kind[1]))
    return None if None in inner else tuple_text(kind[0], list(map(str, inner)))


def _array(dtype: np.dtype[Any], dimensions: int, flags: int) -> str | None:
    if not dtype.isnative or dtype.type not in _SCALARS:
        return None
    layout = "C" if flags & _CONTIGUOUS else "F" if flags & _FORTRAN else "A"
    return array_text(dtype.name, dimensions, layout, mutable=bool(flags & _WRITEABLE))


@cache
def _njit() -> Any:
    """Return ``numba.njit``, which is imported by those who compile only."""
    from numba import njit

    _listen()
    _leave_streams_alone()
    return njit


@cache
def _listen() -> None:
    """Notice it from now on when Numba compiles."""
    event: Any = import_module("numba.core.event")

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:  # noqa: ARG002 - Numba's interface
            for report in list(_reports):
                report()
            COMPILING.begin()

        def on_end(self, event: object) -> None:  # noqa: ARG002
            COMPILING.end()

    event.register("numba:compile", Listener())


@cache
def _leave_streams_alone() -> None:
    """Keep Numba from colouring its messages.

    It makes some, and drops them, whenever it compiles. Colorama would then replace the standard streams of the process
    for a moment, whatever other threads write, and write an escape sequence to a terminal as the process ends.
    """
    errors: Any = import_module("numba.core.errors")
    colours = errors.termcolor()  # which all modules of Numba share
    if hasattr(colours, "_markup"):
        colours._markup = lambda message, *_: message


@contextmanager
def watch_compilation(report: Callable[[], None]) -> Iterator[None]:
    """Call `report` once if a kernel has to be compiled while the context is open."""
    once = cache(report)
    _reports.append(once)
    try:
        yield
    finally:
        _reports.remove(once)
