"""Whether a CUDA device can be used here, and why not; which devices there are."""

import ctypes
import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

from longwall.kernels.cuda.runtime.errors import fault_of
from longwall.kernels.driver import may_have_device, wake_driver
from longwall.kernels.interface.engine import DeviceFull, EngineUnavailable
from longwall.kernels.jit.private_folder import cache_folder

_NONE = "no CUDA device is visible"
_MANAGED_MEMORY = Path("/dev/nvidia-uvm")
_TOOLKIT, _WORKS, _HEADER, _TOOLKIT_VARIABLES = "toolkit", "works", "cuda_runtime.h", ("CUDA_PATH", "CUDA_HOME")


@cache
def prepare_device() -> None:
    """Begin to open the device in another thread, where there is probably one: what the driver does takes no GIL."""
    if may_have_device():
        Thread(target=_try_to_open, name="prepare-device").start()


def _try_to_open() -> None:
    wake_driver()
    with suppress(EngineUnavailable):  # as it is for the next who opens it
        open_device()


def open_device() -> Any:
    """Return CuPy, once it has shown that it works.

    Returns
    -------
    module
        The imported `cupy`.

    Raises
    ------
    EngineUnavailable
        With the reason: CuPy is missing, there is no device, or the driver does not fit.
    """
    with _reasons():
        folder = _place_cache()
        named = _named_toolkit()
        _recall_toolkit(folder)
        import cupy

        if cupy.cuda.runtime.getDeviceCount() < 1:
            raise EngineUnavailable(_NONE)
        zeros, machine = cupy.zeros(1, cupy.uint8), f"{_machine(cupy)} {named}"
        if not _recalled(folder, machine):
            zeros + 1
            _remember_toolkit(folder)
            _remember(folder, _WORKS, machine)
    return cupy


def _recalled(folder: Path | None, machine: str) -> bool:
    """Return whether CuPy's own kernels worked here before: to run the first one, CuPy imports SciPy, 0.2 s."""
    with suppress(OSError, ValueError):
        return folder is not None and (folder / _WORKS).read_text() == machine
    return False


@cache
def _named_toolkit() -> str:
    """Return the toolkit that the user names, before one is recalled."""
    return " ".join(os.environ.get(name, "") for name in _TOOLKIT_VARIABLES)


def _machine(cupy: Any) -> str:
    """Describe what decides whether kernels can be compiled and run here."""
    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    return f"{_packages()}\n{runtime.driverGetVersion()} {runtime.runtimeGetVersion()} {name}"


def _remember(folder: Path | None, name: str, text: str) -> None:
    """Keep a text for later processes, where that can be done."""
    if folder is None:
        return
    with suppress(OSError):
        place = folder / f"{name}.{os.getpid()}"
        place.write_text(text)
        place.replace(folder / name)


@cache
def _place_cache() -> Path | None:
    """Let CuPy keep what it compiles in a private folder, or in memory: it raises where it cannot write."""
    if "CUPY_CACHE_IN_MEMORY" in os.environ:
        return None
    folder = cache_folder("CUPY_CACHE_DIR", "cupy")
    if folder.path is None:
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    else:
        os.environ["CUPY_CACHE_DIR"] = str(folder.path)
        os.close(folder.descriptor)
    return folder.path


@cache
def _recall_toolkit(folder: Path | None) -> None:
    """Name the toolkit whose headers an earlier process found: to look for them, CuPy starts a process, 0.2 s."""
    if folder is None or any(os.environ.get(name) for name in _TOOLKIT_VARIABLES):
        return
    with suppress(OSError, ValueError):
        packages, root = (folder / _TOOLKIT).read_text().split("\n")
        if packages == _packages() and (Path(root) / "include" / _HEADER).is_file():
            os.environ[_TOOLKIT_VARIABLES[0]] = root


@cache
def _remember_toolkit(folder: Path | None) -> None:
    """Keep where the toolkit is that CuPy found, if that is neither a package nor named by the environment."""
    if folder is None:
        return
    with suppress(ImportError, AttributeError, OSError, RuntimeError):
        from cuda.pathfinder import locate_nvidia_header_directory  # it has looked already

        found = locate_nvidia_header_directory("cudart")
        if found is not None and found.found_via == "system-ctk-root":
            _remember(folder, _TOOLKIT, f"{_packages()}\n{Path(found.abs_path).parent}")


@cache
def _packages() -> str:
    """Return the distributions of CuPy and of CUDA's parts that are installed where CuPy is, by name and version."""
    spec = find_spec("cupy")
    if spec is None or spec.origin is None:
        return ""
    folder = Path(spec.origin).parents[1]
    there = (entry.name for entry in os.scandir(folder) if entry.name.startswith(("cupy", "nvidia", "cuda")))
    return f"{folder} " + " ".join(sorted(name for name in there if name.endswith(".dist-info")))


def visible_devices() -> list[str]:
    """Return the devices that this process sees, one at least, by the names that ``CUDA_VISIBLE_DEVICES`` has for them.

    Nothing is allocated on any of them.

    Raises
    ------
    EngineUnavailable
        With the reason: CuPy is missing, there is no device, or the driver does not fit.
    """
    number = (_counted_unopened() or _counted_by_driver()) if find_spec("cupy") is not None else 0
    if not number:
        with _reasons():
            import cupy

            number = cupy.cuda.runtime.getDeviceCount()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(i) for i in range(number)] if named is None else [name.strip() for name in named.split(",")]
    if not names[:number]:
        raise EngineUnavailable(_NONE)
    return names[:number]


def _counted_unopened() -> int:
    """Return the number of devices as NVML counts them: CUDA opens them for that, 0.3 s where there are two.

    Returns
    -------
    int
        0 where NVML is missing, or CUDA may count otherwise: where devices are hidden, split (MIG) or behind a server
        (MPS), or where what CUDA needs is not there, as in containers that only watch devices.
    """
    number, split, later, there = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_void_p()
    if not {"CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"}.isdisjoint(os.environ) or not _MANAGED_MEMORY.exists():
        return 0
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libcuda.so.1")
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2():
            return 0
        try:
            if library.nvmlDeviceGetCount_v2(ctypes.byref(number)):
                return 0
            for i in range(number.value):
                if library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(there)):
                    return 0
                unknown = library.nvmlDeviceGetMigMode(there, ctypes.byref(split), ctypes.byref(later))
                if not unknown and split.value:
                    return 0
            return number.value
        finally:
            library.nvmlShutdown()
    return 0


def _counted_by_driver() -> int:
    """Return the number of devices, without an import of CuPy; 0 where CuPy can say what is missing."""
    number = ctypes.c_int()
    with suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(number)) == 0:
            return number.value
    return 0


@contextmanager
def _reasons() -> Iterator[None]:
    """Turn what CuPy raises where it does not work into `EngineUnavailable`."""
    try:
        yield
    except ModuleNotFoundError:
        raise EngineUnavailable("CuPy is not installed: pip install 'longwall[cuda]'") from None
    except EngineUnavailable:
        raise
    except Exception as reason:  # CuPy raises different types for a missing driver, library or device.
        if _of_a_handler(reason):
            raise
        fault = fault_of(int(getattr(reason, "status", 0)), "")
        if isinstance(fault or reason, MemoryError):  # not even a context has room
            raise DeviceFull from None
        text = str(reason).strip().splitlines() or [repr(reason)]
        raise EngineUnavailable(f"CUDA does not work here: {text[0]}") from None


def _of_a_handler(error: Exception) -> bool:
    """Say whether a signal handler raised an exception, such as that of a user's time limit."""
    handlers = [getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()]
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))
