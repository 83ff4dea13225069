"""GAMMA's calls as a library: extend, filter and export embeddings in a program of one's own.

The fifth one, aggregate, is in :mod:`longwall.pipeline.embeddings.aggregation`.

Tables of any size: a call works chunk by chunk inside a memory budget and spills what does not fit. A table is never
changed: every call returns a new one; its files go when it is collected or closed, and when the program ends.
"""

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from longwall.pipeline.embeddings.embeddings import Embeddings, require_embeddings, require_function
from longwall.pipeline.embeddings.session import Access, Session
from longwall.stages import filtering
from longwall.stages.base import Stage
from longwall.stages.tables import (
    AllEdges,
    AllVertices,
    ExtendEdges,
    ExtendVertices,
    Filter,
    StoredRows,
    WriteRows,
)
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.pages.placement import EDGES_PAGE_SHARE
from longwall.storage.system.arguments import brief, wrong_type


def vertices(
    graph: Graph,
    engine: Literal["cpu", "cuda", "auto"] = "cpu",
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

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> longwall.vertices(karate, memory="64MiB")
    <longwall.Embeddings: 34 rows of 1 vertex>
    """
    # Extension by vertices reads lists where they are.
    session = Session(graph, engine, memory, spill, disk, device, access, cache_share=0.0)
    return Embeddings(session, session.collect(1, [AllVertices()]), "vertex")


def edges(
    graph: Graph,
    engine: Literal["cpu", "cuda", "auto"] = "cpu",
    *,
    memory: str | int | None = None,
    spill: str | Path = "spill",
    disk: str | int | None = None,
    device: str | int | None = None,
    access: Access = "auto",
) -> Embeddings:
    """Embeddings of one edge: every edge of the graph, once; parameters as in :func:`vertices`.

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> longwall.edges(karate)
    <longwall.Embeddings: 78 rows of 1 edge>
    """
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

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> pairs = longwall.extend_vertices(longwall.vertices(karate))
    >>> wedges = longwall.extend_vertices(pairs, adjacent_to=[0])
    >>> wedges
    <longwall.Embeddings: 1,056 rows of 3 vertices>
    >>> wedges.to_arrow().column_names
    ['v0', 'v1', 'v2']
    """
    require_embeddings(embeddings)
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

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> longwall.extend_edges(longwall.edges(karate))
    <longwall.Embeddings: 1,056 rows of 2 edges>
    """
    require_embeddings(embeddings)
    if embeddings.kind != "edge":
        raise InputError("extend_edges takes embeddings made of edges: start from longwall.edges(graph)")
    return _extended(embeddings, ExtendEdges(), embeddings.arrays.max_degree * 2 * embeddings.table.num_levels)


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

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> pairs = longwall.extend_vertices(longwall.vertices(karate))  # each edge both ways
    >>> longwall.filter(pairs, lambda columns, graph, xp: columns[0] < columns[1])
    <longwall.Embeddings: 78 rows of 2 vertices>
    """
    require_embeddings(embeddings)
    require_function("keep", keep)
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

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> longwall.export(longwall.edges(karate), "edges.parquet").name
    'edges.parquet'
    """
    from longwall.storage.parquet_files import RowGroups, new_file, whole_file

    require_embeddings(embeddings)
    target = new_file(path)
    with whole_file(target, embeddings.schema) as sink, RowGroups(sink.write) as groups:
        writing = WriteRows(embeddings.batch, embeddings.row_bytes, groups.add)
        embeddings.session.run([StoredRows(), writing], embeddings.table)
    return target


def _extended(embeddings: Embeddings, stage: Stage, most_candidates: int) -> Embeddings:
    session, table = embeddings.session, embeddings.table
    work = session.work_for(most_candidates)
    grown = session.collect(table.num_levels + 1, [StoredRows(), stage], table, work)
    return Embeddings(session, grown, embeddings.kind)
