"""GAMMA's five calls as a library: extend, aggregate, filter and export embeddings in a program of one's own.

Tables of any size: a call works chunk by chunk inside a memory budget and spills what does not fit. A table is never
changed: every call returns a new one; its files go when it is collected or closed, and when the program ends.
"""

import operator
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.embeddings.session import Access, Session
from longwall.stages import filtering
from longwall.stages.aggregation import by_key, by_pattern
from longwall.stages.base import Stage
from longwall.stages.extension import unguided_edges
from longwall.stages.tables import (
    ROW_BYTES,
    ROW_COLUMN_BYTES,
    AllEdges,
    AllVertices,
    ExtendEdges,
    ExtendVertices,
    Filter,
    StoredRows,
)
from longwall.storage.arguments import brief, require_type, wrong_type
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.pages.placement import EDGES_PAGE_SHARE
from longwall.storage.paths import require_path, user_path
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import Columns, EmbeddingTable, NotRead

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Embeddings:
    """An embedding table together with the graph that it embeds into; a context manager that closes it.

    Attributes
    ----------
    session
        The budgets and the engine, shared with the tables that this one grew from.
    table
        A v-ET (one vertex per column) or an e-ET (one edge per column), in internal vertex ids, in chunks.
    kind
        ``"vertex"`` or ``"edge"``.
    """

    session: Session
    table: ChunkedTable
    kind: Literal["vertex", "edge"]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def graph(self) -> Graph:
        """The data graph."""
        return self.session.graph

    @property
    def arrays(self) -> GraphArrays:
        """The graph's arrays where the engine reads them."""
        return self.session.arrays

    @property
    def names(self) -> list[str]:
        """Names of the columns that users see: ``v0``, ``v1``, ... or ``e0_u``, ``e0_v``, ``e1_u``, ..."""
        numbers = range(self.table.num_levels)
        if self.kind == "vertex":
            return [f"v{i}" for i in numbers]
        return [f"e{i}_{end}" for i in numbers for end in "uv"]

    @property
    def schema(self) -> "pa.Schema":
        """Arrow schema of `batches` and of exported files: int64 columns."""
        import pyarrow as pa

        return pa.schema([pa.field(name, pa.int64()) for name in self.names])

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """The rows in parts, as Arrow record batches in original vertex ids (see `schema`)."""
        import pyarrow as pa

        rows = max(self.session.work // (ROW_BYTES + ROW_COLUMN_BYTES * len(self.names)), 1)
        with self.session.pool.reserve(self.session.work, "work space"), closing(self.table.stream()) as chunks:
            for chunk in chunks:
                for begin in range(0, len(chunk), rows):
                    part = chunk.sliced(begin, min(begin + rows, len(chunk)))
                    columns = (self.graph.original_ids[ids] for ids in self._vertices(part))
                    yield pa.record_batch([pa.array(column) for column in columns], schema=self.schema)

    def _vertices(self, part: EmbeddingTable) -> Iterator[Any]:
        """The columns in internal vertex ids."""
        for level in range(part.num_levels):
            if self.kind == "vertex":
                yield part.column(level)
            else:
                yield from unguided_edges.edge_ends(part.column(level), part.xp)

    def to_arrow(self) -> "pa.Table":
        """All rows as an Arrow table in original vertex ids; it is not part of the memory budget.

        Returns
        -------
        pyarrow.Table
            int64 columns ``v0``, ``v1``, ... of a v-ET; ``e0_u``, ``e0_v``, ``e1_u``, ... of an e-ET.
        """
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches()), self.schema)

    def to_pandas(self) -> Any:
        """All rows as a pandas data frame in original vertex ids; it is not part of the memory budget."""
        return self.to_arrow().to_pandas()

    def close(self) -> None:
        """Remove the rows, with their files; happens by itself when the object is collected."""
        self.table.drop()

    def __enter__(self) -> "Embeddings":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def vertices(
    graph: Graph,
    engine: str = "cpu",
    *,
    memory: str | int | None = None,
    spill: str | Path = "spill",
    disk: str | int | None = None,
    device: str | int | None = None,
    access: Access = "auto",
) -> Embeddings:
    """Embeddings of one vertex: every vertex of the graph.

    Parameters
    ----------
    graph
        The data graph.
    engine
        ``"cpu"``, ``"cuda"`` or ``"auto"``: where extensions and filters are computed.
    memory
        Host memory that the graph and all tables that grow from this one may take: a size such as ``"4GiB"``, or
        bytes. By default, and with ``"auto"``, a share of what is free.
    spill
        Folder for what does not fit; nothing is left in it.
    disk
        Bytes of files there, as for `memory`.
    device
        With ``"cuda"``, memory of the GPU that the graph, or copies of its hot pages, and all temporaries may take, as
        for `memory`; by default most of what is free.
    access
        With ``"cuda"``, where the graph is: ``"auto"`` (on the GPU if it fits well, otherwise adaptive),
        ``"resident"``, ``"adaptive"``, ``"managed"`` or ``"zero-copy"``; as `memory.access` of a config.

    Raises
    ------
    InputError
        If the engine does not work here, a size is none, or the graph does not fit the GPU so.
    RunError
        If the graph does not fit the memory.
    """
    # Extension by vertices reads lists where they are.
    session = Session(graph, engine, memory, spill, disk, device, access, cache_share=0.0)
    return Embeddings(session, session.collect(1, [AllVertices()]), "vertex")


