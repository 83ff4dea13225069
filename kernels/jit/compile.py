"""Compile kernels with Numba: once per machine, on the first call; later runs load their machine code without Numba."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, update_wrapper
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload
from warnings import warn

from longwall.kernels.jit.argument_types import accepts, kind_of, text_of_kinds, types_of_text
from longwall.kernels.jit.callee import callee_type
from longwall.kernels.jit.compile_clock import COMPILING
from longwall.kernels.jit.kernel_cache import cached, load_machine_code, machine_code_path

_OPTIONS: Any = {"nogil": True, "_nrt": False}  # the second is not in Numba's type hints
KERNELS: list[Kernel] = []
"""The kernels of all modules that have been imported, if they declare the types of their arguments."""


class Compiler(Protocol):
    """Compiles kernels in other processes; see :class:`longwall.kernels.jit.compile_pool.CompilePool`."""

    def compile(self, kernel: Kernel, signature: str) -> None:
        """Return when the machine code is on disk, or when that is for the caller to do."""
        ...


ELSEWHERE: list[Compiler] = []
"""Whom to ask first."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_reports: list[Callable[[], None]] = []
_loading = RLock()
"""Held while a kernel is loaded or compiled, and always taken before Numba's own lock. With a lock for each kernel two
threads could take a lock and Numba's in opposite orders, and wait for each other."""


class Kernel:
    """A function that is compiled for the types of arguments that it declares.

    A call from Python takes the machine code from disk if it is there, or compiles it. Kernels that call the function
    take it in as code that is not compiled yet: see :mod:`longwall.kernels.jit.callee`.

    Parameters
    ----------
    function
        In the part of Python that Numba compiles.
    signatures
        The types of all arguments, for each kind of calls, the usual one first; see
        :mod:`longwall.kernels.jit.argument_types`. A function that only kernels call needs none: it is compiled for
        whatever it is called with.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[str] = ()):
        update_wrapper(self, function)
        self.name, self.signatures = function.__name__, tuple(signatures)
        self._function = function
        self._found: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._dispatcher: Any = None
        self._callee: Any = None
        if signatures:
            KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, which is loaded or compiled first."""
        kinds = tuple(map(kind_of, arguments))
        found = self._found.get(kinds)
        return (found or self._find(kinds))(*arguments)

    def is_missing(self, signature: str) -> bool:
        """Return whether the machine code for a signature is to be on disk, and is not."""
        path = machine_code_path(self._function, signature)
        return path is not None and not os.path.exists(path)  # noqa: PTH110 - never raises

    def load(self, signature: str) -> Callable[..., Any]:
        """Return the function for a signature, loaded, or compiled in this process."""
        with _loading:
            loaded = load_machine_code(self._function, signature)
            found: Callable[..., Any] = loaded or self.dispatcher.compile(
                types_of_text(signature, self._function.__globals__)
            )
            return found

    def _find(self, kinds: tuple[Any, ...]) -> Callable[..., Any]:
        given = text_of_kinds(kinds)
        suiting = (one for one in self.signatures if given is not None and accepts(one, given))
        if (signature := next(suiting, None)) is not None:
            for compiler in ELSEWHERE:
                compiler.compile(self, signature)
        with _loading:
            if kinds not in self._found:
                self._found[kinds] = self._undeclared(given) if signature is None else self.load(signature)
            return self._found[kinds]

    def _undeclared(self, given: str | None) -> Callable[..., Any]:
        if self.signatures and given is not None:  # it works, but nothing can compile it beforehand
            warn(f"{self.name} is called with types that it does not declare: {given}", ResourceWarning, stacklevel=4)
        loaded = None if given is None else load_machine_code(self._function, given)
        return loaded or self.dispatcher

    @property
    def dispatcher(self) -> Any:
        """What ``numba.njit`` makes of the function."""
        if self._dispatcher is None:
            self._dispatcher = cached(_njit()(self._function, no_cfunc_wrapper=True, **_OPTIONS))
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """The type that Numba reads to compile a caller. Numba holds its lock meanwhile, so `_loading` is not taken."""
        if self._callee is None:
            self._callee = callee_type(_njit(), self._function, _OPTIONS)
        return self._callee


@overload
def compiled(function: Callable[Arguments, Result], /) -> Callable[Arguments, Result]: ...
@overload
def compiled(*signatures: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]: ...
def compiled(*given: Any) -> Any:
    """Compile without the GIL, keep the machine code on disk, and do not count references.

    With reference counting every call counts its array arguments up and down, atomically; that took three quarters of
    the time of a search. Without it kernels cannot allocate: their workspace is handed to them.

    Parameters
    ----------
    given
        The signatures of a kernel that is called from Python, see `Kernel`; without any, the function itself.
    """
    if isinstance(given[0], str):
        return lambda function: Kernel(function, given)
    return Kernel(given[0])


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
