"""Unguided extension by one edge: every edge that touches an embedding (GAMMA, Definition 3.1).

This is the stage behind the library's call. A table goes in, tables come out, cut so that their arrays and all
temporaries fit a number of bytes. The engines have the kernel. An edge is coded by its ends: ``larger << 32 |
smaller``, int64.
"""

from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.stages.extension.candidates import Take, TooManyCandidates, at_once, most_candidates, rows_within
from longwall.storage.errors import InputError
from longwall.storage.tables.embedding_table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array

_MOST_VERTICES = 1 << 31  # whose edges have codes that are not negative


def all_edges(graph: GraphArrays, xp: Any, memory: int) -> Generator[EmbeddingTable, None, None]:
    """An e-ET of one level in parts of at most `memory` bytes: the code of every edge, ascending.

    Raises
    ------
    InputError
        If the graph has more vertices than codes can distinguish.
    """
    if graph.num_vertices > _MOST_VERTICES:
        raise InputError(f"tables of edges take graphs of at most {_MOST_VERTICES:,} vertices: use tables of vertices")
    step = max(memory // 48, 1)
    for first in range(0, graph.num_arcs, step):
        last = min(first + step, graph.num_arcs)
        owners = xp.searchsorted(graph.indptr, xp.arange(first, last), side="right")
        owners -= 1
        if graph.pages is not None:
            vertices = xp.arange(int(owners[0]), int(owners[-1]) + 1, dtype=xp.uint32)
            graph.pages.touch(0, [RowReads(vertices, NeighbourRange.ALL)])
        neighbours = graph.indices[first:last]
        smaller = neighbours < owners
        codes = owners[smaller]
        codes <<= 32
        codes |= neighbours[smaller]
        yield EmbeddingTable((codes,), (), xp)


def extend_by_edge(
    table: EmbeddingTable, graph: GraphArrays, engine: Engine, memory: int, take: Take = at_once
) -> Iterator[EmbeddingTable]:
    """Add a level with the edges that touch an embedding and are not part of it.

    Parameters
    ----------
    table
        An e-ET: edges as codes.
    graph
        The data graph, in arrays of the engine.
    engine
        Finds the edges.
    memory
        Bytes that each part of the result and all temporaries may take: five eighths for what the engine knows of the
        rows in work, an eighth for these rows, the rest for their new edges.
    take
        How each piece of the work is done.

    Yields
    ------
    EmbeddingTable
        The extended rows in order: each row once per new edge; see
        :class:`longwall.kernels.interface.search.EdgeExtender`.

    Raises
    ------
    TooManyCandidates
        If a single row has more new edges than fit.
    """
    if not len(table):
        return
    most = min(rows_within(memory // 2, table), len(table))
    extender = take(
        memory * 5 // 8, lambda less: engine.kernels.edge_extender(engine.device, graph, table.num_levels, most, less)
    )

    def window(begin: int, less: int) -> tuple[EmbeddingTable, Array]:
        rows = table.sliced(begin, min(begin + rows_within(less // 2, table), len(table)))
        columns = rows.columns()
        if graph.pages is not None:
            prepare = graph.pages.prepare if graph.pages.staged else graph.pages.touch
            prepare(table.num_levels, extender.reads(columns))
        return rows, columns

    def count(columns: Array, first: int, less: int) -> None:
        extender.count(columns, first, first + rows_within(less // 2, table))

    def part(rows: EmbeddingTable, first: int, less: int) -> tuple[EmbeddingTable, int]:
        # Where memory is short a row is tried with less than it may need, but it must fit what was promised.
        cut = extender.cut(first, most_candidates(less))
        if cut.number > most_candidates(memory):
            raise TooManyCandidates(cut.number)
        offsets, edges = extender.new_edges(first, cut)
        growing = rows.sliced(first, cut.last)
        if not cut.all_grow:
            return growing.extended(offsets[1:] - offsets[:-1], edges), cut.last
        return EmbeddingTable((*growing.values, edges), (*growing.offsets, offsets), growing.xp), cut.last

    begin = 0
    while begin < len(table):
        rows, columns = take(memory, partial(window, begin))
        first = 0
        while first < len(rows):
            if not extender.is_counted(columns, first):
                take(memory, partial(count, columns, first))
            extended, first = take(memory, partial(part, rows, first))
            yield extended
            del extended  # not kept while the next one is made
        begin += len(rows)


def edge_ends(codes: Array, xp: Any) -> tuple[Array, Array]:
    """Return the larger and the smaller end of edges, uint32 each."""
    return (codes >> 32).astype(xp.uint32), codes.astype(xp.uint32)  # 32 bits hold the lower half