def edges(
    graph: Graph,
    engine: str = "cpu",
    *,
    memory: str | int | None = None,
    spill: str | Path = "spill",
    disk: str | int | None = None,
    device: str | int | None = None,
    access: Access = "auto",
) -> Embeddings:
    """Embeddings of one edge: every edge of the graph, once; parameters as in :func:`vertices`."""
    session = Session(graph, engine, memory, spill, disk, device, access, cache_share=EDGES_PAGE_SHARE)
    return Embeddings(session, session.collect(1, [AllEdges()]), "edge")


def extend_vertices(embeddings: Embeddings, adjacent_to: Sequence[int] | None = None) -> Embeddings:
    """Extend every embedding by one vertex (GAMMA, Definition 3.1).

    Parameters
    ----------
    embeddings
        A v-ET.
    adjacent_to
        Columns that the new vertex must all be adjacent to; by default any one of the matched vertices
        will do.

    Returns
    -------
    Embeddings
        One row per embedding and new vertex; a vertex is never matched twice in a row.
    """
    _require_embeddings(embeddings)
    if embeddings.kind != "vertex":
        raise InputError("extend_vertices takes embeddings made of vertices: start from longwall.vertices(graph)")
    columns = embeddings.table.num_levels
    wanted = None if adjacent_to is None else _column_numbers(adjacent_to, columns)
    lists = columns if wanted is None else 1
    return _extended(embeddings, ExtendVertices(wanted), embeddings.arrays.max_degree * lists)


def _column_numbers(adjacent_to: Sequence[int], columns: int) -> tuple[int, ...]:
    try:
        wanted = tuple(operator.index(column) for column in adjacent_to)
    except TypeError:
        raise wrong_type("adjacent_to", adjacent_to, "a list of the numbers of columns, such as [0]") from None
    if not wanted:
        raise InputError("adjacent_to: the list is empty; name at least one column, such as [0]")
    for column in wanted:
        if not 0 <= column < columns:
            raise InputError(f"adjacent_to: there is no column {brief(column)}, only columns 0 to {columns - 1}")
    return wanted


def _require_embeddings(embeddings: object) -> None:
    expected = "a longwall.Embeddings, as longwall.vertices(graph) or longwall.edges(graph) returns"
    require_type("embeddings", embeddings, Embeddings, expected)


def _require_function(name: str, function: object) -> None:
    if not callable(function):
        raise wrong_type(name, function, "a function of (columns, graph, xp)")


def extend_edges(embeddings: Embeddings) -> Embeddings:
    """Extend every embedding by one adjacent edge (GAMMA, Definition 3.1).

    Parameters
    ----------
    embeddings
        An e-ET.

    Returns
    -------
    Embeddings
        One row per embedding and new edge; the same set of edges appears once per order in which it grew.
    """
    _require_embeddings(embeddings)
    if embeddings.kind != "edge":
        raise InputError("extend_edges takes embeddings made of edges: start from longwall.edges(graph)")
    return _extended(embeddings, ExtendEdges(), embeddings.arrays.max_degree * 2 * embeddings.table.num_levels)


