"""List the embeddings of a pattern level by level: a level is finished, and on disk, before the next one begins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from longwall.kernels.interface.workspaces import Searcher
from longwall.pipeline.execution.depth_first import ChunkExtender, PendingRows
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import ARCS, MakeWorker, Phase, Task, equal_tasks
from longwall.pipeline.execution.range_workers import KernelWorker
from longwall.pipeline.execution.read_ahead import ReadAhead
from longwall.pipeline.execution.stage_metrics import StageTimer
from longwall.pipeline.phases.search_list import Exporter, ExportWorker, record_search, rows_left, search_extender
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.storage.errors import InputError, RunError
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

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the arcs, or one for each chunk."""
        if self.before is None:
            return self._extender(env).arc_tasks(env.engine.workers * _TASKS_PER_WORKER)
        return equal_tasks(len(self.before), len(self.before))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' tables, and read chunks ahead."""
        extender = self._extender(env)
        with extender.memory.reserved(env, self.tasks(env)), self._read_ahead(extender) as ahead:
            yield self._workers(extender, _Source(extender, ahead, from_edges=self.before is None))

    @abstractmethod
    def _workers(self, extender: ChunkExtender, source: _Source) -> MakeWorker:
        """Return what makes workers."""

    def _extender(self, env: Environment) -> ChunkExtender:
        return search_extender(self.plan, env, exporting=True)

    def _read_ahead(self, extender: ChunkExtender) -> ReadAhead:
        """Read the chunks of a level ahead of the workers."""
        read = partial(_read_level, extender.env, self.columns - 1)
        largest = max((file["rows"] for file in self.before or ()), default=0)
        if largest > extender.memory.most_rows:
            raise InputError(
                f"memory.host leaves room for chunks of {extender.memory.most_rows:,} rows, but an earlier attempt "
                f"with more memory wrote chunks of {largest:,}: raise memory.host"
            )
        return ReadAhead(list(enumerate(self.before or ())), read, extender.env.engine.workers)


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

    def _workers(self, extender: ChunkExtender, source: _Source) -> MakeWorker:
        return lambda: _LevelWorker(extender, source, self.folder)


@dataclass(frozen=True)
class ListLastLevel(_Level):
    """Write the last level as Parquet; the values of partial results are the rows of their files.

    Attributes
    ----------
    limit
        Rows that are still wanted, None: all.
    """

    limit: int | None

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"list {self.plan.title} by levels"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "listing"

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    def _workers(self, extender: ChunkExtender, source: _Source) -> MakeWorker:
        exporter = Exporter(self.plan, extender, self.limit)
        return lambda: _LastLevelWorker(extender, source, exporter)


class _Source:
    """The rows of a level, made of a range of its roots."""

    def __init__(self, extender: ChunkExtender, ahead: ReadAhead, *, from_edges: bool):
        self._extender, self._ahead, self._from_edges = extender, ahead, from_edges

    def rows(self, first: int, last: int, searcher: Searcher, timer: StageTimer) -> Iterator[EmbeddingTable]:
        """Yield the rows, chunk by chunk, until the run is cancelled."""
        if self._from_edges:
            yield from self._extender.source(first, last, timer)
            return
        for number in range(first, last):
            pending = [PendingRows(self._ahead.get(number))]
            while pending and not self._extender.env.cancel.is_set():
                step = self._extender.extend(pending.pop(), searcher, timer)
                pending += map(PendingRows, step.remainder)
                if step.resume is not None:
                    pending.append(step.resume)
                yield step.rows


class _LevelWorker(KernelWorker):
    def __init__(self, extender: ChunkExtender, source: _Source, folder: str):
        self._searcher, self._timer = extender.searcher(), StageTimer()
        super().__init__(extender.env, self._searcher)
        self._env, self._source, self._prefix = extender.env, source, f"checkpoint/{folder}/"
        self._files: list[dict[str, Any]] = []
        self._rows = 0

    def run(self, first: int, last: int) -> None:
        for chunk in self._source.rows(first, last, self._searcher, self._timer):
            if self._env.cancel.is_set():
                return
            if len(chunk):
                name, path = self._env.files.new_path(self._prefix)
                record = write_chunk(chunk.to(np), path, self._env.resources.disk, sync=True)
                facts = {"rows": record.rows, "stored": record.stored, "checksum": record.checksum}
                self._files.append({"name": name} | facts)
                self._rows += record.rows

    def take_partial(self) -> PartialResult:
        found = PartialResult(self._rows, tuple(self._files), self._timer.take())
        self._rows, self._files = 0, []
        return found


class _LastLevelWorker(ExportWorker):
    def __init__(self, extender: ChunkExtender, source: _Source, exporter: Exporter):
        super().__init__(extender, exporter)
        self._source, self._cancel = source, extender.env.cancel

    def run(self, first: int, last: int) -> None:
        if self.limit.reached:
            return
        for chunk in self._source.rows(first, last, self.searcher, self.timer):
            if self.limit.reached or self._cancel.is_set():
                return
            self.write(chunk)


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
