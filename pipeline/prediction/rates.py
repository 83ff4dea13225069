"""How fast a machine is: measured once and kept in the user's cache folder, or stated in a file of TOML."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.kernels.jit.child_process import python_words
from longwall.pipeline.quoting import suggestion
from longwall.storage.errors import InputError
from longwall.storage.system.concurrency import core_count

if TYPE_CHECKING:
    from longwall.kernels.interface.engine import Engine

_BLOCK, _BLOCKS, _MOST_SECONDS = 4 << 20, 32, 1.0  # of the file that measures a disk
_COPY_BYTES, _LINK_BYTES = 1 << 26, 1 << 28
_ROUNDS = 3
_MAY_BE_ZERO = ("devices", "device_memory", "request_seconds", "start_seconds")
_COUNTS = ("threads", "devices")
_RUN = "from longwall.__main__ import main; main()"
_TINY_GRAPH = "0 1\n0 2\n1 2\n"
_TINY = ("graph.path=tiny.txt", "workload.kind=triangles", "run.directory=runs", "run.overwrite=true")
_RUNS, _MOST_RUN_SECONDS = 2, 60.0  # the first one may compile kernels


@dataclass(frozen=True)
class Rates:
    """How fast a machine is, and what is paid for things whatever their size.

    Attributes
    ----------
    threads
        Threads of the machine that mine.
    devices
        GPUs of the machine; where there are some, each is a worker, and threads do not mine.
    steps
        Elementary steps a second of one thread or, where there are devices, of one of these. A step reads an entry of
        an adjacency in order and looks it up in a small table.
    memory, disk_read, disk_write, link, network
        Bytes a second: copied in the host's memory, read from and written to the disk, copied to each device, and over
        the network to one machine.
    device_memory
        Bytes of the graph that a device may hold; 0: as many as there are.
    request_seconds
        What a request to a worker takes the coordinator.
    start_seconds
        What a run of a tiny graph takes: the start of its process, imports, kernels, and files.
    """

    threads: int = 1
    devices: int = 0
    steps: float = 1e9
    memory: float = 1e10
    disk_read: float = 1e9
    disk_write: float = 1e9
    link: float = 2.5e10
    network: float = 1.25e9
    device_memory: float = 0.0
    request_seconds: float = 0.01
    start_seconds: float = 1.2

    @property
    def slots(self) -> int:
        """Workers of the machine that do a task at a time each."""
        return self.devices or self.threads


KEYS = tuple(one.name for one in fields(Rates))


def read_rates(path: Path, own: Rates) -> Rates:
    """Read the rates of a machine from a file; keys that it lacks are as on this machine.

    Raises
    ------
    InputError
        If the file cannot be read, or a key is unknown or has a value that is none.
    """
    from longwall.pipeline.config.raw import read_toml

    values = read_toml(path, "file of rates", "")
    for key, value in values.items():
        _check(path, key, value)
    return replace(own, **values)


def _check(path: Path, key: str, value: object) -> None:
    if key not in KEYS:
        raise InputError(f"{path}: {key}: there is no such rate{suggestion(key, KEYS)}")
    number = not isinstance(value, bool) and isinstance(value, int if key in _COUNTS else (int, float))
    least = 0 if key in _MAY_BE_ZERO else 1
    if not number or not least <= float(value) < 1e30:  # type: ignore[arg-type]
        kind = "a whole number" if key in _COUNTS else "a number"
        raise InputError(f"{path}: {key}: expected {kind} from {least} up, not {str(value)[:40]}")


def own_rates(engine: Engine, folder: Path, *, again: bool = False) -> Rates:
    """Return the rates of this machine for an engine: those of the cache or, where there are none, measured ones.

    Parameters
    ----------
    engine
        The engine of the run.
    folder
        One whose disk is measured; nothing stays there.
    again
        Whether to measure although there are some in the cache.
    """
    known, key = _kept(), _key(engine)
    if again or key not in known:
        known |= {key: measure_rates(engine, folder)}
        _keep(known)
    elif "start_seconds" not in known[key] and (start := _start(engine, folder)):  # it failed, or came later
        known[key] = {**known[key], **start}
        _keep(known)
    threads = engine.workers if _on_host(engine) else core_count()  # a config, or a container, may give fewer than last
    names = [one.name for one in fields(Rates)]
    with suppress(TypeError, ValueError):
        return replace(Rates(**{name: known[key][name] for name in names if name in known[key]}), threads=threads)
    return replace(Rates(**measure_rates(engine, folder)), threads=threads)


def measure_rates(engine: Engine, folder: Path) -> dict[str, Any]:
    """Measure this machine; what cannot be measured is left out, and so has its default.

    It takes some seconds, or as long as the kernels of a small run take to be compiled.
    """
    on_device = not _on_host(engine)
    found: dict[str, Any] = {
        "devices": 1 if on_device else 0,
        "steps": engine.kernels.steps_per_second(engine.device) / engine.workers,
        "memory": _copy_rate(),
    }
    with suppress(OSError):
        found["disk_write"], found["disk_read"] = disk_rates(folder)
    found |= _start(engine, folder)
    if on_device and (link := link_rate(engine.xp)):
        found["link"] = link
    return found


def _on_host(engine: Engine) -> bool:
    return bool(engine.xp.__name__ == "numpy")


def disk_rates(folder: Path) -> tuple[float, float]:
    """Measure the bytes a second that are written to, and read from, a file in a folder; nothing stays there.

    Raises
    ------
    OSError
        If nothing can be written there.
    """
    block, done = os.urandom(_BLOCK), 0
    with tempfile.TemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        while done < _BLOCKS and time.perf_counter() - began < _MOST_SECONDS:
            file.write(block)
            done += 1
        file.flush()
        os.fsync(file.fileno())
        written = time.perf_counter() - began
        with suppress(OSError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # not of the page cache
        file.seek(0)
        began = time.perf_counter()
        while file.read(_BLOCK):
            pass
        read = time.perf_counter() - began
    return done * _BLOCK / written, done * _BLOCK / max(read, 1e-9)


def start_seconds(engine: str, folder: Path) -> float:
    """Measure the seconds that a run of a tiny graph takes, from the start of its process; nothing stays in the folder.

    Raises
    ------
    OSError, subprocess.SubprocessError
        If no process can be started, or it fails.
    """
    best = float("inf")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        Path(place, "tiny.txt").write_text(_TINY_GRAPH, encoding="utf-8")
        Path(place, "tiny.toml").touch()
        given = [word for setting in (*_TINY, f"engine.kind={engine}") for word in ("--set", setting)]
        words = [*python_words(_RUN), "run", "tiny.toml", "--quiet", *given]
        for _ in range(_RUNS):
            began = time.perf_counter()
            subprocess.run(
                words, cwd=place, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_MOST_RUN_SECONDS
            )
            best = min(best, time.perf_counter() - began)
    return best


def _start(engine: Engine, folder: Path) -> dict[str, float]:
    """Measure the start of a process, if that can be done."""
    with suppress(OSError, subprocess.SubprocessError):
        return {"start_seconds": start_seconds(engine.name, folder)}
    return {}


def link_rate(xp: Any) -> float | None:
    """Measure the bytes a second that are copied from page-locked memory to the device; None where that fails."""
    rate = None
    with suppress(Exception):  # memory that is short, or of the driver
        rate = _bytes_a_second(xp)
    with suppress(Exception):
        for pool in (xp.get_default_memory_pool(), xp.get_default_pinned_memory_pool()):
            pool.free_all_blocks()  # CuPy would keep them
    return rate


def _bytes_a_second(xp: Any) -> float:
    import numpy as np

    host = np.frombuffer(xp.cuda.alloc_pinned_memory(_LINK_BYTES), np.uint8, _LINK_BYTES)
    device = xp.empty(_LINK_BYTES, xp.uint8)
    device.set(host)
    xp.cuda.get_current_stream().synchronize()
    began = time.perf_counter()
    device.set(host)
    xp.cuda.get_current_stream().synchronize()
    return float(_LINK_BYTES / (time.perf_counter() - began))


def _copy_rate() -> float:
    import numpy as np

    source = np.ones(_COPY_BYTES, np.uint8)
    target = np.empty_like(source)
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - began)
    return _COPY_BYTES / best


def _key(engine: Engine) -> str:
    return f"{os.uname().nodename}, {engine.name}, {engine.device.name}"


def _file() -> Path | None:
    from longwall.kernels.jit.private_folder import cache_folder

    folder = cache_folder(None, "rates")
    if folder.path is None:
        return None
    os.close(folder.descriptor)
    return folder.path / "rates.json"


def _kept() -> dict[str, Any]:
    """Return the rates that are kept, by machine and engine."""
    with suppress(OSError, ValueError):
        path = _file()
        found = json.loads(path.read_text(encoding="utf-8")) if path is not None else {}
        if isinstance(found, dict):
            return {key: value for key, value in found.items() if isinstance(value, Mapping)}
    return {}


def _keep(known: Mapping[str, Any]) -> None:
    with suppress(OSError):
        if (path := _file()) is not None:
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(known), encoding="utf-8")
            partial.replace(path)
