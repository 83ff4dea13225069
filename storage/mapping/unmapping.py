"""Keeps what a process has mapped of its files within bounds."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

_SECONDS = 0.02  # between two looks
_STATM = Path("/proc/self/statm")
_LEAST = 16 << 20  # bytes that may always be mapped


class Unmapper:
    """Unmaps pages of files when the process has more of them in its memory than it may.

    The pages stay in the operating system's cache while that has room, and an access maps them again, sixteen at a
    time. A thread looks every 20 ms; between two looks more may be mapped than is allowed.

    Parameters
    ----------
    allowed
        Returns the bytes that may be mapped now; 16 MiB may be at any time.
    """

    def __init__(self, allowed: Callable[[], int]) -> None:
        self._allowed = allowed
        self._unmap: list[Callable[[], None]] = []
        self._over = threading.Event()
        self._before = resident_file_bytes()

    def watch(self, unmap: Callable[[], None]) -> None:
        """Call a function, too, when pages are to be unmapped."""
        self._unmap.append(unmap)
        if len(self._unmap) == 1:
            weakref.finalize(self, self._over.set)
            threading.Thread(target=_look, args=(weakref.ref(self), self._over), name="unmap", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._unmap = []

    def look(self) -> bool:
        """Unmap everything if too much is mapped; return whether that was so."""
        if resident_file_bytes() - self._before <= max(self._allowed(), _LEAST):
            return False
        for unmap in list(self._unmap):
            unmap()
        return True


def resident_file_bytes() -> int:
    """Return the bytes of files that this process has in its memory, libraries included."""
    return int(_STATM.read_bytes().split()[2]) * os.sysconf("SC_PAGE_SIZE")


def _look(watched: weakref.ref[Unmapper], over: threading.Event) -> None:
    while not over.wait(_SECONDS):
        if (unmapper := watched()) is not None:
            unmapper.look()
            del unmapper
