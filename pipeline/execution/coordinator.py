"""What a plan works with in the one process that decides which phase comes next."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from longwall.pipeline.execution.environment import Environment, Metrics

if TYPE_CHECKING:
    from longwall.pipeline.execution.phase import Phase
    from longwall.pipeline.run_store.commit_log import CommitLog, PhaseRecord
    from longwall.storage.memory.resources import Resources


@dataclass(kw_only=True)
class Coordinator(Environment):
    """What a plan works with, in the one process that decides which phase comes next."""

    log: CommitLog
    """What is finished."""
    metrics: Metrics
    """Receives the figures of every stage."""
    executor: Executor
    """Does the phases."""
    answer: ExitStack = field(default_factory=ExitStack)
    """What is reserved for the answer, until its last table is written."""
    suffix: str = ""
    """What names of phases have behind them when they are dispatched."""
    whole: bool = False
    """Whether patterns are counted in the whole graph, also if a part of it, such as a core, may be less work."""
    counted_by: str = ""
    """The method that took the last count."""
    rows_written: int = 0
    """Embeddings that listings of earlier patterns have written: ``export.limit`` is for all patterns together."""

    def beside(self, resources: Resources) -> Environment:
        """Return an environment for a second engine of this process."""
        return Environment(
            spec=self.spec,
            graph=self.graph,
            resources=resources,
            files=self.files,
            observer=self.observer,
            cancel=self.cancel,
            alone=False,
            lent={what: made.env.graph for what, made in self.derived.items() if what.in_place},
        )

    def values(self, phase: Phase) -> list[Any]:
        """Return the values of all commits of a phase, which need not have begun."""
        return self.log.values(phase.name + self.suffix)

    def run(self, phase: Phase) -> PhaseRecord:
        """Do what is missing of a phase, and return its commits, those of earlier attempts included; see `Executor`."""
        return self.executor.run(phase, self)


class Executor(Protocol):
    """Decides which process and which thread does which task of a phase.

    Attributes
    ----------
    engines
        Names of the engines that have worked so far.
    """

    engines: set[str]

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        """Do the tasks of a phase that are not committed yet, and commit them.

        Raises
        ------
        NotEnoughMemory
            If a process has no room for the phase, and the plan has another way.
        InputError
            If the workspace of a worker does not fit the budget.
        FinalError
            If a count does not fit 64-bit integers.
        KeyboardInterrupt
            If the run was cancelled.
        Exception
            Whatever else a worker raised first; the other workers are stopped.
        """
        ...
