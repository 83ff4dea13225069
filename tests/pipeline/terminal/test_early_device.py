"""A device is woken as soon as the words of a command show that a run will need it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from longwall.pipeline.terminal import early_device


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that woke the driver, a stub."""
    found: list[str] = []
    monkeypatch.setattr(early_device, "wake_driver", lambda: found.append(threading.current_thread().name))
    monkeypatch.setattr(early_device, "may_have_device", lambda: True)
    return found


def wake(*words: str) -> None:
    early_device.wake_driver_early(list(words))
    for thread in threading.enumerate():
        if thread.name == "wake-driver":
            thread.join()


@pytest.mark.parametrize("engine", ["", 'engine.kind = "cuda"', '[engine]\nkind = "both"\nthreads = 2'])
def test_a_run_on_a_device_wakes_it(woken: list[str], tmp_path: Path, engine: str) -> None:
    config = tmp_path / "run.toml"
    config.write_text(f'graph.path = "g"\n{engine}\n[workload]\nkind = "triangles"\n')
    wake("run", "--quiet", str(config), "--set", "run.name=other")
    assert woken == ["wake-driver"]


@pytest.mark.parametrize(
    "text",
    [
        'engine.kind = "cpu"',
        'engine.devices = "all"',
        'scheduler.kind = "dask"',
        "engine = 3",
        "engine.kind = [",
        "#" * (1 << 17),
        "a = " + "[" * 50_000,
    ],
)
def test_other_runs_and_faulty_configs_wake_nothing(woken: list[str], tmp_path: Path, text: str) -> None:
    config = tmp_path / "run.toml"
    config.write_text(text)
    wake("run", str(config))
    assert woken == []


def test_other_words_wake_nothing(woken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "run.toml"
    config.write_text("")
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for words in (
        (),
        ("explain", str(config)),
        ("run", str(config), "--set", "engine.kind=cpu"),
        ("run", str(config), "--set=scheduler.kind=dask"),
        ("run", str(tmp_path / "missing.toml")),
        ("run", str(tmp_path)),
        ("run", str(pipe)),
        ("run", "--help"),
    ):
        wake(*words)
    monkeypatch.setattr(early_device, "may_have_device", lambda: False)
    wake("run", str(config))
    assert woken == []


def test_waking_a_device_imports_little() -> None:
    code = (
        "import sys\nfrom longwall.pipeline.terminal.early_device import wake_driver_early\n"
        "assert not {'numpy', 'pydantic', 'typer', 'cupy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_driver_does_not_take_the_place_of_a_closed_output(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('graph.path = "none"\n[workload]\nkind = "triangles"\n')
    program = f"""
import os, sys
from types import SimpleNamespace
from longwall import __main__ as program
from longwall.pipeline.terminal import early_device
opened = []
early_device.may_have_device = lambda: True
early_device.wake_driver = lambda: opened.append(os.open(os.devnull, os.O_RDWR))
early_device.Thread = lambda target, **_: SimpleNamespace(start=target)
sys.argv = ["longwall", "run", {str(config)!r}]
try:
    program.main()
except SystemExit:
    pass
print(opened[0] > 2, file=sys.stderr)
"""
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", program]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "True", done.stderr
