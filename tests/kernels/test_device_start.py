"""A device is opened while other things are done, where there is probably one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from longwall.kernels import EngineUnavailable, prepare_engine
from longwall.kernels.cuda.runtime import device


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The threads that opened the device, which there is not."""
    found: list[str] = []

    def open_device() -> Any:
        found.append(threading.current_thread().name)
        raise EngineUnavailable("there is none")

    monkeypatch.setattr(device, "open_device", open_device)
    monkeypatch.setattr(device, "find_spec", lambda name: name)
    monkeypatch.setattr(device, "_DRIVER", tmp_path / "driver")
    monkeypatch.setattr(device, "prepare_device", device.prepare_device.__wrapped__)
    return found


def prepare(kind: str) -> None:
    prepare_engine(kind)
    for thread in threading.enumerate():
        if thread.name == "prepare-device":
            thread.join()


def test_a_device_is_opened_by_a_thread_of_its_own(opened: list[str]) -> None:
    device._DRIVER.touch()
    prepare("auto")
    assert opened == ["prepare-device"]


def test_nothing_is_opened_for_the_cpu_or_without_a_driver(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    prepare("cuda")
    device._DRIVER.touch()
    prepare("cpu")
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    prepare("both")
    assert opened == []
