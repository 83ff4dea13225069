"""The extension stage: a table in, the same table with one more level out."""

from longwall.kernels.engine import Searcher
from longwall.storage.tables.table import EmbeddingTable


def extend_planned(
    table: EmbeddingTable, searcher: Searcher, capacity: int
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

    Returns
    -------
    extended : EmbeddingTable
        The extended rows (rows without extension are compacted away).
    rest : EmbeddingTable or None
        The rows that were not extended for want of room.
    """
    result = searcher.extend_rows(table.columns(), capacity)
    done = result.done
    whole = done == len(table)
    extended = (table if whole else table.sliced(0, done)).extended(result.counts, result.values)
    return extended, None if whole else table.sliced(done, len(table))
