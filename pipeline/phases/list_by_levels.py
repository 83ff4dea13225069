"""List the embeddings of a pattern level by level: a level is finished, and on disk, before the next one begins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import ARCS, MakeWorker, Phase, Task, equal_tasks
from longwall.pipeline.execution.search_context import SearchContext, SearchShare
from longwall.pipeline.phases.search_list import ExportWorker, load_searched, record_search, rows_left, search_share
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.stages.base import Stage
from longwall.stages.export import RowLimit
from longwall.storage.errors import InputError, RunError
from longwall.storage.system.concurrency import ReadAhead
from longwall.storage.tables.chunk_file import read_chunk, write_chunk
from longwall.storage.tables.embedding_table import EmbeddingTable

_TASKS_PER_WORKER = 4  # of the first level


@dataclass(frozen=True)
class _Level(Phase):
    """Make one level from the chunks of the level before or, where there are none, from the graph's edges.

    Attributes
    ----------
    plan
        The pattern's.
    columns
        Of the rows that are made.
    before
        The chunks of the level before as commits name them; None where there is no level before.
    """

    plan: MatchPlan
    columns: int
    before: tuple[dict[str, Any], ...] | None

    @property
    def unit(self) -> str:
        """See `Phase`."""
        return ARCS if self.before is None else "chunks"

    def prepare(self, env: Environment) -> None:
        """Bring what the search reads to the engine."""
        load_searched(self.plan, env)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the arcs, or one for each chunk."""
        if self.before is None:
            return search_share(self.plan, env).tasks(env.engine.workers * _TASKS_PER_WORKER)
        return equal_tasks(len(self.before), len(self.before))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' tables, and read chunks ahead."""
        share = search_share(self.plan, env)
        with share.memory.reserved(env, self.tasks(env)), self._read_ahead(share) as ahead:
            made_by = list(self.plan.level_stages(1))
            if self.before is not None:
                made_by = [_StoredChunks(ahead), *self.plan.level_stages(self.columns - 1)]
            yield self._workers(share, made_by)

    @abstractmethod
    def _workers(self, share: SearchShare, stages: Sequence[Stage]) -> MakeWorker:
        """Return what makes workers; `stages` make the level's rows."""

    def _read_ahead(self, share: SearchShare) -> ReadAhead:
        """Read the chunks of a level ahead of the workers."""
        read = partial(_read_level, share.env, self.columns - 1)
        largest = max((file["rows"] for file in self.before or ()), default=0)
        if largest > share.memory.most_rows:
            raise InputError(
                f"memory.host leaves room for chunks of {share.memory.most_rows:,} rows, but an earlier attempt "
                f"with more memory wrote chunks of {largest:,}: raise memory.host"
            )
        return ReadAhead(list(enumerate(self.before or ())), read, share.env.engine.workers)


@dataclass(frozen=True)
class WriteLevel(_Level):
    """Write a level as chunks into the checkpoint; the values of partial results are their rows."""

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"level {self.columns} of {self.plan.title}"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return f"level {self.columns}"

    def _workers(self, share: SearchShare, stages: Sequence[Stage]) -> MakeWorker:
        return lambda: _LevelWorker(share, [*stages, _WriteChunks(f"checkpoint/{self.folder}/")])


@dataclass(frozen=True)
class ListLastLevel(_Level):
    """Write the last level as Parquet; the values of partial results are the rows of their files.

    Attributes
    ----------
    limit
        Rows that are still wanted, None: all.
    """

    limit: int | None
    activity = "listing"

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"list {self.plan.title} by levels"

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    def _workers(self, share: SearchShare, stages: Sequence[Stage]) -> MakeWorker:
        limit, stages = RowLimit(self.limit), [*stages, self.plan.stages[-1]]
        return lambda: ExportWorker(self.plan, share, stages, limit if share.env.alone else RowLimit(self.limit))


class _StoredChunks(Stage):
    """The rows of the level before: the chunks of a range."""

    verb = "source"

    def __init__(self, ahead: ReadAhead):
        self._ahead = ahead

    def describe(self) -> str:
        return "source       chunks of the level before"

    def run(self, chunk: tuple[int, int], context: SearchContext) -> Iterator[EmbeddingTable]:
        for number in range(*chunk):
            if context.done:
                return
            yield self._ahead.get(number)


class _WriteChunks(Stage):
    """Write chunks into the checkpoint."""

    verb = "export"

    def __init__(self, prefix: str):
        self._prefix = prefix

    def describe(self) -> str:
        return "export       chunks for the next level"

    def run(self, chunk: EmbeddingTable, context: _LevelWorker) -> Iterable[Any]:
        if len(chunk):
            env = context.share.env
            name, path = env.files.new_path(self._prefix)
            record = write_chunk(chunk.to(np), path, env.resources.disk, sync=True)
            facts = {"rows": record.rows, "stored": record.stored, "checksum": record.checksum}
            context.files.append({"name": name} | facts)
        return ()


class _LevelWorker(SearchContext):
    def __init__(self, share: SearchShare, stages: Sequence[Stage]):
        super().__init__(share, stages)
        self.files: list[dict[str, Any]] = []

    def take_partial(self) -> PartialResult:
        files, self.files = self.files, []
        return PartialResult(sum(file["rows"] for file in files), tuple(files), self.timer.take())


def _read_level(env: Environment, columns: int, file: dict[str, Any]) -> EmbeddingTable:
    with env.files.opened(file) as path:
        try:
            table = read_chunk(path, checksum=file["checksum"], below=env.graph.num_vertices)
            if (table.num_levels, len(table)) != (columns, file["rows"]):
                raise RunError(f"{path}: this is another table")
            return table
        except RunError as error:
            raise RunError(
                f"{path}: a finished level is damaged or gone: restore the file, or start a new run"
            ) from error


def list_by_levels(plan: MatchPlan, env: Coordinator, written: int, predicted: dict[int, float]) -> PhaseRecord:
    """Write the embeddings of a plan; `written` and `predicted` as in `list_matches`.

    Returns
    -------
    PhaseRecord
        The last level's.
    """
    before: PhaseRecord | None = None
    files: tuple[dict[str, Any], ...] | None = None
    for columns in range(2, plan.program.depth):
        record = env.run(WriteLevel(plan, columns, files))
        record_search(plan, env, record, predicted)
        if before is not None:
            env.log.drop(before)
        before, files = record, tuple(record.files())
    last = ListLastLevel(plan, plan.program.depth, files, None)
    record = env.run(ListLastLevel(plan, plan.program.depth, files, rows_left(env, last.name, written)))
    if before is not None:
        env.log.drop(before)
    return record
