"""Compile kernels before they are called, in processes beside this one: what they compile stays on disk."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from functools import cache
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from typing import Any, Protocol

from longwall.kernels.jit.called import called_by
from longwall.kernels.jit.child_process import python_words
from longwall.kernels.jit.compile import ELSEWHERE, KERNELS, Kernel
from longwall.kernels.jit.compile_clock import COMPILING

_SERVE = "from longwall.kernels.jit.compile_pool import serve; serve()"
_SHOWN_AFTER = 0.3  # seconds: by then all kernels that are on disk are loaded
_PACKAGES = "kernels", "pipeline", "storage"


class Progress(Protocol):
    """Shows progress; see :class:`longwall.storage.observer.Observer`."""

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Begin something of `total` units."""
        ...

    def advance(self, n: int) -> None:
        """Add `n` units to those that are done."""
        ...


def declared_kernels() -> Sequence[Kernel]:
    """Return all kernels that declare the types of their arguments; their modules are imported."""
    for name in _PACKAGES:
        for folder in map(Path, import_module(f"longwall.{name}").__path__):
            for path in sorted(folder.rglob("*.py")):
                if b'\n@compiled("' in (source := path.read_bytes()) or b"\n@compiled(\n" in source:
                    import_module(".".join(("longwall", name, *path.relative_to(folder).with_suffix("").parts)))
    return KERNELS


@cache
def kernels_called_by(function: Any) -> list[Kernel]:
    """Return the kernels that a function of an engine calls, directly or through objects that it makes."""
    return [one for one in called_by(function) if isinstance(one, Kernel) and one.signatures]


def _length(kernel: Kernel) -> int:
    """Return the bytes of Python's code of a kernel and of those that it calls, as a guess at how long it compiles."""
    found: dict[Kernel, int] = {}
    waiting = [kernel]
    while waiting:
        function = unwrap(one := waiting.pop())
        found[one] = len(function.__code__.co_code)
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        waiting += [other for other in called if isinstance(other, Kernel) and other not in found]
    return sum(found.values())


class CompilePool:
    """Processes that compile kernels, one kernel at a time each: of those that are added together the longest first.

    A kernel that is called while the pool is open is the next that is compiled, and waits for its machine code. If a
    process ends early, the caller compiles what it left undone.

    Parameters
    ----------
    processes
        The most at a time; with fewer than two nothing is compiled here.
    """

    def __init__(self, processes: int):
        self._threads = ThreadPoolExecutor(processes) if processes > 1 else None
        self._futures: dict[tuple[Kernel, str], Future[None]] = {}
        self._waiting: deque[tuple[Kernel, str]] = deque()
        self._lock = threading.Lock()
        self._own = threading.local()
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> CompilePool:
        """Let kernels that are called ask the pool."""
        ELSEWHERE.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, whatever they compile."""
        ELSEWHERE.remove(self)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            while self._waiting:  # those who wait for them go on
                self._futures[self._waiting.popleft()].set_result(None)
        for child in self._children:
            child.kill()
        if self._threads is not None:
            self._threads.shutdown()
        for child in self._children:
            child.communicate()

    def add(self, kernels: Iterable[Kernel], *, every: bool = False) -> int:
        """Begin to compile kernels that are not on disk, for the first or every signature; return their number."""
        missing = [
            (kernel, signature)
            for kernel in dict.fromkeys(kernels)
            for signature in kernel.signatures[: None if every else 1]
            if (kernel, signature) not in self._futures and kernel.is_missing(signature)
        ]
        if self._threads is None or (len(missing) < 2 and not self._futures):
            return 0
        for key in sorted(missing, key=lambda key: -_length(key[0])):
            self._put(key, self._waiting.append)
        return len(missing)

    def compile(self, kernel: Kernel, signature: str) -> None:
        """Wait for a kernel; one that nobody has named is compiled here if a process has begun."""
        key = kernel, signature
        if self._futures and key not in self._futures and kernel.is_missing(signature):
            with suppress(RuntimeError):  # the pool is closed
                self._put(key, self._waiting.appendleft)
        if (future := self._futures.get(key)) is not None:
            with self._lock:
                if key in self._waiting:
                    self._waiting.remove(key)
                    self._waiting.appendleft(key)
            if not future.done():
                COMPILING.begin()
                try:
                    wait([future])
                finally:
                    COMPILING.end()

    def show(self, observer: Progress) -> None:
        """Wait until all are compiled, and show how far that is."""
        left = [future for future in self._futures.values() if not future.done()]
        observer.phase("compiling kernels", len(left), "kernels")
        COMPILING.begin()
        try:
            for _ in as_completed(left):
                observer.advance(1)
        finally:
            COMPILING.end()

    def _put(self, key: tuple[Kernel, str], put: Callable[[tuple[Kernel, str]], None]) -> None:
        """Let one more kernel wait for a process."""
        assert self._threads is not None
        with self._lock:
            if key not in self._futures:  # no other thread has named it meanwhile
                self._threads.submit(self._compile_first)
                self._futures[key] = Future()
                put(key)

    def _compile_first(self) -> None:
        """Compile the kernel that waits at the head."""
        with self._lock:
            key = self._waiting.popleft() if self._waiting else None
        if key is not None:
            try:
                self._compile(*key)
            finally:
                self._futures[key].set_result(None)

    def _compile(self, kernel: Kernel, signature: str) -> None:
        with suppress(OSError, ValueError):  # the process has ended, or none can be started
            child = self._child()
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps([kernel.__module__, kernel.name, signature]) + "\n")
            child.stdin.flush()
            child.stdout.readline()

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


def compile_in_threads(compilations: Sequence[Callable[[], object]], threads: int, observer: Progress) -> None:
    """Compile sources in a number of threads, and show the progress if this takes a while."""
    if len(compilations) < 2:  # the launch compiles a single one
        return
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(one) for one in compilations]
        try:
            _, left = wait(futures, _SHOWN_AFTER)
            if left:
                observer.phase("compiling kernels", len(left), "kernels")
                for _ in as_completed(left):
                    observer.advance(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


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
