"""The engine of the host beside that of a device: its side of a phase is opened, and closed, while the phase runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from longwall.pipeline.execution.sharing.engine_choice import BUDGET_SHARE

if TYPE_CHECKING:
    from longwall.kernels import Engine
    from longwall.pipeline.execution.environment import Coordinator, Environment


class SecondEngine:
    """An engine that joins phases which another one leads, one at a time.

    Parameters
    ----------
    threads
        Its worker threads.

    Attributes
    ----------
    lost
        Whether it failed in the middle of a phase, and joins none any more.
    idle
        Set while it has no thread.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.lost = threads, False
        self.idle = threading.Event()
        self.idle.set()

    @cached_property
    def engine(self) -> Engine:
        """The engine; its libraries are imported by the thread that first needs it."""
        from longwall.kernels import select_engine

        return select_engine("cpu", self.threads)

    @contextmanager
    def environment(self, env: Coordinator) -> Iterator[Environment]:
        """Have an environment for one phase, with a part of the host's budget that is free now.

        Raises
        ------
        BudgetExceeded
            If others have taken it meanwhile.
        """
        from longwall.storage.memory.reservations import MemoryBudget
        from longwall.storage.memory.resources import Resources

        shared = env.resources
        with shared.host.reserve(int(shared.host.free * BUDGET_SHARE), "the engine beside the device's") as part:
            host = MemoryBudget(shared.host.option, part.size, shared.host.advice)
            beside = env.beside(Resources(host, shared.disk, shared.spill, engine=self.engine))
            try:
                yield beside
            finally:
                beside.close()

    def start(self, join: Callable[[], None]) -> bool:
        """Call a function in a thread of its own; False where the one for an earlier phase has not returned yet."""
        if self.lost or not self.idle.is_set():
            return False
        self.idle.clear()

        def run() -> None:
            try:
                join()
            finally:
                self.idle.set()

        threading.Thread(target=run, daemon=True).start()
        return True

    def wait(self) -> bool:
        """Wait until the function has returned, also when the user interrupts again; False where none runs.

        Its phase may be over: then it opened its side in vain, and still holds memory.
        """
        if self.idle.is_set():
            return False
        while not self.idle.is_set():
            with suppress(KeyboardInterrupt):
                self.idle.wait()
        return True

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can; the engine is of no further use."""
        self.lost = True
        if "engine" in self.__dict__:
            self.engine.interrupt()

    def stop(self) -> None:
        """Make running kernels return as soon as they can; the next phase gets another engine."""
        if (engine := self.__dict__.pop("engine", None)) is not None:
            engine.interrupt()

    def close(self) -> None:
        """End what a phase that is over has left behind."""
        self.interrupt()
        self.wait()
