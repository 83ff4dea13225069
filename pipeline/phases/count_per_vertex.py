"""Counts per vertex: every commit replaces a worker's file of counts; the files are added up in the end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import VertexCounter
from longwall.pipeline.execution.adaptive_batch import make_scratch
from longwall.pipeline.execution.device_graph import grow_page_cache, growing_page_cache, load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.task_ranges import prepare_range, range_reads, range_scratch, slot_ranges
from longwall.pipeline.execution.thread_executor import Dividing, run_tasks
from longwall.pipeline.phases.search_count import PROGRESS_UNIT
from longwall.pipeline.run_store.array_files import opened, write_npy
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.run_store.store import changed
from longwall.storage.errors import FinalError
from longwall.storage.hashed_file import file_sha256

_HEADER = 128  # bytes of a .npy file beside its array
_EXACT_BELOW = 2.0**62


@contextmanager
def counted_per_vertex(
    context: Environment,
    name: str,
    make: Callable[[GraphArrays, int], VertexCounter],
    *,
    part: NeighbourRange = NeighbourRange.ALL,
    rows: int = 1,
    cost: float = 0.0,
    copies: bool = False,
) -> Iterator[NDArray[np.int64]]:
    """Count something per vertex, over ranges of slots.

    Parameters
    ----------
    context
        The run.
    name
        Name of the phase, and of its files in the checkpoint.
    make
        Makes a worker's scratch from the graph and the bytes that it may take.
    part
        What the kernel reads of the rows of both ends of every edge.
    rows
        Numbers per vertex.
    cost
        Estimated number of elementary steps.
    copies
        Whether the kernel looks for copies of the graph's pages: then these have what is left of the device.

    Yields
    ------
    int64[num_vertices] or int64[rows, num_vertices]
        As the kernel gives them; booked while the context is open.

    Raises
    ------
    FinalError
        If they do not fit 64-bit integers.
    """
    engine, checkpoint, disk = context.engine, context.checkpoint, context.resources.disk
    graph, _ = load_graph(context)
    context.observer.phase("counting", graph.num_arcs, PROGRESS_UNIT)
    phase = checkpoint.phase(name, graph.num_arcs)
    checkpoint.reserve(phase, disk)
    tasks = slot_ranges(context, cost)
    prefix = f"checkpoint/{name.replace(' ', '-')}-"

    class VertexWorker(Dividing):
        """Its file has all that it found; each commit replaces the one before."""

        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            self._counter = make_scratch(engine, range_scratch(context), lambda memory: make(graph, memory))
            super().__init__(context, self._counter)
            self._before: tuple[str, ...] = ()
            if copies:
                grow_page_cache(context, range_reads(tasks, graph))

        def do(self, first: int, last: int) -> None:
            prepare_range(context, first, last, part, copies=copies)
            self._counter.add(first, last)

        def take(self) -> PartialResult:
            counts = self._counter.counts()
            if not self._before:
                disk.charge(counts.nbytes + _HEADER, "the counts of a checkpoint")
            file = write(counts)
            before, self._before = self._before, (file["name"],)
            return PartialResult(0, (file,), replaces=before)

    def write(counts: NDArray[np.int64]) -> dict[str, Any]:
        name = f"{prefix}{checkpoint.next_number(prefix)}.npy"
        return {"name": name} | write_npy(checkpoint.folder.parent / name, counts.shape, counts.dtype, [counts])

    def merge(files: Sequence[dict[str, Any]]) -> PartialResult:
        with context.resources.host.reserve(size, "counts that are added up"):
            total = _sum(context, files)
            disk.charge(total.nbytes + _HEADER, "the counts of a checkpoint")
            return PartialResult(0, (write(total),), replaces=tuple(file["name"] for file in files))

    size = 2 * 8 * rows * graph.num_vertices
    with growing_page_cache(context):
        run_tasks(context, phase, tasks, engine.workers, VertexWorker, merge=merge)
    with context.resources.host.reserve(size, "the counts"):
        yield _sum(context, phase.files())


def _sum(context: Environment, files: Sequence[dict[str, Any]]) -> NDArray[np.int64]:
    """Add up files of counts, at least one."""
    total: NDArray[np.int64] | None = None
    size = 0.0
    for file in files:
        with opened(context, file) as path:
            counts = _read(path, file["sha256"])
        size += float(counts.sum(dtype=np.float64))
        if size >= _EXACT_BELOW:
            raise FinalError(f"counts that add up to about {size:.3g} do not fit 64-bit integers")
        total = counts if total is None else np.add(total, counts, out=total)
        del counts
    assert total is not None, "a graph has slots, and so a task"
    return total


def _read(path: Path, checksum: str) -> NDArray[np.int64]:
    try:
        with path.open("rb") as file:
            if file_sha256(file) != checksum:
                raise changed(str(path))
            file.seek(0)
            counts: NDArray[np.int64] = np.load(file)
    except (OSError, ValueError, EOFError):
        raise changed(str(path)) from None
    return counts
