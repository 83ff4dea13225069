"""A process that compiles kernels into the cache of the machine code, for another one that waits for them."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from longwall.kernels.machine_code import describe_types, types_of


def serve(descriptors: Sequence[int]) -> None:
    """Serve each of some sockets in a process of its own; what Numba has to import is shared by all.

    Parameters
    ----------
    descriptors
        Of the sockets. A line that comes from one is a kernel and its arguments, as JSON; a line goes back once it is
        compiled, or cannot be. Where a socket ends, its process does; SIGTERM to the first process ends all.
    """
    _prepare()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    children = []
    try:
        for own in descriptors:
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                _serve(own, set(descriptors) - {own})
            children.append(child)
        for descriptor in descriptors:
            os.close(descriptor)
        while children:
            children.remove(os.wait()[0])
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _serve(descriptor: int, others: Iterable[int]) -> NoReturn:
    """Compile what comes from a socket, and end the process."""
    try:
        for other in others:
            os.close(other)
        with socket.socket(fileno=descriptor) as link, link.makefile("rwb") as lines:
            for line in lines:
                with suppress(Exception):  # whatever Numba raises: the process that wants the kernel finds out
                    _compile(*json.loads(line))
                lines.write(b"\n")
                lines.flush()
    finally:
        os._exit(0)


def _prepare() -> None:
    """Import what every compilation needs."""
    registry: Any = import_module("numba.core.registry")
    registry.cpu_target.typing_context.refresh()
    registry.cpu_target.target_context.refresh()


def _compile(module: str, name: str, kinds: str) -> None:
    kernel, types = getattr(import_module(module), name), types_of(kinds)
    if describe_types(types) == kinds:
        kernel.dispatcher.compile(types)
