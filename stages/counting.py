"""The counting stage: what a table's rows lead to, without writing any further level."""

from longwall.kernels.engine import Searcher
from longwall.storage.tables.table import EmbeddingTable


def count_planned(table: EmbeddingTable, searcher: Searcher) -> int:
    """Count the embeddings below a table's rows; all later levels of the program are fused into one kernel."""
    return searcher.count_rows(table.columns()) if len(table) else 0
