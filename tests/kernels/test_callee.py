"""A kernel that kernels call is compiled once for all constants, and is on disk as a part of those only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from longwall.kernels.jit.compile import compiled

CALLS = """
from longwall.kernels.jit.compile import compiled

@compiled
def shifted(number, by):
    return number + (by << 1)

@compiled
def total(number):
    found = shifted(number, 1) + shifted(number, 2)
    for by in range(3):
        found += shifted(number, by)
    return found

if __name__ == "__main__":
    from longwall.kernels.jit.compile_clock import COMPILING
    assert COMPILING.seconds() == 0
    print(total(10), len(shifted._numba_type_.dispatcher.overloads), shifted(1, 2), COMPILING.seconds() > 0)
"""


@compiled
def halved(number):
    if number < 0:
        raise ValueError("below zero")
    return number // 2


@compiled
def halves(number):
    return halved(number) + halved(7)


def test_a_kernel_is_compiled_once_for_all_constants(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(CALLS)
    command = [sys.executable, "calls.py"]
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "62 1 5 True\n"
    kept = {path.name.split("-")[0] for path in (tmp_path / "cache").rglob("*.nbo")}
    assert kept == {"calls.total", "calls.shifted"}  # the second one was called from Python, too


def test_a_kernel_that_kernels_call_raises_errors_and_can_be_called_from_python() -> None:
    assert halves(9) == 7
    assert halved(8) == 4
    for kernel in (halves, halved):
        with pytest.raises(ValueError, match="below zero"):
            kernel(-1)
