"""Workers on the partitions of this process."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.thread_executor import Worker
from longwall.pipeline.run_store.array_files import write_array
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.frequent.partitions import Partitions
from longwall.storage.memory.reservations import Reservation


class PartitionWorker(Worker):
    """A worker that has the tables of this process for itself.

    Parameters
    ----------
    parts
        The tables.
    """

    def __init__(self, parts: Partitions):
        parts.lock.acquire()
        self._parts = parts

    def close(self) -> None:
        """Let others have them."""
        self._parts.lock.release()


class ArrayWorker(PartitionWorker):
    """A worker whose result is one array for all partitions of a task: a file of the checkpoint.

    Parameters
    ----------
    parts
        The tables.
    context
        The run.
    folder
        Name of the folder in the checkpoint.
    """

    def __init__(self, parts: Partitions, context: Environment, folder: str):
        super().__init__(parts)
        self._context, self._folder = context, folder
        self._held: Reservation | None = None
        self._found: NDArray[Any] = np.empty(0)

    def _begun(self, shape: tuple[int, ...], dtype: DTypeLike, what: str) -> NDArray[Any]:
        """What was found so far, zeros in the beginning; tables make room for it."""
        if self._held is None:
            self._held = self._parts.pool.reserve(np.dtype(dtype).itemsize * int(np.prod(shape)), what)
            self._found = np.zeros(shape, dtype)
        return self._found

    def _let_go(self) -> None:
        self._found = np.empty(0)
        if self._held is not None:
            self._held.release()
            self._held = None

    def take(self) -> PartialResult:
        """Write the array."""
        file = write_array(self._context, self._folder, self._found.shape, self._found.dtype, [self._found])
        self._let_go()
        return PartialResult(0, (file,), self._parts.meter.take())

    def close(self) -> None:
        """Let go of what was not taken, and of the tables."""
        self._let_go()
        super().close()
