"""The embeddings of frequent patterns as Parquet: each subgraph once, in original vertex ids."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longwall.kernels.patterns.dfs_codes import restrictions
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Worker
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.run_store.run_names import RESULTS
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns
from longwall.pipeline.workloads.frequent.partitions import PartitionPhase, Partitions, PartitionWorker
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.stages.base import stream
from longwall.stages.export import WRITE_LEVEL, PartFiles, WriterMemory, bytes_per_row
from longwall.storage.parquet_files import write_parquet
from longwall.storage.tables.chunked_table import ChunkedTable

_LEVEL_BYTES, _VERTEX_BYTES, _ROW_BYTES = 8, 8, 64  # of a row: as it is found, and while it is translated


class LevelWriter:
    """Writes embeddings of a level as Parquet; to be closed.

    The columns are `pattern`, the row of the pattern in ``patterns.parquet``, and `v0`, `v1`, ... for the vertices of
    the largest pattern that the config allows; null beyond those of the pattern.

    Parameters
    ----------
    next_number
        Returns the number of the next file: they are called ``embeddings-<edges>-<number>.parquet``.
    found
        The patterns of the level.
    numbers : int64[p]
        The row of each pattern in ``patterns.parquet``, -1 where its embeddings are not wanted.
    plan, env
        The run.
    grower
        Where tables are: they make room for what is written.
    """

    done = False

    def __init__(
        self,
        next_number: Callable[[], int],
        found: FrequentPatterns,
        numbers: NDArray[np.int64],
        plan: FrequentPlan,
        env: Environment,
        grower: PatternGrower,
    ):
        self._found, self._numbers, self._env = found, numbers, env
        self._width, self._written = plan.max_vertices, 0
        symmetric = (numbers >= 0) & (found.automorphisms > 1)
        self._wanted = [
            restrictions(code) if several else [] for code, several in zip(found.patterns.codes, symmetric, strict=True)
        ]
        self._schema = _schema(plan)
        columns, levels = self._width + 1, found.patterns.num_edges + 2
        # As many rows are held until they fill a group as are written to it at once.
        row_bytes = _LEVEL_BYTES * levels + _VERTEX_BYTES * columns + _ROW_BYTES + 2 * bytes_per_row(columns)
        memory = WriterMemory.within(grower.room, columns, row_bytes)
        self.rows_at_once = memory.group_rows
        self._memory = grower.pool.reserve(memory.nbytes, "writing embeddings as Parquet files")
        self._files = PartFiles(
            env.results, lambda: f"{level_prefix(found)}{next_number():05}.parquet", self._schema, memory
        )

    def close(self) -> None:
        """Drop the file that is being written, and release the memory."""
        self._files.abandon()
        self._memory.release()

    def take(self) -> list[dict[str, Any]]:
        """Finish all files; see :meth:`longwall.stages.export.PartFiles.take`."""
        return self._files.take()

    def write(self, table: ChunkedTable) -> int:
        """Write the subgraphs of mappings, each once; return their number."""
        before = self._written
        stream(table, WRITE_LEVEL, self)
        return self._written - before

    def write_rows(self, rows: NDArray[np.uint32]) -> None:
        """Write the subgraphs of flat rows; see :class:`longwall.stages.export.MappingBench`."""
        looked_at = int(rows.shape[1])
        _, _, columns = self._found.patterns.vertices
        sizes, ids = self._found.patterns.sizes, self._env.graph.original_ids
        rows = rows[:, _one_of_each(rows, self._numbers, columns, self._wanted)]
        patterns = rows[0].astype(np.int64)
        arrays = [pa.array(self._numbers[patterns])]
        for vertex in range(self._width):
            there = sizes[patterns] > vertex
            place = columns[patterns, min(vertex, columns.shape[1] - 1)]
            values = ids[rows[np.where(there, place, 0), np.arange(rows.shape[1])] * there]
            arrays.append(pa.array(values, mask=~there))
        self._files.write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._written += int(rows.shape[1])
        self._env.observer.advance(looked_at)


@dataclass(frozen=True)
class WriteEmbeddings(PartitionPhase):
    """Write the embeddings of a level; the values of partial results are the rows of their files.

    Attributes
    ----------
    first
        Row of the level's first frequent pattern in ``patterns.parquet``.
    """

    first: int

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"embeddings of {len(self.lineage.levels)} edges"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "writing embeddings"

    def worker(self, env: Environment, parts: Partitions) -> Worker:
        """See `PartitionPhase`."""
        return _EmbeddingsWorker(env, parts, self)


class _EmbeddingsWorker(PartitionWorker):
    def __init__(self, env: Environment, parts: Partitions, phase: WriteEmbeddings):
        super().__init__(parts, phase.lineage)
        self._env, self._plan, self._first = env, phase.lineage.plan, phase.first
        self._writer: LevelWriter | None = None
        self._rows = 0

    def run(self, first: int, last: int) -> None:
        for part in range(first, last):
            table = self.parts.table(part)
            if self._writer is None:
                self._writer = self._new_writer()
            self._rows += self._writer.write(table)

    def _new_writer(self) -> LevelWriter:
        found, plan, next_number = self.parts.found, self._plan, self._env.files.next_number
        numbers, prefix = found.table_rows(plan.min_support, self._first), f"{RESULTS}{level_prefix(found)}"
        return LevelWriter(lambda: next_number(prefix), found, numbers, plan, self._env, self.parts.grower)

    def take_partial(self) -> PartialResult:
        assert self._writer is not None
        rows, self._rows = self._rows, 0
        files = tuple(file | {"name": f"{RESULTS}{file['name']}"} for file in self._writer.take())
        self._drop_writer()
        return PartialResult(rows, files, self.parts.timer.take())

    def _drop_writer(self) -> None:
        """Release the writer's memory: tables of other partitions may need it."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        try:
            self._drop_writer()
        finally:
            super().close()


def write_empty(path: Path, plan: FrequentPlan) -> None:
    """Write a file without rows, so that a result without rows still has its columns."""
    write_parquet(_schema(plan).empty_table(), path)


def level_prefix(found: FrequentPatterns) -> str:
    """What the names of the files of a level begin with."""
    return f"embeddings-{found.patterns.num_edges:05}-"


def _schema(plan: FrequentPlan) -> pa.Schema:
    return pa.schema([("pattern", pa.int64()), *((f"v{vertex}", pa.int64()) for vertex in range(plan.max_vertices))])


def _one_of_each(
    rows: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    columns: NDArray[np.int32],
    wanted: list[list[tuple[int, int]]],
) -> NDArray[np.bool_]:
    """Whether a row is wanted, and the one of its subgraph's mappings that is written: bool[rows]."""
    kept = np.ones(rows.shape[1], np.bool_)
    bounds = [0, *(np.flatnonzero(np.diff(rows[0])) + 1).tolist(), rows.shape[1]]
    for begin, end in pairwise(bounds):
        pattern = int(rows[0, begin])
        some = slice(begin, end)
        kept[some] = numbers[pattern] >= 0
        for first, second in wanted[pattern]:
            kept[some] &= rows[columns[pattern, first], some] < rows[columns[pattern, second], some]
    return kept
