"""Call a function in a process of its own, under a time limit, and measure that process from outside.

Standard library only: a child starts as a copy of its parent, so a parent that had loaded NumPy would show up
in the peak memory of every child.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_ROOT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Outcome:
    """What became of a call."""

    status: Literal["done", "over the limit", "failed", "skipped"]
    value: Any = None
    """What the function returned."""
    reason: str = ""
    """Why there is no value."""
    wall_seconds: float = 0.0
    peak_bytes: int = 0
    """Largest resident set of the process."""


def call(function: str, limit: float | None = None, /, **arguments: Any) -> Outcome:
    """Call a function of a module in a fresh process.

    Parameters
    ----------
    function
        ``"module:function"``; it returns what JSON can hold.
    limit
        Seconds after which the process is killed.
    **arguments
        Passed on as JSON.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer, noise = Path(folder, "answer.json"), Path(folder, "noise.txt")
        began = time.monotonic()
        with noise.open("wb") as stream:
            child = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.lib.child", function, json.dumps(arguments), str(answer)],
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
            in_time, status, usage = _wait(child, None if limit is None else began + limit)
        wall = time.monotonic() - began
        facts: dict[str, Any] = {"wall_seconds": wall, "peak_bytes": usage.ru_maxrss * 1024}
        if not in_time:
            return Outcome("over the limit", reason=f"> {limit:g} s", **facts)
        if not answer.exists():
            last = noise.read_text(errors="replace").strip().splitlines()[-1:]
            how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
            return Outcome("failed", reason=": ".join([how, *last]), **facts)
        return Outcome(**json.loads(answer.read_text()), **facts)


def _wait(child: subprocess.Popen[bytes], deadline: float | None) -> tuple[bool, int, Any]:
    """Wait for the child; past the deadline, or when this process is told to stop, kill it."""
    in_time = True
    try:
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return in_time, child.returncode, usage
            if in_time and deadline is not None and time.monotonic() > deadline:
                in_time = False
                os.killpg(child.pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
    except BaseException:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        raise
