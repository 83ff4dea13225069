"""Workers whose kernels go over ranges of roots: they do a task in parts where memory is short."""

from abc import abstractmethod
from functools import partial

from longwall.kernels.interface.workspaces import Workspace
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, shrink_page_cache
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Worker
from longwall.pipeline.run_store.commit_log import PartialResult


class KernelWorker(Worker):
    """A worker with the workspace of a kernel.

    Parameters
    ----------
    env
        What the process works with.
    workspace
        Of the kernel; its bytes on the host are reserved until the worker is closed.
    """

    def __init__(self, env: Environment, workspace: Workspace):
        self._workspace_memory = env.resources.host.reserve(workspace.workspace_bytes, "a worker's workspace")

    def close(self) -> None:
        """Release the workspace."""
        self._workspace_memory.release()


class RangeWorker(KernelWorker):
    """A worker that does its tasks in parts where memory is short."""

    def __init__(self, env: Environment, workspace: Workspace):
        super().__init__(env, workspace)
        self.env, self._batch = env, AdaptiveBatch(env.engine)

    @abstractmethod
    def run_part(self, first: int, last: int) -> None:
        """Do a range; where an allocation fails nothing may have changed, and it is called again, for a part of it."""

    def run(self, first: int, last: int) -> None:
        """Do a task, in parts."""
        loaded = self.env.device_graph
        make_room = partial(shrink_page_cache, None if loaded is None else loaded.graph.pages)
        while first < last and not self.env.cancel.is_set():
            first = self._batch.run(last - first, partial(self._part, first), make_room)

    def _part(self, first: int, size: int) -> int:
        self.run_part(first, first + size)
        return first + size


class SumWorker(RangeWorker):
    """A worker whose tasks have a number each; they are added up."""

    def __init__(self, env: Environment, workspace: Workspace):
        super().__init__(env, workspace)
        self._sum = 0

    @abstractmethod
    def count(self, first: int, last: int) -> int:
        """Return the number of a range; see `run_part`."""

    def run_part(self, first: int, last: int) -> None:
        """Add the number of a range."""
        self._sum += self.count(first, last)

    def take_partial(self) -> PartialResult:
        """Return the sum."""
        found, self._sum = self._sum, 0
        return PartialResult(found)
