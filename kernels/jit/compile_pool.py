"""Compile kernels before they are called, in processes beside this one: what they compile stays on disk."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from longwall.kernels.jit.child_process import python_words
from longwall.kernels.jit.compile import COMING, KERNELS, Kernel

_SERVE = "from longwall.kernels.jit.compile_pool import serve; serve()"
_PACKAGES = "kernels", "pipeline", "storage"


def declared_kernels() -> Sequence[Kernel]:
    """Return all kernels that declare the types of their arguments; their modules are imported."""
    for name in _PACKAGES:
        for folder in map(Path, import_module(f"longwall.{name}").__path__):
            for path in sorted(folder.rglob("*.py")):
                if b'\n@compiled("' in (source := path.read_bytes()) or b"\n@compiled(\n" in source:
                    import_module(".".join(("longwall", name, *path.relative_to(folder).with_suffix("").parts)))
    return KERNELS


class CompilePool:
    """Processes that compile kernels, one kernel at a time each.

    A kernel that is called meanwhile waits for its machine code. If a process ends early, the caller compiles what it
    left undone.

    Parameters
    ----------
    processes
        The most at a time; with fewer than two nothing is compiled beforehand.
    done
        Called for each kernel.
    """

    def __init__(self, processes: int, done: Callable[[], None] = lambda: None):
        self._threads = ThreadPoolExecutor(processes) if processes > 1 else None
        self._done = done
        self._futures: list[Future[None]] = []
        self._own = threading.local()
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> CompilePool:
        """Return the pool."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, whatever they compile."""
        for key in [key for key, future in COMING.items() if future in self._futures]:
            COMING.pop(key).cancel()
        for child in self._children:
            child.kill()
        if self._threads is not None:
            self._threads.shutdown()
        for child in self._children:
            child.communicate()

    def add(self, kernels: Iterable[Kernel]) -> int:
        """Compile kernels that are not on disk, in this order; return the number of those."""
        missing = [
            (kernel, signature)
            for kernel in dict.fromkeys(kernels)
            for signature in kernel.signatures
            if (kernel, signature) not in COMING and kernel.is_missing(signature)
        ]
        if self._threads is None or (len(missing) < 2 and not self._children):
            return 0
        for kernel, signature in missing:
            COMING[kernel, signature] = future = self._threads.submit(self._compile, kernel, signature)
            self._futures.append(future)
        return len(missing)

    def wait(self) -> None:
        """Wait until all are compiled."""
        for future in self._futures:
            future.result()

    @property
    def waiting(self) -> int:
        """The number of kernels that are not compiled yet."""
        return sum(not future.done() for future in self._futures)

    def _compile(self, kernel: Kernel, signature: str) -> None:
        with suppress(OSError, ValueError):  # the process has ended, or none can be started
            child = self._child()
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps([kernel.__module__, kernel.name, signature]) + "\n")
            child.stdin.flush()
            child.stdout.readline()
        self._done()

    def _child(self) -> subprocess.Popen[str]:
        """Return the process of a thread, which gets no signals from the terminal."""
        if not hasattr(self._own, "child"):
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            self._own.child = subprocess.Popen(
                python_words(_SERVE), stdin=pipe, stdout=pipe, stderr=nowhere, text=True, start_new_session=True
            )
            self._children.append(self._own.child)
        child: subprocess.Popen[str] = self._own.child
        return child


def serve() -> None:
    """Compile the kernels that lines name; a line goes back for each."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        module, name, signature = json.loads(line)
        kernel: Any = getattr(import_module(module), name)
        with suppress(Exception):  # the caller compiles it again, and says what is wrong
            kernel.load(signature)
        answers.write("\n")
        answers.flush()
