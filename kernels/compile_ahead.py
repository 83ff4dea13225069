"""Compile kernels that a run will call in processes beside it, as far as they are not on disk yet.

The run waits for a kernel that they have or will compile, for a limited time, and compiles all others itself: whatever
becomes of the processes, it goes on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from contextlib import suppress
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from longwall.kernels.child_process import python_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HELPER_BYTES = 256 << 20
"""What a process that compiles takes of the memory."""
_PATIENCE = 30.0  # seconds that a run waits for one kernel
_FIRST = 1 << 30  # KiB of a kernel that is compiled before all others
_LAST_WAIT = 2.0  # seconds that processes have to end
_HELPER = "from longwall.kernels.compile_helper import serve; serve([int(one) for one in sys.argv[1:]])"


class Wanted(NamedTuple):
    """A kernel for some kind of arguments."""

    module: str
    """The name of its module."""
    name: str
    """Its name there."""
    kinds: str
    """Of the arguments; see :func:`longwall.kernels.machine_code.describe_types`."""
    size: int = 0
    """KiB of its machine code, to which the time that it takes to compile is about proportional."""


class CompilingAhead:
    """Processes that compile kernels, and how far they are; a context manager that ends them.

    Parameters
    ----------
    kernels
        In the order in which they will be called.
    helpers
        Number of processes.
    when_done
        Is called once, by any thread, when no process compiles any more.
    """

    def __init__(self, kernels: Sequence[Wanted], helpers: int, when_done: Callable[[], None] = lambda: None) -> None:
        self._waiting = list(kernels)
        self._all_known = False
        self._done = {kernel[:3]: Event() for kernel in kernels}
        self._changed = Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._links: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._working, self._when_done = helpers, when_done
        try:
            self._links = self._start(helpers)
        except OSError:  # no more descriptors or processes: the run compiles what it needs, and waits for nothing
            self.instead([])
            when_done()
        for number, link in enumerate(self._links):
            thread = Thread(target=self._feed, args=(link, number % 2 == 1), name="compiling-ahead", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _start(self, helpers: int) -> list[socket.socket]:
        """Start the processes; return a socket for each."""
        pairs = [socket.socketpair() for _ in range(helpers)]
        theirs = [link.fileno() for _, link in pairs]
        nothing = subprocess.DEVNULL
        try:
            words = [*python_words(_HELPER), *map(str, theirs)]
            # A session of its own: Ctrl-C is for the run, which ends its helpers.
            self._process = subprocess.Popen(
                words, pass_fds=theirs, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
            )
        except OSError:
            for link, _ in pairs:
                link.close()
            raise
        finally:
            for _, link in pairs:
                link.close()
        return [link for link, _ in pairs]

    def _feed(self, link: socket.socket, longest: bool) -> None:
        """Let a process compile one kernel after another, until all that is known is done, or it ends."""
        with link, link.makefile("rwb") as lines, suppress(OSError, ValueError):
            while (kernel := self._next(longest)) is not None:
                try:
                    lines.write(json.dumps(kernel[:3]).encode() + b"\n")
                    lines.flush()
                    if not lines.readline():
                        break
                finally:
                    self._done[kernel[:3]].set()
        with self._changed:
            self._working -= 1
            last = self._working == 0
        if last:
            self.instead([])
            self._when_done()

    def _next(self, longest: bool) -> Wanted | None:
        """Take the next kernel, or the longest, which would be waited for in the end if it were begun last."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._all_known)
            if not self._waiting:
                return None
            kernel = max(self._waiting, key=lambda one: one.size) if longest else self._waiting[0]
            self._waiting.remove(kernel)
            return kernel

    def instead(self, kernels: Sequence[Wanted]) -> None:
        """Compile these kernels, after which there are no more, instead of those that have not been begun."""
        with self._changed:
            waiting = {kernel[:3] for kernel in self._waiting}
            self._waiting = [one for one in kernels if one[:3] in waiting or one[:3] not in self._done]
            for kernel in waiting - {one[:3] for one in self._waiting}:
                self._done.pop(kernel).set()
            for one in self._waiting:
                self._done.setdefault(one[:3], Event())
            self._all_known = True
            self._changed.notify_all()

    def wait(self, module: str, name: str, kinds: str) -> bool:
        """Wait for a kernel of the list, which is compiled next if it has not been begun.

        Returns
        -------
        bool
            Whether it may be on disk now.
        """
        kernel = (module, name, kinds)
        with self._changed:
            wanted = [one._replace(size=_FIRST) for one in self._waiting if one[:3] == kernel]
            self._waiting = wanted + [one for one in self._waiting if one[:3] != kernel]
            done = self._done.get(kernel)
        return done is not None and done.wait(_PATIENCE)

    def close(self) -> None:
        """End the processes; a second call has no effect."""
        self.instead([])
        if self._process is None:
            return
        for link in self._links:
            with suppress(OSError):  # it is closed already
                link.shutdown(socket.SHUT_RDWR)  # so nothing waits for an answer
        self._process.terminate()
        try:
            self._process.wait(_LAST_WAIT)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> CompilingAhead:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
