"""List the embeddings of a pattern as Parquet, depth-first over chunks, inside the budgets.

See :mod:`longwall.pipeline.execution.depth_first`; :mod:`longwall.pipeline.phases.list_by_levels` lists in the other
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch
from longwall.pipeline.execution.depth_first import ChunkExtender, DepthFirstWalk
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task
from longwall.pipeline.execution.range_workers import KernelWorker
from longwall.pipeline.execution.stage_metrics import StageTimer, record_levels
from longwall.pipeline.execution.task_ranges import pieces_of
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.pipeline.phases.search_count import predict
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.stages.export import EmbeddingWriter, RowLimit
from longwall.storage.errors import InputError
from longwall.storage.tables.embedding_table import EmbeddingTable


class Listed(NamedTuple):
    """The result of a listing.

    Attributes
    ----------
    rows
        Rows written.
    lower_bound
        Whether there may be more embeddings: the limit was reached.
    """

    rows: int
    lower_bound: bool


@dataclass(frozen=True)
class SearchList(Phase):
    """Write the embeddings of a plan; the values of partial results are the rows of their files.

    Attributes
    ----------
    plan
        The pattern's.
    limit
        Rows that are still wanted, None: all.
    """

    plan: MatchPlan
    limit: int | None

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"list {self.plan.title}"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "listing"

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the arcs."""
        return search_extender(self.plan, env, exporting=True).arc_tasks(pieces_of(env, self.plan.cost))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' tables."""
        extender = search_extender(self.plan, env, exporting=True)
        exporter = Exporter(self.plan, extender, self.limit)
        with extender.memory.reserved(env, self.tasks(env)):
            yield lambda: _ListWorker(extender, exporter)


class Exporter:
    """What the workers share that write full rows.

    Parameters
    ----------
    plan
        The pattern's.
    extender
        What they extend rows with.
    limit
        Rows that are still wanted, None: all.
    """

    def __init__(self, plan: MatchPlan, extender: ChunkExtender, limit: int | None):
        self._plan, self._env, self._limit = plan, extender.env, limit
        self._shared_limit = RowLimit(limit)
        self._batch = AdaptiveBatch(extender.env.engine)
        assert extender.memory.writer is not None
        self._memory = extender.memory.writer

    def limit(self) -> RowLimit:
        """Return the limit of a worker."""
        # Where there are other processes, what is written here may be too much: the coordinator cuts the rest.
        return self._shared_limit if self._env.alone else RowLimit(self._limit)

    def writer(self, limit: RowLimit) -> EmbeddingWriter:
        """Return the writer of a worker."""
        plan, env = self._plan, self._env
        return EmbeddingWriter(
            env.results,
            lambda: env.files.next_number("results.partial/embeddings-"),
            plan.order,
            env.graph.original_ids,
            columns=env.spec.export.columns,
            limit=limit,
            memory=self._memory,
            metadata={"pattern": plan.pattern.edge_text, "labels": plan.pattern.labels, "induced": plan.induced},
        )

    def batch(self, chunk: EmbeddingTable, begin: int, writer: EmbeddingWriter) -> Any:
        """Return rows of a chunk from `begin` on for a writer: a row group, or fewer where memory is short."""
        most = min(self._memory.group_rows, len(chunk) - begin)
        return self._batch.run(most, lambda size: writer.batch(chunk.sliced(begin, begin + size)))


class ExportWorker(KernelWorker):
    """A worker that hands full rows to a writer, and its files to the commits."""

    def __init__(self, extender: ChunkExtender, exporter: Exporter):
        self.searcher, self.timer = extender.searcher(), StageTimer()
        super().__init__(extender.env, self.searcher)
        self.limit = exporter.limit()
        self._extender, self._exporter = extender, exporter
        self._writer, self._taken = exporter.writer(self.limit), 0

    def write(self, chunk: EmbeddingTable) -> None:
        """Write rows of all levels."""
        before = self._writer.rows
        with self.timer.time(self._extender.program.depth) as sample:
            begin = 0
            while begin < len(chunk) and not self.limit.reached:
                batch = self._exporter.batch(chunk, begin, self._writer)
                self._writer.write(batch)
                begin += batch.num_rows
            sample.rows_in, sample.rows_out = len(chunk), self._writer.rows - before
            sample.size = chunk.nbytes
        if (share := self.limit.share) is not None:
            self._extender.env.observer.near_limit(share)

    def take_partial(self) -> PartialResult:
        """Return the rows and the files that were written."""
        files = tuple(file | {"name": f"results.partial/{file['name']}"} for file in self._writer.take_files())
        rows, self._taken = self._writer.rows - self._taken, self._writer.rows
        return PartialResult(rows, files, self.timer.take())

    def close(self) -> None:
        """Drop the file that is being written."""
        self._writer.abandon()
        super().close()


class _ListWorker(ExportWorker):
    def __init__(self, extender: ChunkExtender, exporter: Exporter):
        super().__init__(extender, exporter)
        self._walk = DepthFirstWalk(extender, extender.program.depth, self.searcher, self.timer)

    def run(self, first: int, last: int) -> None:
        self._walk.run(first, last, self.write, lambda: self.limit.reached)

    def close(self) -> None:
        super().close()
        self._walk.close()


def search_extender(plan: MatchPlan, env: Environment, *, exporting: bool) -> ChunkExtender:
    """Return what extends the rows of a plan to its last level, with its share of the budgets.

    Raises
    ------
    InputError
        If a chunk of one row's extensions does not fit a budget.
    """
    graph, memory = load_graph(env)
    share = WorkerMemory.within(plan.pattern.num_vertices, graph, env, memory, exporting=exporting)
    return ChunkExtender(plan.program, env, graph, share)


def list_matches(plan: MatchPlan, env: Coordinator, *, written: int = 0) -> Listed:
    """Write the embeddings of a plan as Parquet.

    Parameters
    ----------
    plan
        The pattern's.
    env
        The run.
    written
        Rows that other listings of the run wrote: ``export.limit`` is for all of them.

    Raises
    ------
    InputError
        If a chunk of one row's extensions does not fit a budget, or a column does not exist.
    """
    from longwall.pipeline.phases.list_by_levels import list_by_levels

    names = [f"v{vertex}" for vertex in range(plan.pattern.num_vertices)]
    unknown = sorted(set(env.spec.export.columns or ()) - set(names))
    if unknown:
        raise InputError(f"export.columns: the pattern has no column {unknown[0]!r}, only {', '.join(names)}")
    predicted = predict(plan, env)
    if env.spec.scheduler.order == "levels":
        record = list_by_levels(plan, env, written, predicted)
    else:
        phase = SearchList(plan, None)
        record = env.run(SearchList(plan, rows_left(env, phase.name, written)))
    record_search(plan, env, record, predicted)
    rows: int = sum(record.values)
    if not rows:
        extender = search_extender(plan, env, exporting=True)
        Exporter(plan, extender, None).writer(RowLimit(None)).write_empty()
    limit = env.spec.export.limit
    return Listed(rows, limit is not None and written + rows >= limit)


def rows_left(env: Coordinator, phase: str, written: int) -> int | None:
    """Return the rows that a phase may still write, None where there is no limit."""
    limit = env.spec.export.limit
    return None if limit is None else limit - written - sum(env.log.values(phase))


def record_search(plan: MatchPlan, env: Coordinator, record: PhaseRecord, predicted: dict[int, float]) -> None:
    """Put the figures of a phase of a listing into the metrics."""
    record_levels(env, record.partials, {1: "source", plan.program.depth: "export"}, predicted)
