"""Counts per vertex: every commit replaces a worker's file of counts; the files are added up in the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import VertexCounter
from longwall.pipeline.execution.adaptive_batch import make_workspace
from longwall.pipeline.execution.device_graph import grow_page_cache, growing_page_cache, load_graph
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import MakeWorker, MergingPhase, Task
from longwall.pipeline.execution.range_workers import RangeWorker
from longwall.pipeline.execution.task_ranges import arc_tasks, prepare_range, range_memory, range_reads
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.run_store.store import changed
from longwall.storage.errors import FinalError
from longwall.storage.hashed_file import file_sha256

_EXACT_BELOW = 2.0**62


@dataclass(frozen=True)
class CountPerVertex(MergingPhase):
    """Count something per vertex, over ranges of arcs; a subclass says with which kernel.

    Attributes
    ----------
    cost
        Estimated number of elementary steps.
    """

    cost: float

    reads: ClassVar[NeighbourRange] = NeighbourRange.ALL
    """What the kernel reads of the rows of both ends of every edge."""
    copies: ClassVar[bool] = False
    """Whether the kernel reads copies of the graph's pages: then these have what is left of the device."""

    @property
    def rows(self) -> int:
        """Numbers per vertex."""
        return 1

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "counting"

    @abstractmethod
    def counter(self, env: Environment, graph: GraphArrays, memory: int) -> VertexCounter:
        """Return a worker's workspace of at most so many bytes."""

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the arcs."""
        return arc_tasks(env, self.cost)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Let the page cache grow, where the kernel reads copies of pages."""
        graph, _ = load_graph(env)
        reads = range_reads(self.tasks(env), graph)

        def make_worker() -> _VertexWorker:
            counter = make_workspace(env.engine, range_memory(env), lambda memory: self.counter(env, graph, memory))
            worker = _VertexWorker(env, counter, self)
            if self.copies:
                grow_page_cache(env, reads)
            return worker

        with growing_page_cache(env):
            yield make_worker

    def merge(self, env: Environment, files: Sequence[dict[str, Any]]) -> PartialResult:
        """Add files of counts up into one."""
        with env.resources.host.reserve(self._bytes(env), "counts that are added up"):
            file = self.write(env, _total(env, files, self.fold))
        return PartialResult(0, (file,), replaces=tuple(file["name"] for file in files))

    def write(self, env: Environment, counts: NDArray[np.int64]) -> dict[str, Any]:
        """Write a file of counts; return what a commit says of it. It must be there as long as the run goes on."""
        file = env.files.write_array(self.folder, counts.shape, counts.dtype, [counts])
        return file | {"bytes": file["stored"]}

    @contextmanager
    def run(self, env: Coordinator) -> Iterator[NDArray[np.int64]]:
        """Count, and have the counts while the block lasts; their memory is reserved.

        Yields
        ------
        int64[num_vertices] or int64[rows, num_vertices]
            As the kernel has them.

        Raises
        ------
        FinalError
            If they do not fit 64-bit integers.
        """
        record = env.run(self)
        with env.resources.host.reserve(self._bytes(env), "the counts"):
            yield _total(env, record.files(), self.fold)

    def fold(self, total: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add counts to a total, in place."""
        total += counts

    def _bytes(self, env: Environment) -> int:
        return 2 * 8 * self.rows * env.graph.num_vertices


class _VertexWorker(RangeWorker):
    """Its file has all that it found; each commit replaces the one before."""

    def __init__(self, env: Environment, counter: VertexCounter, phase: CountPerVertex):
        super().__init__(env, counter)
        self._counter, self._phase = counter, phase
        self._before: dict[str, Any] | None = None

    def run_part(self, first: int, last: int) -> None:
        prepare_range(self.env, first, last, self._phase.reads, copies=self._phase.copies)
        self._counter.add(first, last)

    def take_partial(self) -> PartialResult:
        file, before = self._phase.write(self.env, self._counter.counts()), self._before
        self._before = file
        if before is None:
            return PartialResult(0, (file,))
        self.env.resources.disk.charge(-before["stored"], "")  # the commit removes it
        return PartialResult(0, (file,), replaces=(before["name"],))


def _total(
    env: Environment, files: Sequence[dict[str, Any]], fold: Callable[[NDArray[np.int64], NDArray[np.int64]], None]
) -> NDArray[np.int64]:
    """Add up files of counts, at least one."""
    total: NDArray[np.int64] | None = None
    size = 0.0
    for file in files:
        counts = _read(env, file)
        size += float(counts.sum(dtype=np.float64))
        if size >= _EXACT_BELOW:
            raise FinalError(f"counts that add up to about {size:.3g} do not fit 64-bit integers")
        if total is None:
            total = counts
        else:
            fold(total, counts)
        del counts
    assert total is not None, "a graph has arcs, and so a task"
    return total


def _read(env: Environment, file: dict[str, Any]) -> NDArray[np.int64]:
    with env.files.opened(file) as path:
        try:
            with path.open("rb") as opened:
                if file_sha256(opened) != file["sha256"]:
                    raise changed(str(path))
                opened.seek(0)
                counts: NDArray[np.int64] = np.load(opened)
        except (OSError, ValueError, EOFError):
            raise changed(str(path)) from None
    return counts
