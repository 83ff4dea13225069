"""The export stage: embeddings as Parquet, one column per pattern vertex, in original vertex ids."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from longwall.stages.base import Stage, WorkerContext
from longwall.stages.stage_timer import StageTimer
from longwall.stages.tables import StoredRows
from longwall.storage.graph.graph import Graph
from longwall.storage.parquet_files import ParquetSink, write_parquet
from longwall.storage.tables.embedding_table import EmbeddingTable
from longwall.storage.tables.tree_parquet import TreeRows, TreeSink

if TYPE_CHECKING:  # counts write nothing, and need not wait for Arrow
    import pyarrow as pa

ROWS_PER_FILE = 1 << 24  # at most, however many come at a time
ROWS_PER_GROUP = 1 << 20  # readers skip and share out row groups; much smaller ones cost them more than they save
ROWS_PER_BATCH = 1 << 18  # that is handed to a reader at a time: with 2^16, a worker cuts most chunks
_MOST_HANDED_OVER = 64 << 20  # bytes of a worker: more gains nothing
_ROWS_AT_ONCE = 1 << 16  # of a file that is shortened
_COMPRESSION_LEVEL = 1
_COPIES = 3  # of a row group: the rows as they come, the columns, and the encoded pages
_LEAST_ROWS, _LEAST_GROUPS = 16, 4  # rows of a row group, and row groups of a file

# Bytes that Arrow takes, as they were measured (`tests/stages/test_export.py`): for each column of a row group until
# the file is closed, when its metadata is there twice; and for a writer, whatever it writes, with dictionaries or not.
_METADATA_BYTES = 2200
_PLAIN_BYTES, _DICTIONARY_BYTES = 48 << 10, 29 << 20
_PLAIN_BUFFER, _DICTIONARY_BUFFER = 1 << 14, 1 << 20  # of these
_DICTIONARY_SHARE = 4  # of a writer's memory
_THREAD_BYTES = _DICTIONARY_SHARE * _DICTIONARY_BYTES  # for each thread that writes, at least
_PLAIN: dict[str, Any] = {"use_dictionary": False, "data_page_size": 1 << 16}
_DICTIONARY: dict[str, Any] = {"dictionary_pagesize_limit": 1 << 18, "data_page_size": 1 << 18}
_PAGE_ROWS = 1 << 17  # with Arrow's 20,000, pages of dictionary indices are short: 7 % more bytes, 10 % more time


def bytes_per_row(columns: int, value_bytes: int = 8) -> int:
    """Bytes that a writer holds for every row of a row group, whose values take a given number of bytes each."""
    return value_bytes * columns * _COPIES


@dataclass(frozen=True)
class WriterMemory:
    """How a sink uses its memory: a writer of Parquet, or the queue of a reader.

    Attributes
    ----------
    group_rows
        Rows of a row group; rows are held back until they fill one.
    groups
        Row groups of a file, whose metadata is held until the file ends.
    dictionaries
        Whether columns are encoded by dictionaries: smaller files where few values repeat, but much memory.
    nbytes
        What all of it takes.
    threads
        Threads that write, each with row groups and files of its own; 0: the worker itself writes.
    """

    group_rows: int
    groups: int
    dictionaries: bool
    nbytes: int
    threads: int = 0

    @classmethod
    def within(cls, memory: int, columns: int, row_bytes: int, threads: int = 0) -> WriterMemory:
        """Make the most of a given number of bytes; `nbytes` is above them where they are too few.

        Parameters
        ----------
        memory
            Bytes.
        columns
            Columns of the files.
        row_bytes
            What a row of a row group takes, in the writer and before it comes there.
        threads
            Threads that write, at most: there are fewer if little memory would be left for each.
        """
        threads = min(threads, memory // _THREAD_BYTES)
        threads = 0 if threads < 2 else threads
        memory //= max(threads, 1)
        dictionaries = memory >= _DICTIONARY_SHARE * _DICTIONARY_BYTES
        fixed = _DICTIONARY_BYTES if dictionaries else _PLAIN_BYTES
        half = max(memory - fixed, 0) // 2
        group_rows = min(max(half // row_bytes, _LEAST_ROWS), ROWS_PER_GROUP)
        group_bytes = _METADATA_BYTES * columns
        groups = min(max(half // group_bytes, _LEAST_GROUPS), -(-ROWS_PER_FILE // group_rows))
        nbytes = fixed + group_rows * row_bytes + groups * group_bytes
        return cls(group_rows, groups, dictionaries, nbytes * max(threads, 1), threads)

    @classmethod
    def handing_over(cls, memory: int, row_bytes: int) -> WriterMemory:
        """Make the most of a given number of bytes for batches of a reader; half of the bytes may wait in its queue."""
        rows = min(max(min(memory, _MOST_HANDED_OVER) // row_bytes, _LEAST_ROWS), ROWS_PER_BATCH)
        return cls(rows, 1, False, rows * row_bytes)


class RowLimit:
    """How many rows may still be written, shared by all writers."""

    def __init__(self, limit: int | None):
        self._limit = self._left = limit
        self._lock = threading.Lock()

    def take(self, wanted: int) -> int:
        """Claim up to `wanted` rows. Return how many were granted."""
        with self._lock:
            if self._left is None:
                return wanted
            granted = min(wanted, self._left)
            self._left -= granted
            return granted

    @property
    def share(self) -> float | None:
        """Which share of the rows is written; None where there is no limit."""
        return None if self._limit is None or self._left is None else 1 - self._left / max(self._limit, 1)

    @property
    def reached(self) -> bool:
        """Whether no further row may be written."""
        return self._left == 0

    @property
    def left(self) -> int | None:
        """How many rows may still be written; None where there is no limit."""
        return self._left


def shorten(path: Path, rows: int) -> dict[str, Any]:
    """Keep only the first rows of a file that was written. Return its rows, bytes and checksum; it is on disk.

    Parameters
    ----------
    path
        The file; a process that is killed leaves it as it is.
    rows
        How many it shall have, fewer than it has.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    shorter = path.with_suffix(".shorter")
    with path.open("rb") as opened:
        file = pq.ParquetFile(opened, page_checksum_verification=True)
        with ParquetSink(shorter, file.schema_arrow, level=_COMPRESSION_LEVEL, encoding=_PLAIN) as sink:
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                part = batch.slice(0, rows)
                sink.write(pa.Table.from_batches([part]))
                rows -= part.num_rows
                if not rows:
                    break
            facts = sink.finish()
    shorter.replace(path)
    return facts


