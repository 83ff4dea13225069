"""The extension stage: a table in, the same table with one more level out."""

from typing import Any, NamedTuple

from longwall.kernels.interface.pages import Pages
from longwall.kernels.interface.workspaces import Searcher
from longwall.storage.tables.embedding_table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array


class Extended(NamedTuple):
    """The result of an extension.

    Attributes
    ----------
    rows
        The extended rows (rows without extension are compacted away).
    rest
        The rows that were not extended for want of room, None where there are none.
    begun
        If not 0, `rows` are of the first row alone, by vertices below this one; it is the first of the rest too.
    """

    rows: EmbeddingTable
    rest: EmbeddingTable | None
    begun: int = 0


def extend_planned(
    table: EmbeddingTable,
    searcher: Searcher,
    capacity: int,
    pages: Pages | None = None,
    first: int = 0,
    most: int | None = None,
) -> Extended:
    """Extend by the next level of the searcher's program, as far as there is room.

    Parameters
    ----------
    table
        Rows to extend.
    searcher
        The engine's workspace for the program.
    capacity
        Largest number of new rows.
    pages
        The pages of the graph that the engine reads; made ready for what the extension reads.
    first
        The first row is extended by vertices from this one on.
    most
        Largest number of rows that are looked at; None: all. What others read is not counted beforehand.
    """
    head = table if most is None else table.sliced(0, min(most, len(table)))
    rows = head.columns()
    if pages is not None:
        pages.prepare(table.num_levels, searcher.reads(rows, counting=False))
    result = searcher.extend_rows(rows, capacity, first)
    counts = result.counts
    if result.begun:
        return Extended(table.sliced(0, 1).extended(counts[:1], result.values), table, result.begun)
    if not result.waiting and head is table:
        return Extended(table.extended(counts, result.values), None)
    if result.leading or not result.waiting:
        done = len(head) - result.waiting
        extended = table.sliced(0, done).extended(counts[:done], result.values)
        return Extended(extended, table.sliced(done, len(table)))
    # `extended` drops rows without children, and those that wait alike.
    extended = head.extended(counts, result.values)
    if head is not table:
        counts = _padded(counts, len(table), table.xp)
    return Extended(extended, table.filtered(counts < 0))


def _padded(counts: Array, size: int, xp: Any) -> Array:
    """The counts with those of rows that were not looked at: negative ones."""
    padded = xp.full(size, -1, dtype=counts.dtype)
    padded[: counts.size] = counts
    return padded
