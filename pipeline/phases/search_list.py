"""List the embeddings of a pattern as Parquet, depth-first over chunks, inside the budgets.

:mod:`longwall.pipeline.phases.list_by_levels` lists in the other order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.device_graph import load_edge_labels, load_graph, loaded_edge_labels, loaded_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task
from longwall.pipeline.execution.rows.row_sink import row_sink
from longwall.pipeline.execution.search_context import SearchContext, SearchShare
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.execution.task_ranges import listed_pieces
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.pipeline.label_names import label_texts
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.stages.base import Stage
from longwall.stages.export import EmbeddingWriter, RowLimit, WriterMemory
from longwall.storage.system.version import longwall_version


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
    activity = "listing"

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"list {self.plan.title}"

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    def prepare(self, env: Environment) -> None:
        """Bring what the search reads to the engine."""
        load_searched(self.plan, env)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the arcs."""
        return search_share(self.plan, env).tasks(listed_pieces(env, self.plan.cost))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' tables."""
        share = search_share(self.plan, env)
        limit = RowLimit(self.limit)
        with share.memory.reserved(env, self.tasks(env)):
            # Where there are other processes, what is written here may be too much: the coordinator cuts the rest.
            yield lambda: ExportWorker(self.plan, share, self.plan.stages, limit if env.alone else RowLimit(self.limit))


class ExportWorker(SearchContext):
    """A worker whose last stage writes rows; it hands their files to the commits.

    Parameters
    ----------
    plan
        The pattern's.
    share
        What the workers of this process share.
    stages
        What it sends roots through.
    limit
        Rows that are still wanted.
    """

    def __init__(self, plan: MatchPlan, share: SearchShare, stages: Sequence[Stage], limit: RowLimit):
        super().__init__(share, stages)
        assert share.memory.writer is not None
        self.writer, self.limit = embedding_writer(plan, share.env, share.memory.writer, limit), limit
        self.group_rows = share.memory.writer.group_rows
        self._taken = 0

    @property
    def done(self) -> bool:
        """Whether no more rows are wanted, or the run is to end."""
        return self.limit.reached or super().done

    def near_limit(self, share: float) -> None:
        """Report which share of the limit is reached."""
        self.share.env.observer.near_limit(share)

    def take_partial(self) -> PartialResult:
        """Return the rows and the files that were written."""
        files = tuple(file | {"name": f"results.partial/{file['name']}"} for file in self.writer.sink.take())
        rows, self._taken = self.writer.rows - self._taken, self.writer.rows
        return PartialResult(rows, files, self.timer.take())

    def close(self) -> None:
        """Drop the rows that are neither in a finished file nor read."""
        self.writer.sink.abandon()
        super().close()


def embedding_writer(plan: MatchPlan, env: Environment, memory: WriterMemory, limit: RowLimit) -> EmbeddingWriter:
    """Return the writer of a worker."""
    return EmbeddingWriter(
        lambda schema: row_sink(env, schema, memory),
        plan.pattern.columns,
        plan.order,
        env.graph,
        columns=env.spec.export.columns,
        limit=limit,
        metadata={
            "pattern": plan.pattern.edge_text,
            "labels": label_texts(plan.pattern.labels, env.graph.label_names),
            "edge_labels": label_texts(plan.pattern.edge_labels, env.graph.edge_label_names),
            "induced": plan.induced,
            "graph": env.graph.content_hash,
            "version": longwall_version(),
        },
    )


def load_searched(plan: MatchPlan, env: Environment) -> None:
    """Bring what a search reads to the engine: the graph, and the labels of its edges."""
    load_graph(env, copies=plan.reads_whole_lists)
    if plan.has_edge_labels:
        load_edge_labels(env)


def search_share(plan: MatchPlan, env: Environment) -> SearchShare:
    """Return what the workers of a listing share, with their part of the budgets.

    Raises
    ------
    InputError
        If a chunk of one row's extensions does not fit a budget.
    """
    edge_labels = loaded_edge_labels(env) if plan.has_edge_labels else None
    graph, memory = loaded_graph(env), env.resources.work.free
    of_worker = WorkerMemory.within(plan.pattern.num_vertices, graph, env, memory, exporting=True)
    return SearchShare(plan.program, env, graph, of_worker, edge_labels)


def rows_left(env: Coordinator, phase: str, written: int) -> int | None:
    """Return the rows that a phase may still write, None where there is no limit."""
    limit = env.spec.limit
    return None if limit is None else limit - written - sum(env.log.values(phase))


def record_search(plan: MatchPlan, env: Coordinator, record: PhaseRecord, predicted: dict[int, float]) -> None:
    """Put the figures of a phase of a listing into the metrics."""
    record_levels(env, record.partials, {1: "source", plan.program.depth: "export"}, predicted)
