"""Kernels are compiled by processes beside the one that calls them, whatever becomes of these processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from longwall.kernels import compile_ahead
from longwall.kernels.compile_ahead import CompilingAhead, Wanted
from longwall.kernels.jit import waiting_for
from longwall.kernels.machine_code import describe_types, types_of

SOURCE = """
from longwall.kernels.jit import compiled
@compiled
def twice(number):
    return 2 * number
@compiled
def total(numbers, pair):
    found = pair[0]
    for number in numbers:
        found += number
    return found
"""
CALL = """
import os, signal, sys
import numpy as np
import kernels_of_a_test as kernels
from longwall.kernels.compile_ahead import CompilingAhead, Wanted
from longwall.kernels.jit import waiting_for
name = kernels.__name__
kinds = "float64[1C readonly], builtins.tuple(float64, int64)"
wanted = [Wanted(name, "twice", "int64"), Wanted(name, "total", kinds, 9)]
numbers = np.ones(4)
numbers.flags.writeable = False
with CompilingAhead(wanted, 2) as compiling, waiting_for(compiling.wait):
    {before}
    assert kernels.twice(20) == 40
    assert kernels.total(numbers, (0.5, 1)) == 4.5
{after}
print("numba" in sys.modules)
"""


def run(folder: Path, before: str = "", after: str = "", **environment: str) -> bool:
    """Call both kernels in a process with an empty cache; return whether it imported Numba."""
    (folder / "kernels_of_a_test.py").write_text(SOURCE)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CALL.format(before=before or "pass", after=after)],
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "NUMBA_CACHE_DIR": ""} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout == "True\n"


def test_what_processes_compile_is_called_without_numba(tmp_path: Path) -> None:
    assert not run(tmp_path, after="assert not os.path.exists(f'/proc/{compiling._process.pid}')")
    assert list((tmp_path / "cache").rglob("*.nbo"))


@pytest.mark.slow
def test_other_arguments_are_compiled_by_the_caller(tmp_path: Path) -> None:
    assert run(tmp_path, after="assert kernels.twice(1.5) == 3.0")


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "before",
    [
        "os.killpg(compiling._process.pid, signal.SIGKILL)",
        "compiling._process.terminate()",
        "compiling.close()",
        "compiling.instead([])",
    ],
)
def test_processes_that_end_do_no_harm(tmp_path: Path, before: str) -> None:
    run(tmp_path, before)


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    assert run(tmp_path, XDG_CACHE_HOME="/proc/none")


def test_where_no_process_can_be_started_none_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("no more processes")

    class Unwaited(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert self.is_set(), f"a wait of {timeout} s for nothing"
            return True

    monkeypatch.setattr(compile_ahead.subprocess, "Popen", refuse)
    monkeypatch.setattr(compile_ahead, "Event", Unwaited)
    with CompilingAhead([Wanted("module", "name", "int64")], 2, lambda: ended.append(1)) as compiling:
        assert not compiling.wait("module", "name", "int64")
        assert not compiling.wait("module", "other", "int64")
    assert ended == [1]


def test_an_interpreter_that_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    monkeypatch.setattr(compile_ahead, "_HELPER", "raise SystemExit(3)")
    with CompilingAhead([Wanted("module", "name", "int64")], 2, lambda: ended.append(1)) as compiling:
        assert compiling.wait("module", "name", "int64")  # then the caller looks for it in vain
        with waiting_for(compiling.wait):
            pass
    assert ended == [1]


@pytest.mark.parametrize(
    "kinds",
    [
        "int64",
        "bool[1C], none",
        "float32[2F readonly], int64[1A]",
        "builtins.tuple(int64, builtins.tuple(float64[1C]))",
    ],
)
def test_texts_of_arguments_are_read_as_they_are_written(kinds: str) -> None:
    assert describe_types(types_of(kinds)) == kinds


@pytest.mark.parametrize(
    "kinds", ["int65", "builtins.nothing(int64)", "builtins.tuple(int64", "longwall.missing(int64)"]
)
def test_other_texts_are_refused(kinds: str) -> None:
    with pytest.raises((ValueError, LookupError, AttributeError, ImportError)):
        types_of(kinds)
