"""What works on this machine, and what to install."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_LEAST_FREE = 1 << 28  # bytes of a disk that is measured
_DRIVER = Path("/proc/driver/nvidia/version")
_PACKAGES = {
    "cupy": ("for a GPU", "cuda"),
    "dask": ("for a cluster", "cluster"),
    "distributed": ("for a cluster", "cluster"),
    "cryptography": ("for encrypted links of a cluster", "cluster"),
    "fsspec": ("for graphs and runs at URLs", "all"),
}


def examine(disk: Path) -> dict[str, str]:
    """Return facts about this machine, by name; the last one says what runs work on.

    Parameters
    ----------
    disk
        The folder whose disk is measured; the file written there has no name, so that nothing is left.
    """
    import psutil

    from longwall.storage.memory.machine_budget import default_host_bytes
    from longwall.storage.memory.sizes import round_size
    from longwall.storage.system.machine import cpu_model, usable_cores
    from longwall.storage.system.version import longwall_version

    memory = psutil.virtual_memory()
    facts = {
        "longwall": longwall_version(),
        "CPU": cpu_model(),
        "cores": usable_cores(),
        "CPU limit (cgroup)": _cpu_limit(),
        "memory": f"{memory.total / 2**30:.1f} GiB, {memory.available / 2**30:.1f} GiB free",
        "memory limit (cgroup)": _memory_limit(),
        "memory.host if not given": round_size(default_host_bytes()),
        "disk": _disk(disk),
        "CPU engine": _cpu_engine(),
        "rates": _rates(disk),
        "NVIDIA driver": _driver() or "none found",
        **_gpu_facts(),
    }
    for name, (use, extra) in _PACKAGES.items():
        there = find_spec(name) is not None
        facts[name] = "installed" if there else f"missing, needed {use}: pip install 'longwall[{extra}]'"
    cluster = all(find_spec(name) is not None for name in ("dask", "distributed", "cryptography"))
    works = {
        "CPU": facts["CPU engine"].startswith("works"),
        "GPU": facts["GPU"].startswith("works"),
        "cluster": cluster,
    }
    facts["runs work on"] = ", ".join(f"{name}: {'yes' if yes else 'no'}" for name, yes in works.items())
    return facts


def _cpu_limit() -> str:
    from longwall.storage.memory.machine_budget import cgroup_limit

    limit = cgroup_limit("cpu.max", ("cpu", "cpu.cfs_quota_us"))
    quota, _, period = limit.partition(" ")  # version 1 of cgroups has the period in a file of its own
    period = period or cgroup_limit("cpu.max", ("cpu", "cpu.cfs_period_us"))
    return f"{int(quota) / int(period):.3g} cores" if quota.isdigit() and period.isdigit() else "none"


def _memory_limit() -> str:
    from longwall.storage.memory.machine_budget import cgroup_free, cgroup_limit

    limit = cgroup_limit("memory.max", ("memory", "memory.limit_in_bytes"))
    if not limit.isdigit():
        return "none"
    return f"{int(limit) / 2**30:.1f} GiB, {max(cgroup_free(), 0) / 2**30:.1f} GiB left"


def _disk(folder: Path) -> str:
    from longwall.pipeline.prediction.rates import disk_rates

    try:
        free = shutil.disk_usage(folder).free
        if free < _LEAST_FREE:
            return f"{folder.absolute()}: {free / 2**30:.2f} GiB free, too little to measure it"
        written, read = disk_rates(folder)
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"
    speed = f"writes {written / 1e9:.2f} GB/s, reads {read / 1e9:.2f} GB/s"
    return f"{folder.absolute()}: {free / 2**30:.1f} GiB free, {speed}"


def _rates(folder: Path) -> str:
    """Measure this machine for predictions of ``longwall explain``, and keep the rates."""
    from longwall.kernels import select_engine
    from longwall.kernels.interface.engine import EngineUnavailable
    from longwall.pipeline.prediction.rates import own_rates

    found = []
    for kind in ("cpu", "cuda"):
        try:
            engine = select_engine(kind)
            rates = own_rates(engine, folder, again=True)
        except EngineUnavailable:
            continue
        except Exception as error:  # of Numba, of the driver
            return f"not measured ({_line(error)})"
        each = "device" if rates.devices else "thread"
        found.append(f"{rates.steps:.3g} steps a second of a {each}, memory {rates.memory / 1e9:.1f} GB/s")
    return "; ".join(found)


def _cpu_engine() -> str:
    """Compile and run a small kernel; say where kernels are kept."""
    from longwall.kernels.jit.kernel_cache import cache_note
    from longwall.storage.ingest.names.texts import Texts, hash_texts

    try:
        import numpy as np

        hash_texts(Texts(np.zeros(1, np.uint8), np.array([0, 1])))
    except Exception as error:  # whatever Numba and LLVM raise on a machine that they do not fit
        return f"does not work ({_line(error)})"
    return f"works; {cache_note() or 'compiled kernels are kept'}"


def _driver() -> str:
    """Return the version of NVIDIA's driver; "" where there is none."""
    with suppress(OSError):
        found = re.search(r"\s(\d+\.\d+(\.\d+)?)\s", _DRIVER.read_text(encoding="utf-8", errors="replace"))
        return found[1] if found else "of an unknown version"
    return ""


def _gpu_facts() -> dict[str, str]:
    if find_spec("cupy") is None:
        install = "to use a GPU, pip install 'longwall[cuda]'"
        missing = f"CuPy is missing; {install}" if _driver() else "CuPy is missing, and no NVIDIA driver was found"
        return {"GPU": f"not looked for: {missing}"}
    try:
        from longwall.kernels.cuda.runtime.open_device import open_device, visible_devices

        found = visible_devices()
        cupy = open_device()
    except Exception as error:  # of the driver, of CuPy, of the engine
        return {"GPU": f"none that works ({_line(error)})"}
    return {"GPU": f"works: {len(found)} visible{_model(cupy)}", **_versions(cupy), "link": _link(cupy)}


def _model(cupy: Any) -> str:
    with suppress(Exception):  # a fact less
        facts = cupy.cuda.runtime.getDeviceProperties(0)
        name, size = facts["name"], facts["totalGlobalMem"] / 2**30
        return f", {name.decode() if isinstance(name, bytes) else name}, {size:.0f} GiB"
    return ""


def _versions(cupy: Any) -> dict[str, str]:
    with suppress(Exception):  # a fact less
        runtime = cupy.cuda.runtime
        numbers = {"driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion()}
        shown = {name: f"{number // 1000}.{number % 1000 // 10}" for name, number in numbers.items()}
        versions = f"the driver knows {shown['driver']}, the runtime is {shown['runtime']}, CuPy {cupy.__version__}"
        return {"CUDA": versions}
    return {}


def _link(cupy: Any) -> str:
    """Measure copies from page-locked memory to the device."""
    from longwall.pipeline.prediction.rates import link_rate

    rate = link_rate(cupy)
    return "not measured: memory is short, or the driver fails" if rate is None else f"{rate / 1e9:.1f} GB/s to the GPU"


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
