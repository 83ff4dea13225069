"""Compile kernels with Numba: once per machine, later runs load them from its cache on disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core import event

from longwall.kernels.kernel_cache import cached

_OPTIONS: Any = {"nogil": True, "_nrt": False}  # the second is not in Numba's type hints


def compiled(function: Callable[..., Any]) -> Any:
    """Compile without the GIL, keep the machine code on disk, and do not count references.

    With reference counting every call counts its array arguments up and down, atomically; that took three quarters of
    the time of a search. Without it kernels cannot allocate: their workspace is handed to them.

    Parameters
    ----------
    function
        In the part of Python that Numba compiles.
    """
    return cached(njit(function, **_OPTIONS))


class _Listener(event.Listener):
    def __init__(self, report: Callable[[], None]):
        self._report: Callable[[], None] | None = report

    def on_start(self, event: object) -> None:  # noqa: ARG002 - Numba's interface
        report, self._report = self._report, None
        if report is not None:
            report()

    def on_end(self, event: object) -> None:
        pass


@contextmanager
def watch_compilation(report: Callable[[], None]) -> Iterator[None]:
    """Call `report` once if a kernel has to be compiled while the context is open."""
    with event.install_listener("numba:compile", _Listener(report)):
        yield
