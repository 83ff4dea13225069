"""Threads compile kernels at the same time without a deadlock, and without the interrupts of other threads."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from longwall.kernels.cuda.runtime import compile as cuda_compile

PAIR = """
@compiled("i8")
def inner_{0}(number):
    return number * {0} + 1

@compiled("i8")
def outer_{0}(number):
    return inner_{0}(number) + 1
"""
BOTH = """
import sys, threading, time
import pairs
from longwall.kernels.jit.compile import _njit
_njit()(lambda number: number)(1)  # Numba is ready
found = {}
for one in range(8):
    def call(name, delay):
        time.sleep(delay)
        found[name] = getattr(pairs, name)(5)
    calls = [(f"outer_{one}", 0.0), (f"inner_{one}", 0.002 * one)]
    threads = [threading.Thread(target=call, args=given, daemon=True) for given in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        if thread.is_alive():
            sys.exit(f"threads wait for each other at the pair {one}")
assert found == {f"inner_{one}": 5 * one + 1 for one in range(8)} | {f"outer_{one}": 5 * one + 2 for one in range(8)}
"""


def test_a_kernel_and_one_that_it_calls_are_compiled_at_the_same_time(tmp_path: Path) -> None:
    pairs = "".join(map(PAIR.format, range(8)))
    (tmp_path / "pairs.py").write_text(f"from longwall.kernels.jit.compile import compiled\n{pairs}")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", BOTH]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_an_interrupt_is_not_for_threads_that_wait_for_the_same_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, waiting, calls = Event(), Event(), []

    def compiled(*key: object) -> str:
        calls.append(key)
        if len(calls) == 1:
            begun.set()
            waiting.wait(60)
            raise KeyboardInterrupt
        return "module"

    monkeypatch.setattr(cuda_compile, "_compiled", compiled)
    monkeypatch.setattr(cuda_compile, "_modules", {})
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(cuda_compile._module, 0, "a", "", lambda: None)
        begun.wait(60)
        other = threads.submit(cuda_compile._module, 0, "a", "", waiting.set)
        assert other.exception(60) is None
        assert other.result() == "module"
        assert isinstance(one.exception(60), KeyboardInterrupt)
