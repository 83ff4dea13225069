"""How much main memory this process has, whatever its budgets say."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """Return the bytes of main memory that the process has now; pages of mapped files count."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def resident_peak() -> int:
    """Return the most bytes of main memory that the process had since it began; 0 if the system does not say.

    `getrusage` would answer with the peak of the process that started this one, if that had more.
    """
    with suppress(OSError, ValueError):
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