def aggregate(
    embeddings: Embeddings,
    key: Callable[[Any, GraphArrays, Any], Any] | None = None,
    *,
    labelled: bool | None = None,
) -> "pa.Table":
    """Group the embeddings and count each group.

    Parameters
    ----------
    embeddings
        A v-ET, grouped by the pattern that its vertices induce, or an e-ET, grouped by the pattern of its edges.
    key
        Group by this instead: ``key(columns, graph, xp)`` returns an array of integers, floating-point numbers or bools
        with one entry per row; `columns` and `graph` are as in :func:`filter`. It is called for parts of the rows, and
        only the columns that it asks for are read. Keys that memory has no room for are sorted on disk.
    labelled
        Whether patterns carry vertex labels; by default they do if the graph does.

    Returns
    -------
    pyarrow.Table
        Columns ``pattern`` (edge list), ``labels`` (null where unlabelled) and ``count``; or ``key``, ascending, and
        ``count``. It is not part of the memory budget, but has to fit what is left of it.

    Raises
    ------
    InputError
        If the arguments do not go together, or `key` returns something else.
    RunError
        If memory or disk do not suffice.
    """
    import pyarrow as pa

    _require_embeddings(embeddings)
    require_type("labelled", labelled, (bool, NoneType), "True or False")
    if key is not None:
        _require_function("key", key)
        return _count_by(embeddings, key)
    wanted = embeddings.graph.has_labels if labelled is None else labelled
    if wanted and not embeddings.graph.has_labels:
        raise InputError("aggregate(labelled=True) needs a graph with labels")
    session, levels, of_vertices = embeddings.session, embeddings.table.num_levels, embeddings.kind == "vertex"
    encode = by_pattern.vertex_codes if of_vertices else by_pattern.edge_codes
    if of_vertices:
        by_pattern.require_few(levels)
    codes = _codes(embeddings, lambda part: encode(part, session.arrays, labelled=wanted))
    found = (by_pattern.vertex_patterns if of_vertices else by_pattern.edge_patterns)(codes, levels)
    return pa.table(
        {
            "pattern": pa.array([",".join(f"{u}-{v}" for u, v in code) for (code, _), _ in found], pa.string()),
            "labels": pa.array([labels for (_, labels), _ in found], pa.list_(pa.int32())),
            "count": pa.array([count for _, count in found], pa.int64()),
        }
    )


def filter(embeddings: Embeddings, keep: filtering.Predicate) -> Embeddings:  # noqa: A001 - GAMMA's name
    """Keep the embeddings for which a function holds.

    Parameters
    ----------
    embeddings
        A v-ET or an e-ET.
    keep
        ``keep(columns, graph, xp)`` returns a bool array with one entry per row; `columns[i]` is the array of
        column i in internal ids, always int64: vertices of a v-ET; edges of an e-ET by their ends, as
        ``larger << 32 | smaller``. `graph` has `indptr`, `indices` and `labels`, `xp` is numpy or cupy.
        It is called for parts of the rows, and only the columns that it asks for are made. NumPy arrays that it
        gets are read-only.
    """
    _require_embeddings(embeddings)
    _require_function("keep", keep)
    session, table = embeddings.session, embeddings.table
    return Embeddings(session, session.collect(table.num_levels, [StoredRows(), Filter(keep)], table), embeddings.kind)


