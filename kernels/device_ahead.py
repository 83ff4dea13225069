"""Compile sources for a device in a thread beside a run, which waits for those that it needs before they are done."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def compiling_sources(device: int, sources: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Compile sources one after another, or load them from the cache on disk, while the context is open.

    Parameters
    ----------
    device
        The number of the device.
    sources
        The name of each, and what stands for its generated header, in the order in which they are needed.
    """
    ended = Event()
    Thread(target=_compile, args=(device, sources, ended), name="compiling-for-device", daemon=True).start()
    try:
        yield
    finally:
        ended.set()  # what is being compiled is not waited for


def _compile(device: int, sources: Sequence[tuple[str, str]], ended: Event) -> None:
    from longwall.kernels.cuda.runtime.compile import compile_ahead

    for name, generated in sources:
        if ended.is_set():
            return
        try:
            compile_ahead(device, name, generated)
        except Exception:  # of CuPy, of the driver: the thread that wants a kernel of it finds out
            return
