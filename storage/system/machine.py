"""What this machine is, in words: its processor, cores, memory and system."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path


def cpu_model() -> str:
    """Return the name of the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown"


def usable_cores() -> str:
    """Return how many of the cores this process may use."""
    return f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}"


def machine_facts() -> dict[str, str]:
    """Return what the figures of a run depend on; no name that tells this machine from another of its kind."""
    import psutil

    from longwall.storage.memory.sizes import round_size

    return {
        "CPU": cpu_model(),
        "cores": usable_cores(),
        "memory": round_size(psutil.virtual_memory().total),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
    }
