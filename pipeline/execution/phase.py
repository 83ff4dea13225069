"""What is dispatched: a phase is data that says what its tasks are and makes its workers, in any process of a run."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from longwall.storage.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longwall.pipeline.execution.environment import Environment
    from longwall.pipeline.run_store.commit_log import PartialResult
    from longwall.stages.base import Aggregation

ARCS = "arcs"
"""The usual unit of progress; each edge counts twice."""


class Task(NamedTuple):
    """A range of roots, and how large it is: the unit of progress."""

    first: int
    last: int
    size: int


class WorkSoFar(NamedTuple):
    """An estimate of the work along the roots of a phase.

    Attributes
    ----------
    roots : int64[k]
        Some of the roots, ascending, from 0 to the number of all.
    ends : float64[k]
        The work at all roots before each of them.
    """

    roots: NDArray[np.int64]
    ends: NDArray[np.float64]


class Worker(ABC):
    """The workspace of one thread, and its result since the last commit."""

    @abstractmethod
    def run(self, first: int, last: int) -> None:
        """Do the task of the roots `first` to `last` - 1."""

    @abstractmethod
    def take_partial(self) -> PartialResult:
        """Return what was found since the last call, on disk where it is in files, and forget it."""

    @abstractmethod
    def close(self) -> None:
        """Release the workspace, and drop what was not taken."""


MakeWorker = Callable[[], Worker]
"""Makes a worker, in the worker's thread."""


@dataclass(frozen=True)
class Phase(ABC):
    """One step of a run, as data: it can be pickled, and is small.

    A process that works at a phase makes everything else of its own `Environment`: the tasks, and the workers with
    their memory. An executor decides which process and which thread does which task.
    """

    on_host: ClassVar[bool] = False
    """Whether the host's cores do the work, whatever the engine."""
    sticky: ClassVar[bool] = False
    """Whether a process keeps something of the roots that it did, and is quicker at them in the next sticky phase."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What distinguishes the phase from all others of the run; resuming finds its commits by it."""

    @property
    def folder(self) -> str:
        """Name of the folder of the phase's files in the checkpoint."""
        return re.sub(r"[^\w-]+", "-", self.name, flags=re.ASCII)

    @property
    def activity(self) -> str:
        """What the user reads beside the progress."""
        return self.name

    @property
    def unit(self) -> str:
        """What the sizes of tasks count."""
        return ARCS

    @property
    def wanted_rows(self) -> int | None:
        """Most rows that are wanted, for a phase whose values are rows of result files, or what it counts."""
        return None

    @property
    def aggregation(self) -> Aggregation[Any, Any] | None:
        """What the values of partial results are, and how they become the result; None: they stay apart."""
        return None

    @property
    def overlaps(self) -> bool:
        """Whether a device may work on two ranges at a time."""
        return False

    @property
    def keeps_workers(self) -> bool:
        """Whether a process may keep workers, and what they made, from one request for ranges to the next.

        So it is where every partial result is only of what was found since the one before, which may have been lost
        on its way, and where a worker has nothing meanwhile that others wait for.
        """
        return False

    def threads(self, env: Environment) -> int:
        """Return how many workers of a process do tasks at a time."""
        return host_threads(env) if self.on_host else env.engine.workers

    def brief(self, env: Environment) -> bool:  # noqa: ARG002
        """Return whether the caller's thread may do a task, then raise signals: it is short, or a signal ends it."""
        return False

    def prepare(self, env: Environment) -> None:  # noqa: B027 - many phases need nothing
        """Bring the graph to the engine, and derive what else `tasks` reads.

        Raises
        ------
        NotEnoughMemory
            If a budget has no room for it, and the plan has another way.
        """

    @abstractmethod
    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return ranges that cover the roots, ascending, as long as this process's memory allows.

        The number of roots is the same in every process and every attempt of the run. The phase is prepared; a call
        reads what is there and changes nothing, so that it can be made at any time, and again.
        """

    def work(self, env: Environment) -> WorkSoFar | None:  # noqa: ARG002
        """Estimate the work along the roots, where the sizes of tasks say little of it; None: they do."""
        return None

    @abstractmethod
    def open(self, env: Environment) -> AbstractContextManager[MakeWorker]:
        """Reserve what the workers of this process share, until the block ends; the value makes the workers.

        The phase is prepared.

        Raises
        ------
        NotEnoughMemory
            Where the plan has another way, when the block begins or a worker is made.
        """


@dataclass(frozen=True)
class MergingPhase(Phase):
    """A phase whose partial results are files that can be merged, so that they do not pile up."""

    @abstractmethod
    def merge(self, env: Environment, files: Sequence[dict[str, Any]]) -> PartialResult:
        """Return what replaces some files of commits, with the contents of all."""


class MethodFailed(RunError):
    """A method cannot count here, or not in good time: another one does."""


class NotEnoughMemory(MethodFailed):
    """A budget has no room for a phase that the plan can do without."""


class TooExpensive(MethodFailed):
    """A count takes more work than the next plan, or more than was allowed for it."""


def prepared_tasks(phase: Phase, env: Environment) -> Sequence[Task]:
    """Prepare a phase in this process, and return its tasks."""
    phase.prepare(env)
    return phase.tasks(env)


def host_threads(env: Environment) -> int:
    """Return the number of threads that work at a phase of the host: one per core, unless the config says another."""
    return max(env.engine.workers, env.spec.engine.threads or len(os.sched_getaffinity(0)))


def equal_tasks(total: int, pieces: int) -> list[Task]:
    """Cut 0 to total - 1 into about `pieces` ranges of equal length."""
    step = max(-(-total // max(pieces, 1)), 1)
    return [Task(first, min(first + step, total), min(step, total - first)) for first in range(0, total, step)]