class RowSink(Protocol):
    """Takes the rows of one worker, for result files or for a reader."""

    @property
    def takes_trees(self) -> bool:
        """Whether rows may come as prefix trees."""
        ...

    def write(self, rows: Callable[[], Any]) -> None:
        """Append the record batch or `TreeRows` that a function makes; the thread that writes calls the function."""
        ...

    def take(self) -> list[dict[str, Any]]:
        """Return once all rows are written or read; return the files that hold them."""
        ...

    def abandon(self) -> None:
        """Take no further rows, and let go of those that are not in a finished file."""
        ...

    def write_empty(self) -> None:
        """Give a result without rows its columns."""
        ...


class PartFiles:
    """Writes rows as a sequence of Parquet files, each of so few row groups that their metadata is bounded.

    Parameters
    ----------
    folder
        Where the files go.
    next_name
        Returns the name of the next file.
    schema
        Of the rows.
    memory
        What the writer may use, and how.
    """

    def __init__(self, folder: Path, next_name: Callable[[], str], schema: pa.Schema, memory: WriterMemory):
        self._folder, self._next_name, self._schema, self._memory = folder, next_name, schema, memory
        self._held: list[pa.RecordBatch | TreeRows] = []
        self._held_rows = 0
        self._path: Path | None = None
        self._file: ParquetSink | TreeSink | None = None
        self._rows = self._groups = 0  # of the file
        self._finished: list[dict[str, Any]] = []

    def write(self, rows: pa.RecordBatch | TreeRows) -> None:
        """Append rows, all in the same form."""
        begin = 0
        while begin < rows.num_rows:
            full = min(self._memory.group_rows, ROWS_PER_FILE - self._rows)
            part = rows.slice(begin, full - self._held_rows)
            self._held.append(part)
            self._held_rows += part.num_rows
            begin += part.num_rows
            if self._held_rows >= full:
                self._write_group()

    @property
    def takes_trees(self) -> bool:
        """Whether rows may come as prefix trees, which are encoded with dictionaries."""
        return self._memory.dictionaries

    def _write_group(self) -> None:
        import pyarrow as pa

        if self._file is None:
            self._path = self._folder / self._next_name()
            self._file = self._opened(self._path)
        if isinstance(self._file, TreeSink):
            self._file.write(cast("list[TreeRows]", self._held))
        else:
            self._file.write(pa.Table.from_batches(self._held, self._schema), ROWS_PER_GROUP)
        self._rows += self._held_rows
        self._groups += -(-self._held_rows // ROWS_PER_GROUP)
        self._held, self._held_rows = [], 0
        if self._rows >= ROWS_PER_FILE or self._groups >= self._memory.groups:
            self._close_file()

    def _opened(self, path: Path) -> ParquetSink | TreeSink:
        if isinstance(self._held[0], TreeRows):
            return TreeSink(path, self._schema, level=_COMPRESSION_LEVEL)
        encoding = _dictionary_encoding() if self._memory.dictionaries else _PLAIN
        buffer = _DICTIONARY_BUFFER if self._memory.dictionaries else _PLAIN_BUFFER
        return ParquetSink(path, self._schema, level=_COMPRESSION_LEVEL, encoding=encoding, buffer=buffer)

    def _close_file(self) -> None:
        if self._file is None or self._path is None:
            return
        self._finished.append({"name": self._path.name} | self._file.finish())
        self._file, self._rows, self._groups = None, 0, 0

    def take(self) -> list[dict[str, Any]]:
        """Finish all files. Return name, rows, bytes and checksum of those finished since the last call, on disk."""
        if self._held:
            self._write_group()
        self._close_file()
        finished, self._finished = self._finished, []
        return finished

    def abandon(self) -> None:
        """Let go of the file that is being written: it is not whole."""
        if self._file is not None:
            self._file.abandon()
            self._file = None

    def write_empty(self) -> None:
        """Write a file without rows, so that a result without rows still has its columns."""
        write_parquet(self._schema.empty_table(), self._folder / self._next_name())


class EmbeddingWriter:
    """Makes columns of the embeddings of one worker, and writes them.

    Parameters
    ----------
    open_sink
        Makes the sink for rows of a schema.
    names
        The column name of each pattern vertex.
    order
        Matching order: the pattern vertex of each level.
    graph
        The graph, which knows the ids of the input.
    columns
        Names of the columns to write, None for all.
    limit
        Shared row limit.
    metadata
        Written into the schema, as JSON.

    Attributes
    ----------
    sink
        Takes the rows.
    rows
        The number of rows that were written.
    """

    def __init__(
        self,
        open_sink: Callable[[pa.Schema], RowSink],
        names: Sequence[str],
        order: Sequence[int],
        graph: Graph,
        *,
        columns: Sequence[str] | None,
        limit: RowLimit,
        metadata: dict[str, Any],
    ):
        import pyarrow as pa

        levels = {names[vertex]: level for level, vertex in enumerate(order)}
        self._levels = {name: levels[name] for name in (columns or names)}
        self._schema = pa.schema(
            [pa.field(name, graph.id_type, nullable=False) for name in self._levels],
            metadata={"longwall": json.dumps(metadata)},
        )
        self.sink, self._graph, self._limit = open_sink(self._schema), graph, limit
        self.rows = 0

    def write(self, table: EmbeddingTable) -> None:
        """Append the rows of a table of all levels, on the host, as far as the limit allows."""
        granted = self._limit.take(len(table))
        if granted:
            self.rows += granted
            self.sink.write(lambda: self._rows(table.sliced(0, granted)))

    def _rows(self, table: EmbeddingTable) -> pa.RecordBatch | TreeRows:
        """Return the rows of a table in the form in which they are written."""
        if self.sink.takes_trees and not self._graph.has_names:
            return TreeRows(table, tuple(self._levels.values()), self._graph.original_ids)
        return self._batch(table)

    def _batch(self, table: EmbeddingTable) -> pa.RecordBatch:
        import pyarrow as pa

        columns = [table.column(level, self._graph.original_ids) for level in self._levels.values()]
        return pa.RecordBatch.from_arrays([self._graph.as_ids(column) for column in columns], schema=self._schema)


class ExportContext(WorkerContext, Protocol):
    """What `Export` works with."""

    timer: StageTimer
    writer: EmbeddingWriter
    limit: RowLimit
    group_rows: int
    """Rows of a row group."""

    def fit(self, stage: Stage, most: int, work: Callable[[int], EmbeddingTable]) -> EmbeddingTable:
        """Do a piece of work that is as large as memory allows, `most` at most."""
        ...

    def near_limit(self, share: float) -> None:
        """Report which share of the limit is reached."""
        ...


@dataclass(frozen=True)
class Export(Stage):
    """Write the rows of a chunk as Parquet, as far as a limit allows.

    Attributes
    ----------
    level
        Number of levels of the rows: the stage's in the metrics.
    """

    level: int

    verb = "export"

    def describe(self) -> str:
        """See `Stage`."""
        return "export       every row"

    def run(self, chunk: EmbeddingTable, context: ExportContext) -> Iterable[Any]:
        """Hand the rows to the context's writer."""
        writer, before, begin = context.writer, context.writer.rows, 0
        with context.timer.time(self.level) as sample:
            while begin < len(chunk) and not context.limit.reached:
                most = min(context.group_rows, len(chunk) - begin)
                rows = context.fit(self, most, partial(_fetched, chunk, begin))
                writer.write(rows)
                begin += len(rows)
            sample.rows_in, sample.rows_out, sample.size = len(chunk), writer.rows - before, chunk.nbytes
        if (share := context.limit.share) is not None:
            context.near_limit(share)
        return ()


class MappingContext(WorkerContext, Protocol):
    """What `WriteMappings` works with."""

    rows_at_once: int
    """Rows that are written at once."""

    def write_rows(self, rows: NDArray[np.uint32]) -> None:
        """Write flat rows, uint32[columns, n]."""
        ...


@dataclass(frozen=True)
class WriteMappings(Stage):
    """Write the subgraphs of the mappings of a level, each once, as Parquet."""

    verb = "export"

    def describe(self) -> str:
        """See `Stage`."""
        return "export       each subgraph once, as Parquet files"

    def run(self, chunk: EmbeddingTable, context: MappingContext) -> Iterable[Any]:
        """Write the rows of a chunk."""
        for begin in range(0, len(chunk), context.rows_at_once):
            context.write_rows(chunk.sliced(begin, min(begin + context.rows_at_once, len(chunk))).columns())
        return ()


WRITE_LEVEL: tuple[Stage, ...] = (StoredRows(), WriteMappings())
"""A pass over the rows of a level that writes them."""


@cache
def _dictionary_encoding() -> dict[str, Any]:
    """Return Arrow's options for columns with dictionaries; its older versions have no limit of the rows of a page."""
    import pyarrow.parquet as pq

    limited = "max_rows_per_page" in signature(pq.write_table).parameters
    return _DICTIONARY | ({"max_rows_per_page": _PAGE_ROWS} if limited else {})


def _fetched(chunk: EmbeddingTable, begin: int, size: int) -> EmbeddingTable:
    """Return some rows, on the host."""
    return chunk.sliced(begin, begin + size).to(np)
