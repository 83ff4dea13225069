"""The embeddings of frequent patterns as Parquet: each subgraph once, in original vertex ids."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longwall.kernels.host.patterns.dfs_codes import restrictions
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
from longwall.storage.graph.graph import Graph
from longwall.storage.parquet_files import write_parquet
from longwall.storage.tables.chunk_pool import ChunkPool
from longwall.storage.tables.chunked_table import ChunkedTable

_LEVEL_BYTES, _VERTEX_BYTES, _ROW_BYTES = 8, 8, 64  # of a row: as it is found, and while it is translated
_PATTERN_BYTES, _PATTERN_VERTEX_BYTES, _PAIR_BYTES = 112, 16, 80  # of a pattern, its vertices, its restrictions


class _WrittenPatterns:
    """What the rows of a level's patterns are translated by; a context manager that holds what is reserved for it.

    Attributes
    ----------
    numbers : int64[p]
        The row of each pattern in ``patterns.parquet``, -1 where its embeddings are not wanted.
    sizes, columns : int32[p], int32[p, largest size]
        Vertices of each pattern, and where rows have them.
    restrictions : list
        Which one of the mappings of a subgraph is written.
    """

    def __init__(self, found: FrequentPatterns, first: int, min_support: int, pool: ChunkPool):
        patterns = found.patterns.sliced(0, len(found.patterns))  # with figures of its own, which go with it
        width = int(patterns.sizes.max(initial=1))
        size = len(patterns) * (_PATTERN_BYTES + _PATTERN_VERTEX_BYTES * width)
        with ExitStack() as held:
            reserved = held.enter_context(pool.reserve(size, "what embeddings are written by"))
            self.numbers = found.table_rows(min_support, first)
            self.sizes, (_, _, self.columns) = patterns.sizes, patterns.vertices
            self.restrictions: list[Sequence[tuple[int, int]]] = []
            symmetric = (self.numbers >= 0) & (found.automorphisms > 1)
            for code, several in zip(patterns.codes, symmetric, strict=True):
                pairs = restrictions(code) if several else ()
                reserved.join(pool.reserve(_PAIR_BYTES * len(pairs), "what embeddings are written by"))
                self.restrictions.append(pairs)
            self._held = held.pop_all()

    def __enter__(self) -> "_WrittenPatterns":
        return self

    def __exit__(self, *exc: object) -> None:
        self._held.close()


class LevelWriter:
    """Writes embeddings of a level as Parquet; to be closed.

    The columns are `pattern`, the row of the pattern in ``patterns.parquet``, and `v0`, `v1`, ... for the vertices of
    the largest pattern that the config allows; null beyond those of the pattern.

    Parameters
    ----------
    next_number
        Returns the number of the next file: they are called ``embeddings-<edges>-<number>.parquet``.
    found
        The patterns of the level; embeddings of those that are frequent are written.
    first
        Row of the first frequent one in ``patterns.parquet``.
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
        first: int,
        plan: FrequentPlan,
        env: Environment,
        grower: PatternGrower,
    ):
        self._env, self._width, self._written = env, plan.max_vertices, 0
        self._schema = _schema(plan, env.graph)
        columns, levels = self._width + 1, found.patterns.num_edges + 2
        # As many rows are held until they fill a group as are written to it at once.
        written = bytes_per_row(columns, env.graph.id_bytes)
        row_bytes = _LEVEL_BYTES * levels + _VERTEX_BYTES * columns + _ROW_BYTES + 2 * written
        memory = WriterMemory.within(grower.capacity, columns, row_bytes)
        self.rows_at_once, prefix = memory.group_rows, level_prefix(found)
        with ExitStack() as held:
            self._patterns = held.enter_context(_WrittenPatterns(found, first, plan.min_support, grower.pool))
            held.enter_context(grower.pool.reserve(memory.nbytes, "writing embeddings as Parquet files"))
            self._files = PartFiles(env.results, lambda: f"{prefix}{next_number():05}.parquet", self._schema, memory)
            self._held = held.pop_all()

    def close(self) -> None:
        """Drop the file that is being written, and release the memory."""
        self._files.abandon()
        self._held.close()

    def take(self) -> list[dict[str, Any]]:
        """Finish all files; see :meth:`longwall.stages.export.PartFiles.take`."""
        return self._files.take()

    def write(self, table: ChunkedTable) -> int:
        """Write the subgraphs of mappings, each once; return their number."""
        before = self._written
        stream(table, WRITE_LEVEL, self)
        return self._written - before

    def write_rows(self, rows: NDArray[np.uint32]) -> None:
        """Write the subgraphs of flat rows; see :class:`longwall.stages.export.MappingContext`."""
        looked_at = int(rows.shape[1])
        sizes, columns, ids = self._patterns.sizes, self._patterns.columns, self._env.graph.original_ids
        rows = rows[:, _one_of_each(rows, self._patterns)]
        patterns = rows[0].astype(np.int64)
        arrays = [pa.array(self._patterns.numbers[patterns])]
        for vertex in range(self._width):
            there = sizes[patterns] > vertex
            place = columns[patterns, min(vertex, columns.shape[1] - 1)]
            values = ids[rows[np.where(there, place, 0), np.arange(rows.shape[1])] * there]
            array = self._env.graph.as_ids(values)
            arrays.append(pc.if_else(there, array, pa.scalar(None, array.type)))
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
    activity = "writing embeddings"

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"embeddings of {len(self.lineage.levels)} edges"

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
        found, next_number = self.parts.found, self._env.files.next_number
        prefix = f"{RESULTS}{level_prefix(found)}"
        return LevelWriter(lambda: next_number(prefix), found, self._first, self._plan, self._env, self.parts.grower)

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


def write_empty(path: Path, plan: FrequentPlan, graph: Graph) -> None:
    """Write a file without rows, so that a result without rows still has its columns."""
    write_parquet(_schema(plan, graph).empty_table(), path)


def level_prefix(found: FrequentPatterns) -> str:
    """What the names of the files of a level begin with."""
    return f"embeddings-{found.patterns.num_edges:05}-"


def _schema(plan: FrequentPlan, graph: Graph) -> pa.Schema:
    vertices = ((f"v{vertex}", graph.id_type) for vertex in range(plan.max_vertices))
    return pa.schema([("pattern", pa.int64()), *vertices])


def _one_of_each(rows: NDArray[np.uint32], patterns: _WrittenPatterns) -> NDArray[np.bool_]:
    """Whether a row is wanted, and the one of its subgraph's mappings that is written: bool[rows]."""
    kept = np.ones(rows.shape[1], np.bool_)
    bounds = [0, *(np.flatnonzero(np.diff(rows[0])) + 1).tolist(), rows.shape[1]]
    for begin, end in pairwise(bounds):
        pattern = int(rows[0, begin])
        some = slice(begin, end)
        kept[some] = patterns.numbers[pattern] >= 0
        columns = patterns.columns[pattern]
        for first, second in patterns.restrictions[pattern]:
            kept[some] &= rows[columns[first], some] < rows[columns[second], some]
    return kept