def export(embeddings: Embeddings, path: str | Path) -> Path:
    """Write the embeddings as a Parquet file in original vertex ids; it appears whole or not at all.

    Parameters
    ----------
    embeddings
        A v-ET or an e-ET.
    path
        The file; it must not exist.

    Raises
    ------
    InputError
        If the file exists.
    """
    import pyarrow as pa

    from longwall.storage.parquet_files import ParquetSink

    _require_embeddings(embeddings)
    require_path("path", path, "the path of a Parquet file")
    target = user_path(path)
    if target.exists():
        raise InputError(f"{target} exists: choose another name or remove it")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} does not exist: create it first")
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.partial")
    try:
        with ParquetSink(partial, embeddings.schema) as sink:
            for group in _row_groups(embeddings.batches()):
                sink.write(pa.Table.from_batches(group))
        partial.rename(target)
    except OSError as error:
        raise RunError(f"{target}: the file could not be written ({error.strerror or error})") from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def _row_groups(batches: "Iterator[pa.RecordBatch]") -> "Iterator[list[pa.RecordBatch]]":
    """Put small batches together, to no more rows than the largest batch so far has."""
    group: list[pa.RecordBatch] = []
    rows = most = 0
    for batch in batches:
        most = max(most, batch.num_rows)
        if rows + batch.num_rows > most and group:
            yield group
            group, rows = [], 0
        group.append(batch)
        rows += batch.num_rows
    if group:
        yield group


def _extended(embeddings: Embeddings, stage: Stage, most_candidates: int) -> Embeddings:
    session, table = embeddings.session, embeddings.table
    work = session.work_for(most_candidates)
    grown = session.collect(table.num_levels + 1, [StoredRows(), stage], table, work)
    return Embeddings(session, grown, embeddings.kind)


def _codes(embeddings: Embeddings, encode: Callable[[EmbeddingTable], by_pattern.Codes]) -> by_pattern.Codes:
    """Count the rows by code; each distinct code is reserved."""
    session, levels = embeddings.session, embeddings.table.num_levels
    code_bytes = by_pattern.CODE_BYTES + by_pattern.CODE_COLUMN_BYTES * levels
    row_bytes = by_pattern.ROW_BYTES + by_pattern.ROW_COLUMN_BYTES * levels + code_bytes
    codes: by_pattern.Codes = by_pattern.Codes()
    with session.at_work(), closing(embeddings.table.stream()) as chunks:
        held = session.pool.reserve(0, "the table of distinct codes")
        try:
            for chunk in chunks:
                for found in session.by_parts(chunk, row_bytes, encode):
                    codes.update(found)
                    held.release()
                    held = session.pool.reserve(code_bytes * len(codes), "the table of distinct codes")
        finally:
            held.release()
    return codes


def _count_by(embeddings: Embeddings, key: Callable[[Any, GraphArrays, Any], Any]) -> "pa.Table":
    """Group by a user's key: distinct keys, ascending, and counts. Only columns that were asked for before are read."""
    import pyarrow as pa

    session, table = embeddings.session, embeddings.table
    last = table.num_levels - 1
    row_bytes = ROW_BYTES + ROW_COLUMN_BYTES * table.num_levels
    touched: set[int] = set()

    def keys_of(part: EmbeddingTable) -> Any:
        columns = Columns(part)
        keys = session.xp.asarray(key(columns, session.arrays, session.xp))
        if keys.shape != (len(part),):
            raise InputError(f"a key must return an array of shape ({len(part)},), not {keys.shape}")
        touched.update(columns.touched)
        return keys

    with session.key_sorter(by_key.LAYOUT, len(table), "grouping by a key") as sorter, ExitStack() as held:
        groups = by_key.Grouping(sorter, session.xp)
        with session.at_work():
            for number in range(table.num_chunks):
                done = 0
                for levels in ((sorted(touched) or [last]) if number else None, None):
                    with suppress(NotRead), table.chunk(number, levels) as chunk:
                        for keys in session.by_parts(chunk.sliced(done, len(chunk)), row_bytes, keys_of):
                            groups.add(keys)
                            done += len(keys)
                        break
        found, counts = [], []
        with session.at_work(0):
            for block_keys, block_counts in groups.blocks():
                held.enter_context(session.pool.reserve(by_key.GROUP_BYTES * len(block_keys), "the table of groups"))
                found.append(pa.array(block_keys))
                counts.append(pa.array(block_counts))
    key_type = pa.from_numpy_dtype(groups.dtype or np.dtype(np.int64))
    return pa.table({"key": pa.chunked_array(found, key_type), "count": pa.chunked_array(counts, pa.int64())})
