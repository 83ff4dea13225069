"""A call that compiles for long says so once, if it shows no progress; it leaves no thread."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from longwall.kernels.jit import compile_notice
from longwall.kernels.jit.compile_clock import COMPILING
from longwall.kernels.jit.compile_notice import noticed_compiling

LINE = "longwall: compiling kernels, which can take a minute or two; this machine keeps them, so that later calls"
CALLS = """
import sys, threading
import longwall
from longwall.kernels.jit import compile_notice
shown = sys.argv[1] == "shown"
compile_notice.SECONDS = float("inf") if shown else 0
square = longwall.graph([(0, 1), (1, 2), (2, 3), (3, 0)])
compile_notice.SECONDS = 0
options = {"engine": "cpu", "progress": shown}
print(longwall.count(square, "cycle-4", **options), longwall.match(square, "wedge", **options).to_arrow().num_rows)
assert threading.enumerate() == [threading.main_thread()]
"""


def called(cache: Path, progress: str) -> str:
    """Return the standard error of a process that makes a graph, counts and lists."""
    environment = {"XDG_CACHE_HOME": str(cache / "cache"), "HOME": str(cache)}
    command = [sys.executable, "-W", "error", "-c", CALLS, progress]
    done = subprocess.run(command, env=environment, cwd=cache, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "1 4\n"), done.stderr
    return done.stderr


def test_a_process_says_once_that_it_compiles_and_nothing_if_kernels_are_kept(tmp_path: Path) -> None:
    first = called(tmp_path, "silent")
    assert first.startswith(LINE)
    assert first.count("\n") == 1
    assert called(tmp_path, "silent") == ""


def test_no_line_is_written_if_progress_is_shown(tmp_path: Path) -> None:
    assert LINE not in called(tmp_path, "shown")


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has written no line yet."""
    monkeypatch.setattr(compile_notice, "_written", threading.Event())


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 1), (1e9, 0)])
def test_the_line_is_for_calls_that_compile_for_longer(capsys, monkeypatch, seconds: float, lines: int) -> None:
    monkeypatch.setattr(compile_notice, "SECONDS", seconds)
    before = threading.enumerate()
    for _ in range(2):
        with noticed_compiling():
            COMPILING.begin()
            COMPILING.begin()
            COMPILING.end()
            COMPILING.end()
    assert threading.enumerate() == before
    assert capsys.readouterr().err.count(LINE) == lines
    assert not COMPILING.listeners


@pytest.mark.usefixtures("unwritten")
def test_a_broken_standard_error_does_no_harm(monkeypatch) -> None:
    monkeypatch.setattr(compile_notice, "SECONDS", 0.0)
    closed = open("/dev/null", "w")  # noqa: SIM115, PTH123
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        with noticed_compiling():
            COMPILING.begin()
            COMPILING.end()
