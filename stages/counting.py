"""The counting stage: what a table's rows lead to, without writing any further level."""

from collections.abc import Iterator
from typing import Any

from longwall.kernels.interface.frontier import NeighbourRange, RowReads
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import Pages
from longwall.kernels.interface.workspaces import Searcher
from longwall.storage.tables.embedding_table import EmbeddingTable


def count_planned(table: EmbeddingTable, searcher: Searcher, pages: Pages | None = None) -> int:
    """Count the embeddings below a table's rows; all later levels of the program are fused into one kernel.

    Parameters
    ----------
    table
        The rows.
    searcher
        The engine's workspace for the program.
    pages
        The pages of the graph that the engine reads; made ready for what the rows' own vertices read.
    """
    if not len(table):
        return 0
    rows = table.columns()
    if pages is not None:
        pages.prepare(table.num_levels, searcher.reads(rows, counting=True))
    return searcher.count_rows(rows)


def arc_reads(graph: GraphArrays, first: int, last: int, part: NeighbourRange, xp: Any) -> Iterator[RowReads]:
    """What kernels read that look at the rows of both ends of every edge: each owner's row, each neighbour's.

    Parameters
    ----------
    graph
        The data graph, in arrays of `xp`.
    first, last
        Range of arcs.
    part
        ALL, or SMALLER for kernels that only look at neighbours with smaller ids, and at those neighbours' ones.
    xp
        numpy or cupy.
    """
    vertex = int(xp.searchsorted(graph.indptr, first, side="right")) - 1
    beyond = int(xp.searchsorted(graph.indptr, last, side="left"))
    owners = xp.arange(vertex, beyond, dtype=xp.uint32)
    yield RowReads(owners, part)
    neighbours = graph.indices[first:last]
    if part == NeighbourRange.SMALLER:
        offsets = xp.clip(graph.indptr[vertex : beyond + 1], first, last) - first
        owner = EmbeddingTable((owners, neighbours), (offsets,), xp).column(0)
        neighbours = neighbours[neighbours < owner]
    yield RowReads(neighbours, part)
