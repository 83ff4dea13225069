"""What works on this machine, and what to install."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

_BLOCK = 4 << 20
_MOST_BLOCKS = 32
_MOST_SECONDS = 1.0  # of writing
_PACKAGES = {
    "cupy": ("runs on a GPU", "cuda"),
    "dask": ("runs on a cluster", "cluster"),
    "distributed": ("runs on a cluster", "cluster"),
    "cryptography": ("encrypted links of a cluster", "cluster"),
    "fsspec": ("graphs and runs at URLs", "all"),
}


def examine(disk: Path) -> dict[str, str]:
    """Return facts about this machine, by name.

    Parameters
    ----------
    disk
        The folder whose disk is measured; the file written there has no name, so that nothing is left.
    """
    import psutil

    memory = psutil.virtual_memory()
    facts = {
        "cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "memory": f"{memory.total / 2**30:.1f} GiB, {memory.available / 2**30:.1f} GiB free",
        "memory limit (cgroup)": _cgroup("memory.max"),
        "cpu limit (cgroup)": _cgroup("cpu.max"),
        "disk": _disk(disk),
        "GPU": _gpu(),
    }
    for name, (use, extra) in _PACKAGES.items():
        there = find_spec(name) is not None
        facts[name] = "installed" if there else f"missing: {use} need it: pip install 'longwall[{extra}]'"
    cluster = all(find_spec(name) is not None for name in ("dask", "distributed", "cryptography"))
    gpu = "yes" if facts["GPU"].startswith("found") else "no"
    facts["runs work on"] = f"CPU: yes, GPU: {gpu}, cluster: {'yes' if cluster else 'no'}"
    return facts


def _cgroup(name: str) -> str:
    try:
        return Path(f"/sys/fs/cgroup/{name}").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def _disk(folder: Path) -> str:
    try:
        free, block, done = shutil.disk_usage(folder).free, os.urandom(_BLOCK), 0
        with tempfile.TemporaryFile(dir=folder) as file:
            began = time.perf_counter()
            while done < _MOST_BLOCKS and time.perf_counter() - began < _MOST_SECONDS and free > _BLOCK * _MOST_BLOCKS:
                file.write(block)
                done += 1
            file.flush()
            os.fsync(file.fileno())
            seconds = time.perf_counter() - began
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"
    return f"{free / 2**30:.1f} GiB free, writes {done * _BLOCK / seconds / 1e9:.2f} GB/s"


def _gpu() -> str:
    if find_spec("cupy") is None:
        return "not looked for: CuPy is missing"
    try:
        from longwall.kernels.cuda.runtime.device import open_device, visible_devices

        found = visible_devices()
        open_device()
        return f"found {len(found)}: {', '.join(found)}"
    except Exception as error:
        return f"none that works ({' '.join(str(error).split())})"
