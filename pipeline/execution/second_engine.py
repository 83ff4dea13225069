"""The engine of the host beside that of a device: it joins phases which the device's engine leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longwall.kernels.interface.engine import Engine
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.execution.environment import Environment

BUDGET_SHARE = 0.5
"""Share of the free memory of the host's budget that a second engine reserves for a phase."""
COMMIT_SECONDS = 0.5
"""Seconds of work that one of its workers may lose if it is stopped."""


class SecondEngine:
    """An engine that joins phases which another one leads.

    Parameters
    ----------
    threads
        Its worker threads.

    Attributes
    ----------
    lost
        Whether it failed in the middle of a phase, and joins none any more.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.lost = threads, False

    @cached_property
    def engine(self) -> Engine:
        """The engine; its libraries are imported when it is first needed."""
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

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can; the engine is of no further use."""
        self.lost = True
        self.stop()

    def stop(self) -> None:
        """Make running kernels return as soon as they can; the next phase gets another engine."""
        if (engine := self.__dict__.pop("engine", None)) is not None:
            engine.interrupt()
