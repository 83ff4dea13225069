"""Stages of the library's calls: rows of a table of any size in, rows of another one out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.stages.base import Stage, WorkerContext
from longwall.stages.extension.candidates import Take
from longwall.stages.extension.unguided_edges import all_edges, extend_by_edge
from longwall.stages.extension.unguided_vertices import all_vertices, extend_by_vertex
from longwall.stages.filtering import Predicate, filter_rows
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import EmbeddingTable

if TYPE_CHECKING:
    import pyarrow as pa

Made = TypeVar("Made")

ROW_BYTES, ROW_COLUMN_BYTES = 64, 56
"""Bytes of a row, and for each of its columns: flat, as int64 for the user or in original ids, being written."""


class CallContext(WorkerContext, Protocol):
    """What the stages of a call work with.

    Attributes
    ----------
    graph, xp, engine
        The graph where the engine reads it, the engine's arrays, and the engine.
    work
        Bytes that the temporaries of the call may take.
    take
        Does a piece of work, with less memory where it is short.
    """

    graph: GraphArrays
    xp: Any
    engine: Engine
    work: int
    take: Take

    def by_parts(self, chunk: EmbeddingTable, row_bytes: int, work: Callable[[EmbeddingTable], Made]) -> Iterator[Made]:
        """Do work for a chunk in parts, whose temporaries take a given number of bytes for each row."""
        ...


class AllVertices(Stage):
    """Every vertex, as rows of one column."""

    verb = "source"

    def describe(self) -> str:
        """Return the stage as text."""
        return "source       the vertices of the graph"

    def run(self, chunk: None, context: CallContext) -> Iterable[EmbeddingTable]:  # noqa: ARG002 - there are no roots
        """Yield the vertices."""
        return all_vertices(context.graph, context.xp, context.work)


class AllEdges(Stage):
    """Every edge, as rows of one column."""

    verb = "source"

    def describe(self) -> str:
        """Return the stage as text."""
        return "source       the edges of the graph"

    def run(self, chunk: None, context: CallContext) -> Iterable[EmbeddingTable]:  # noqa: ARG002 - there are no roots
        """Yield the edges."""
        return all_edges(context.graph, context.xp, context.work)


class StoredRows(Stage):
    """The rows of a table, chunk by chunk."""

    verb = "source"

    def describe(self) -> str:
        """Return the stage as text."""
        return "source       the rows of the level before"

    def run(self, chunk: ChunkedTable, context: CallContext) -> Iterator[EmbeddingTable]:  # noqa: ARG002 - a `Stage`
        """Yield the chunks of a table."""
        with closing(chunk.stream()) as chunks:
            yield from chunks


@dataclass(frozen=True)
class UnreadChunk:
    """A chunk of a table that is read when it is known which columns are wanted.

    Attributes
    ----------
    table, number
        Where it is.
    """

    table: ChunkedTable
    number: int

    @property
    def num_levels(self) -> int:
        """Number of columns."""
        return self.table.num_levels

    def rows(self, levels: Sequence[int] | None) -> AbstractContextManager[EmbeddingTable]:
        """Read what the columns of some levels need, by default of all; it is in memory while the context is open."""
        return self.table.chunk(self.number, levels)


class StoredChunks(Stage):
    """The chunks of a table, which the next stage reads."""

    verb = "source"

    def describe(self) -> str:
        """Return the stage as text."""
        return "source       the rows of the level before, by the columns that are wanted"

    def run(self, chunk: ChunkedTable, context: CallContext) -> Iterator[UnreadChunk]:  # noqa: ARG002 - a `Stage`
        """Yield the chunks of a table."""
        return (UnreadChunk(chunk, number) for number in range(chunk.num_chunks))


@dataclass(frozen=True)
class ExtendVertices(Stage):
    """Extend every row by one vertex (GAMMA, Definition 3.1).

    Attributes
    ----------
    adjacent_to
        Columns that the new vertex must all be adjacent to; None: any one of them.
    """

    adjacent_to: tuple[int, ...] | None

    verb = "extend"

    def run(self, chunk: EmbeddingTable, context: CallContext) -> Iterable[EmbeddingTable]:
        """Yield the extended rows."""
        columns = None if self.adjacent_to is None else list(self.adjacent_to)
        return extend_by_vertex(chunk.to(context.xp), context.graph, columns, context.work, context.take)


class ExtendEdges(Stage):
    """Extend every row by one adjacent edge (GAMMA, Definition 3.1)."""

    verb = "extend"

    def run(self, chunk: EmbeddingTable, context: CallContext) -> Iterable[EmbeddingTable]:
        """Yield the extended rows."""
        return extend_by_edge(chunk.to(context.xp), context.graph, context.engine, context.work, context.take)


@dataclass(frozen=True)
class Filter(Stage):
    """Keep the rows for which a user's function holds.

    Attributes
    ----------
    keep
        The function; see :func:`longwall.stages.filtering.filter_rows`.
    """

    keep: Predicate

    verb = "filter"

    def run(self, chunk: EmbeddingTable, context: CallContext) -> Iterator[EmbeddingTable]:
        """Yield the rows that are kept."""
        row_bytes = ROW_BYTES + ROW_COLUMN_BYTES * chunk.num_levels
        return context.by_parts(chunk, row_bytes, lambda part: filter_rows(part, self.keep, context.graph))


@dataclass(frozen=True)
class Collect(Stage):
    """Append rows to a table.

    Attributes
    ----------
    table
        Where they go.
    """

    table: ChunkedTable

    verb = "export"

    def run(self, chunk: EmbeddingTable, context: CallContext) -> Iterable[Any]:  # noqa: ARG002 - a `Stage`
        """Append the rows, on the host."""
        if len(chunk):
            self.table.append(chunk.to(np))
        return ()


def host_parts(chunk: EmbeddingTable, row_bytes: int, memory: int) -> Iterator[EmbeddingTable]:
    """Cut a chunk on the host into parts, whose temporaries take a given number of bytes for each row."""
    rows = max(memory // row_bytes, 1)
    for begin in range(0, len(chunk), rows):
        yield chunk.sliced(begin, min(begin + rows, len(chunk)))


@dataclass(frozen=True)
class WriteRows(Stage):
    """Write rows as record batches of Arrow.

    Attributes
    ----------
    batch, row_bytes
        Makes a batch of some rows; bytes that it takes for each.
    write
        Takes the batches.
    """

    batch: Callable[[EmbeddingTable], pa.RecordBatch]
    row_bytes: int
    write: Callable[[pa.RecordBatch], None]

    verb = "export"

    def run(self, chunk: EmbeddingTable, context: CallContext) -> Iterable[Any]:
        """Write the rows of a chunk, part by part."""
        for part in host_parts(chunk, self.row_bytes, context.work):
            self.write(self.batch(part))
        return ()
