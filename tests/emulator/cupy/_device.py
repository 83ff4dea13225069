"""The emulated device: its size, and what tests can do to it."""

import ctypes
import hashlib
import os
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[1]


class KernelFault(AssertionError):
    """A kernel did what it must not; the message says what, where and by which thread."""


class EmulatedDevice:
    """One device.

    Attributes
    ----------
    multiprocessors
        Their number; small, since grids are made for it.
    shared_memory
        Bytes of shared memory that one block may have.
    memory
        Bytes of device memory.
    used
        Bytes of it that are allocated.
    peak
        The most that `used` has been; may be set back.
    taken
        Bytes that another process is said to have.
    lost
        Whether every call fails, as after the device has fallen off the bus.
    seed
        Lanes and warps take turns in an order that follows from it; 0: one after the other.
    calls
        Calls that only advise (prefetch, advise), as tuples of their name and arguments.
    late
        Whether kernels on streams other than the null stream run as late as CUDA's rules let them: a stream that does
        not wait for them, but should, finds what was there before.
    """

    def __init__(self) -> None:
        self.multiprocessors = int(os.environ.get("LONGWALL_EMULATOR_MULTIPROCESSORS", 1))
        self.shared_memory = 227 << 10
        self.memory = int(os.environ.get("LONGWALL_EMULATOR_MEMORY", 4 << 30))
        self.used = self.peak = self.taken = 0
        self.lost = False
        self.seed = int(os.environ.get("LONGWALL_EMULATOR_SEED", 0))
        self.seconds = float(os.environ.get("LONGWALL_EMULATOR_SECONDS", 300))
        self.calls: list[tuple[Any, ...]] = []
        self.late = False
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        """Bytes of device memory that are free."""
        return max(self.memory - self.used - self.taken, 0)

    def take(self, size: int) -> bool:
        """Count `size` bytes as allocated, if there is room for them."""
        with self._lock:
            if size > self.free:
                return False
            self.used += size
            self.peak = max(self.peak, self.used)
            return True

    def give(self, size: int) -> None:
        """Count `size` bytes as free again."""
        with self._lock:
            self.used -= size

    def require(self) -> None:
        """Fail where the device is lost."""
        if self.lost:
            from cupy.cuda.runtime import CUDARuntimeError, errorUnknown

            raise CUDARuntimeError(errorUnknown)

    def catch_up(self) -> None:
        """Fail where the device is lost; run what the current stream was given before: an array is looked at."""
        self.require()
        if self.late:
            from cupy.cuda import get_current_stream

            get_current_stream().catch_up()


emulated = EmulatedDevice()


def _visible() -> list[int]:
    """Numbers of the devices that the environment lets this process see."""
    there = range(int(os.environ.get("LONGWALL_EMULATOR_DEVICES", 1)))
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return list(there)
    found = []
    for name in named.split(","):
        if not name.strip().isdigit() or int(name) not in there:
            break  # as CUDA does: what follows is not seen either
        found.append(int(name))
    return found


visible = _visible()


@cache
def library_folder() -> Path:
    """Where compiled code is kept, for later sessions too."""
    chosen = os.environ.get("LONGWALL_EMULATOR_CACHE")
    folder = Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"longwall-emulator-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def compiled(name: str, text: str, options: tuple[str, ...], rest: tuple[str, ...] = ()) -> Path:
    """Compile C++ text to a shared library, unless that has been done. Return its path, beside that of its text."""
    headers = "".join(path.read_text() for path in sorted(SOURCES.glob("*.hpp")))
    digest = hashlib.sha256("\0".join([headers, text, *options, *rest]).encode()).hexdigest()[:24]
    library = library_folder() / f"{name}-{digest}.so"
    if not library.exists():
        source = library.with_suffix(".cpp")
        own = f"{os.getpid()}-{threading.get_ident()}"
        # Others may be compiling the same text: they are never to see a part of it.
        written = library.with_suffix(f".{own}.cpp")
        written.write_text(text)
        written.rename(source)
        unfinished, unlinked = library.with_suffix(f".{own}"), library.with_suffix(f".{own}.o")
        always = ("-std=c++17", "-mpopcnt", "-fPIC", "-g1", "-fvisibility=hidden", "-x", "c++", f"-I{SOURCES}")
        _run(["g++", *always, *options, "-c", "-o", str(unlinked), str(source)])
        # The hooks of -fsanitize=thread are the runtime's: without the option here, libtsan stays away.
        _run(["g++", "-shared", "-Wl,-Bsymbolic", "-o", str(unfinished), str(unlinked), *rest])
        unlinked.unlink()
        unfinished.rename(library)
    return library


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"g++ refuses: {done.stderr[:3000]}")


@cache
def runtime_library() -> Path:
    """The compiled runtime."""
    return compiled("runtime", (SOURCES / "runtime.cpp").read_text(), ("-O2", "-fvisibility=default"))


@cache
def runtime(*, locked: bool = True) -> Any:
    """The runtime's functions; `locked`: called with Python's lock, which launches must not hold."""
    library = (ctypes.PyDLL if locked else ctypes.CDLL)(str(runtime_library()), mode=ctypes.RTLD_GLOBAL)
    library.emulator_allocate.restype = library.emulator_clock.restype = ctypes.c_size_t
    library.emulator_allocate.argtypes = library.emulator_release.argtypes = [ctypes.c_size_t]
    library.emulator_add_host.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    library.emulator_remove_host.argtypes = [ctypes.c_size_t]
    library.emulator_launch.restype = ctypes.c_char_p
    if not library.emulator_usable():
        raise RuntimeError("the emulator cannot reserve its range of addresses here")
    return library
