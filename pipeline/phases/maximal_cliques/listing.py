"""List maximal cliques as Parquet, inside the budgets: a column of lists, and one of their lengths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longwall.kernels.host.sorted_lists import list_room, sort_lists
from longwall.kernels.interface.maximal_cliques import CliqueLister, OrderedGraph
from longwall.pipeline.execution.adaptive_batch import make_workspace
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task
from longwall.pipeline.execution.rows.row_sink import row_sink, writer_memory
from longwall.pipeline.execution.stage_workers import StageWorker
from longwall.pipeline.execution.task_ranges import range_memory, root_tasks
from longwall.pipeline.phases.maximal_cliques.order import ordered_graph
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Stage
from longwall.stages.cliques.maximal import SEARCH
from longwall.stages.export import RowLimit, WriterMemory, bytes_per_row
from longwall.stages.source import Scan
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.machine_budget import require
from longwall.storage.tables.arrow_columns import of_array

SCAN = Scan("vertices")
_MOST_ROOM = 1 << 18  # vertices of the cliques that are fetched at a time; more gain nothing
_FETCHED_BYTES = 64  # of a vertex that is fetched: as it comes, with its offset, sorted, as it is written, and its size
_WAITING_BYTES = 12  # of one that waits for a thread that writes
_COLUMNS = 2


@dataclass(frozen=True)
class _Share:
    """What a worker's share of the host's memory is used for.

    Attributes
    ----------
    capacity
        Vertices of the cliques that are fetched at a time.
    writer
        What the writer may use.
    """

    capacity: int
    writer: WriterMemory

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        threads = self.writer.threads
        fetched = _FETCHED_BYTES * max(threads, 1) + _WAITING_BYTES * threads
        return self.writer.nbytes + self.capacity * fetched

    @classmethod
    def within(cls, env: Environment, largest: int) -> _Share:
        """Use the budget for cliques of at most `largest` vertices.

        Raises
        ------
        InputError
            If it is too small.
        """
        share = env.resources.host.free // env.engine.workers
        writer = writer_memory(env, share // 4, _COLUMNS, bytes_per_row(largest + 1, env.graph.id_bytes))
        capacity = min(max(share // 8 // _FETCHED_BYTES, largest), _MOST_ROOM)
        made = cls(capacity, writer)
        require(f"each of {env.engine.workers} workers that write rows", 2 * made.nbytes, share, "memory.host")
        return made


@dataclass(frozen=True)
class ListMaximalCliques(Stage):
    """List the maximal cliques of at least `min_size` vertices whose earliest vertices are in a range."""

    min_size: int

    verb = "export"

    def describe(self) -> str:
        """See `Stage`."""
        return f"export       maximal cliques of at least {self.min_size} vertices, as lists: {SEARCH}"

    def run(self, chunk: tuple[int, int], context: _ListWorker) -> Iterable[Any]:
        """Hand cliques to the context's writer, as many at a time as there is room for."""
        context.lister.begin(*chunk)
        while not context.done and (found := context.lister.following()) is not None:
            context.write(*found)
        return ()


@dataclass(frozen=True)
class FetchCliques(Phase):
    """Fetch maximal cliques below ranges of vertices, until there are enough.

    Attributes
    ----------
    min_size
        Vertices of the smallest cliques that are wanted.
    limit
        Cliques that are still wanted; None: all.
    """

    min_size: int
    limit: int | None

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    def prepare(self, env: Environment) -> None:
        """Bring the graph to the engine."""
        load_graph(env)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the vertices."""
        return root_tasks(env, SCAN, 0.0)


@dataclass(frozen=True)
class CliqueList(FetchCliques):
    """Write maximal cliques; the values of partial results are the rows of their files."""

    name = "list maximal cliques"
    activity = "listing"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What the ranges go through."""
        return SCAN, ListMaximalCliques(self.min_size)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Make the degeneracy order, and reserve what the workers write with."""
        graph = ordered_graph(env)
        share = _Share.within(env, graph.order.degeneracy + 1)
        limit = RowLimit(self.limit)

        def make_worker() -> _ListWorker:
            lister = clique_lister(env, graph, self.min_size, share.capacity)
            return _ListWorker(env, self.stages, lister, share.writer, limit if env.alone else RowLimit(self.limit))

        with env.resources.host.reserve(share.nbytes * env.engine.workers, "what workers write"):
            yield make_worker


class _ListWorker(StageWorker):
    """Fetches cliques and writes them; it hands the files to the commits."""

    def __init__(
        self, env: Environment, stages: Sequence[Stage], lister: CliqueLister, memory: WriterMemory, limit: RowLimit
    ):
        super().__init__(env, stages, lister)
        self.lister, self._limit = lister, limit
        self._sink = row_sink(env, clique_schema(env.graph), memory)
        self._rows, self._in_threads = 0, memory.threads > 0

    @property
    def done(self) -> bool:
        """Whether no more rows are wanted, or the run is to end."""
        return self._limit.reached or super().done

    def write(self, offsets: NDArray[np.int64], members: NDArray[np.uint32]) -> None:
        """Write cliques, as far as the limit allows."""
        granted = self._limit.take(len(offsets) - 1)
        if granted:
            if self._in_threads:  # the lister writes into these arrays again, perhaps before a thread has read them
                offsets, members = offsets.copy(), members.copy()
            self._sink.write(lambda: _batch(self.env.graph, offsets[: granted + 1], members))
            self._rows += granted
        if (share := self._limit.share) is not None:
            self.env.observer.near_limit(share)

    def take_partial(self) -> PartialResult:
        """Return the rows and the files that were written."""
        files = tuple(file | {"name": f"results.partial/{file['name']}"} for file in self._sink.take())
        rows, self._rows = self._rows, 0
        return PartialResult(rows, files)

    def close(self) -> None:
        """Drop the rows that are neither in a finished file nor read, and the workspace."""
        self._sink.abandon()
        super().close()


def clique_lister(env: Environment, graph: OrderedGraph, min_size: int, capacity: int) -> CliqueLister:
    """Make the workspace of a worker that fetches the cliques of about `room` vertices at a time.

    Raises
    ------
    WorkspaceTooLarge
        If the worker's share of the memory is too small.
    """
    kernels, device = env.engine.kernels, env.engine.device
    return make_workspace(
        env.engine,
        range_memory(env, SCAN),
        lambda memory: kernels.maximal_clique_lister(device, graph, graph.order, min_size, capacity, memory),
    )


def clique_schema(graph: Graph) -> pa.Schema:
    """Return the schema of the files of cliques."""
    vertices = pa.list_(pa.field("vertex", graph.id_type, nullable=False))
    return pa.schema([pa.field("clique", vertices, nullable=False), pa.field("size", pa.int32(), nullable=False)])


def _batch(graph: Graph, offsets: NDArray[np.int64], members: NDArray[np.uint32]) -> pa.RecordBatch:
    """Return cliques as they are written: ids of the input, in every clique ascending, or in the input's order."""
    schema, ids = clique_schema(graph), np.empty(offsets[-1], graph.original_ids.dtype)
    sort_lists(offsets, members, graph.original_ids, ids, list_room(ids.dtype))
    vertices = graph.as_ids(ids)
    lists = pa.ListArray.from_arrays(of_array(offsets.astype(np.int32)), vertices, schema.field("clique").type)
    return pa.RecordBatch.from_arrays([lists, of_array(np.diff(offsets).astype(np.int32))], schema=schema)
