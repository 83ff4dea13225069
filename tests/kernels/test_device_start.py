"""A device is opened while other things are done, where there is probably one."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from longwall.kernels import driver, prepare_engine
from longwall.kernels.cuda.runtime import open_device as device
from longwall.kernels.interface.engine import DeviceFull, EngineUnavailable


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The threads that opened the device, which there is not."""
    found: list[str] = []

    def open_device() -> Any:
        found.append(threading.current_thread().name)
        raise EngineUnavailable("there is none")

    monkeypatch.setattr(device, "open_device", open_device)
    monkeypatch.setattr(driver, "find_spec", lambda name: name)
    monkeypatch.setattr(driver, "_DRIVER", tmp_path / "driver")
    monkeypatch.setattr(device, "prepare_device", device.prepare_device.__wrapped__)
    return found


def prepare(kind: str) -> None:
    prepare_engine(kind)
    for thread in threading.enumerate():
        if thread.name == "prepare-device":
            thread.join()


def test_a_device_is_opened_by_a_thread_of_its_own(opened: list[str]) -> None:
    driver._DRIVER.touch()
    prepare("auto")
    assert opened == ["prepare-device"]


def test_nothing_is_opened_for_the_cpu_or_without_a_driver(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    prepare("cuda")
    driver._DRIVER.touch()
    prepare("cpu")
    monkeypatch.setattr(driver, "find_spec", lambda name: None)
    prepare("both")
    assert opened == []


@pytest.fixture
def toolkit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A toolkit with the header that is looked for; CuPy is installed, and nothing names the toolkit."""
    for name in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.setenv(name, "")
    site = tmp_path / "site"
    for name in ("cupy", "cupy_cuda13x-14.2.0.dist-info", "numpy-2.0.dist-info"):
        (site / name).mkdir(parents=True)
    monkeypatch.setattr(device, "find_spec", lambda name: SimpleNamespace(origin=str(site / name / "__init__.py")))
    monkeypatch.setattr(device, "_packages", device._packages.__wrapped__)
    header = tmp_path / "cuda-13" / "include" / "cuda_runtime.h"
    header.parent.mkdir(parents=True)
    header.touch()
    return tmp_path / "cuda-13"


def remember(folder: Path, header: Path | None, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = None if header is None else SimpleNamespace(abs_path=str(header), found_via=how)
    finder = SimpleNamespace(locate_nvidia_header_directory={"cudart": found}.__getitem__)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", finder)  # type: ignore[arg-type]
    device._remember_toolkit.__wrapped__(folder)


def test_the_toolkit_that_was_found_is_named_the_next_time(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall = device._recall_toolkit.__wrapped__
    recall(tmp_path)
    assert os.environ["CUDA_PATH"] == "", "nothing is known"
    remember(tmp_path, toolkit / "include", "system-ctk-root", monkeypatch)
    monkeypatch.setenv("CUDA_HOME", "/mine")
    recall(tmp_path)
    assert os.environ["CUDA_PATH"] == "", "the user's word goes first"
    monkeypatch.setenv("CUDA_HOME", "")
    recall(tmp_path)
    assert os.environ["CUDA_PATH"] == str(toolkit)


@pytest.mark.parametrize("change", ["another CuPy", "no header", "a package has the headers", "damaged", "none"])
def test_a_toolkit_is_not_named_if_anything_changed(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    how = "site-packages" if change == "a package has the headers" else "system-ctk-root"
    remember(tmp_path, None if change == "none" else toolkit / "include", how, monkeypatch)
    if change == "another CuPy":
        (tmp_path / "site" / "cupy_cuda13x-14.2.0.dist-info").rename(
            tmp_path / "site" / "cupy_cuda12x-14.2.0.dist-info"
        )
    elif change == "no header":
        (toolkit / "include" / "cuda_runtime.h").unlink()
    elif change == "damaged":
        (tmp_path / "toolkit").write_text("\n\n")
    device._recall_toolkit.__wrapped__(tmp_path)
    assert os.environ["CUDA_PATH"] == ""


def test_no_folder_no_memory() -> None:
    device._remember_toolkit.__wrapped__(None)
    device._recall_toolkit.__wrapped__(None)


def test_the_driver_is_woken_before_cupy_is_imported(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Driver:
        def __init__(self, name: str):
            assert name == "libcuda.so.1"

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: calls.append(f"{name} {len(opened)}") or 0

    monkeypatch.setattr(ctypes, "CDLL", Driver)
    driver._DRIVER.touch()
    prepare("cuda")
    assert calls == ["cuInit 0", "cuDeviceGet 0", "cuDevicePrimaryCtxRetain 0"]
    assert opened == ["prepare-device"]


@pytest.mark.parametrize(("named", "expected"), [(None, ["0", "1"]), ("2, 0", ["2", "0"])])
def test_the_driver_counts_devices_without_cupy(
    monkeypatch: pytest.MonkeyPatch, named: str | None, expected: list[str]
) -> None:
    def count(number: Any) -> int:
        number._obj.value = 2
        return 0

    driver = SimpleNamespace(cuInit=lambda flags: 0, cuDeviceGetCount=count)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: {"libcuda.so.1": driver}.get(name))
    monkeypatch.setattr(device, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert device.visible_devices() == expected


class Library:
    """What counts devices without opening them: `failing` is what fails, `split` which devices are."""

    def __init__(self, number: int, failing: str = "", split: tuple[int, ...] = ()):
        self._number, self._failing, self._split = number, failing, split
        self.open = 0

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name == self._failing:
                return 3
            self.open += {"nvmlInit_v2": 1, "nvmlShutdown": -1}.get(name, 0)
            if name == "nvmlDeviceGetCount_v2":
                arguments[0]._obj.value = self._number
            elif name == "nvmlDeviceGetHandleByIndex_v2":
                arguments[1]._obj.value = arguments[0] + 1
            elif name == "nvmlDeviceGetMigMode":
                arguments[1]._obj.value = int(arguments[0].value - 1 in self._split)
            return 0

        return call


@pytest.mark.parametrize(
    ("library", "named", "opened"),
    [
        (Library(3), {}, False),
        (Library(3, failing="nvmlDeviceGetMigMode"), {}, False),  # the device knows none
        (Library(3, split=(2,)), {}, True),
        (Library(3), {"CUDA_VISIBLE_DEVICES": "0,1"}, True),
        (Library(3), {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps"}, True),
        (Library(3), {"no": "managed memory"}, True),
        (Library(3, failing="nvmlInit_v2"), {}, True),
        (Library(3, failing="nvmlDeviceGetCount_v2"), {}, True),
        (Library(3, failing="nvmlDeviceGetHandleByIndex_v2"), {}, True),
        (Library(0), {}, True),
    ],
)
def test_devices_are_counted_without_opening_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: Library, named: dict[str, str], opened: bool
) -> None:
    began = []

    def count(number: Any) -> int:
        number._obj.value = 2
        return 0

    driver = SimpleNamespace(cuInit=lambda flags: began.append(flags) or 0, cuDeviceGetCount=count)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library if "nvidia-ml" in name else driver)
    monkeypatch.setattr(device, "find_spec", lambda name: name)
    monkeypatch.setattr(device, "_MANAGED_MEMORY", tmp_path / named.get("no", ""))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    assert device.visible_devices() == (["0", "1"] if opened else ["0", "1", "2"])
    assert bool(began) == opened
    assert library.open == 0


def test_devices_are_not_there_without_a_driver_whoever_counts_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def library(name: str) -> Library:
        if "nvidia-ml" not in name:
            raise OSError(name)
        return Library(3)

    monkeypatch.setattr(ctypes, "CDLL", library)
    monkeypatch.setattr(device, "find_spec", lambda name: name)
    monkeypatch.setattr(device, "_MANAGED_MEMORY", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EngineUnavailable):
        device.visible_devices()


class Short(Exception):
    """What CuPy raises where the device has no memory."""

    def __init__(self, status: int):
        super().__init__("cudaErrorMemoryAllocation: out of memory")
        self.status = status


@pytest.mark.parametrize(("error", "full"), [(Short(2), True), (MemoryError(), True), (Short(35), False)])
def test_a_device_without_room_for_a_context_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, full: bool
) -> None:
    def refuse(*_: object) -> None:
        raise error

    cupy = FakeDevice()
    monkeypatch.setattr(device, "_place_cache", lambda: tmp_path)
    monkeypatch.setattr(device, "_recall_toolkit", lambda folder: None)
    monkeypatch.setattr(cupy, "zeros", refuse)
    monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[arg-type]
    with pytest.raises(EngineUnavailable) as raised:
        device.open_device()
    assert isinstance(raised.value, DeviceFull) == full
    if not full:
        assert str(raised.value) == "CUDA does not work here: cudaErrorMemoryAllocation: out of memory"


def test_an_exception_of_a_users_handler_stays_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(number: int, frame: object) -> None:
        raise TimeoutError("this took too long")

    cupy = FakeDevice()
    monkeypatch.setattr(device, "_place_cache", lambda: tmp_path)
    monkeypatch.setattr(device, "_recall_toolkit", lambda folder: None)
    monkeypatch.setattr(cupy, "zeros", lambda *_: signal.raise_signal(signal.SIGUSR1))
    monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[arg-type]
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with pytest.raises(TimeoutError, match="this took too long"):
            device.open_device()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_cupy_says_why_the_driver_counts_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(cuInit=lambda flags: 100))  # no other library
    monkeypatch.setattr(device, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EngineUnavailable, match="CuPy is not installed"):
        device.visible_devices()


class FakeDevice:
    """CuPy, as far as opening a device asks it; counts the kernels of its own that are run."""

    def __init__(self, name: str = "H200") -> None:
        self.kernels, self.uint8 = 0, "uint8"
        self.cuda = SimpleNamespace(
            Device=lambda: SimpleNamespace(id=0),
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 1,
                driverGetVersion=lambda: 13000,
                runtimeGetVersion=lambda: 13000,
                getDeviceProperties=lambda number: {"name": name.encode()},
            ),
        )

    def zeros(self, size: int, dtype: str) -> FakeDevice:
        return self

    def __add__(self, other: int) -> None:
        self.kernels += 1


@pytest.mark.parametrize("change", ["", "another CuPy", "another device", "another toolkit", "no folder", "damaged"])
def test_a_kernel_of_cupy_is_tried_once_on_a_machine(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    place = tmp_path / "cache"
    place.mkdir()
    folder = [None if change == "no folder" else place]
    monkeypatch.setattr(device, "_place_cache", lambda: folder[0])
    monkeypatch.setattr(device, "_recall_toolkit", lambda folder: None)
    monkeypatch.setattr(device, "_named_toolkit", device._named_toolkit.__wrapped__)

    def opened(cupy: FakeDevice) -> int:
        monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[arg-type]
        assert device.open_device() is cupy
        return cupy.kernels

    assert opened(FakeDevice()) == 1
    if change == "another CuPy":
        (tmp_path / "site" / "cupy_cuda13x-14.3.0.dist-info").mkdir()
    elif change == "another toolkit":
        monkeypatch.setenv("CUDA_HOME", "/other")
    elif change == "damaged":
        (place / "works").write_bytes(b"\xff")
    assert opened(FakeDevice("A100" if change == "another device" else "H200")) == (change != "")
    assert opened(FakeDevice("A100" if change == "another device" else "H200")) == (change == "no folder")
