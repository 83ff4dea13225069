"""The extension stage: a table in, the same table with one more level out."""

from longwall.kernels.engine import Pages, Searcher
from longwall.storage.tables.table import EmbeddingTable


def extend_planned(
    table: EmbeddingTable, searcher: Searcher, capacity: int, pages: Pages | None = None
) -> tuple[EmbeddingTable, EmbeddingTable | None]:
    """Extend by the next level of the searcher's program, as far as there is room.

    Parameters
    ----------
    table
        Rows to extend.
    searcher
        An engine's scratch for the program.
    capacity
        Largest number of new rows; at least the largest degree of the graph.
    pages
        The pages of the graph that the engine reads; made ready for what the extension reads.

    Returns
    -------
    extended : EmbeddingTable
        The extended rows (rows without extension are compacted away).
    rest : EmbeddingTable or None
        The rows that were not extended for want of room.
    """
    rows = table.columns()
    if pages is not None:
        pages.prepare(table.num_levels, searcher.reads(rows, counting=False))
    result = searcher.extend_rows(rows, capacity)
    counts, waiting = result.counts, result.counts < 0
    done = int(table.xp.count_nonzero(~waiting))
    if done == len(table):
        return table.extended(counts, result.values), None
    if not bool(waiting[:done].any()):  # the leading rows
        extended = table.sliced(0, done).extended(counts[:done], result.values)
        return extended, table.sliced(done, len(table))
    # `extended` drops rows without children, and those that wait alike.
    return table.extended(table.xp.maximum(counts, 0), result.values), table.filtered(waiting)
