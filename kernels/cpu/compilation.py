"""Say when Numba compiles: that happens once per machine, later runs load the kernels from its cache on disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event


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
