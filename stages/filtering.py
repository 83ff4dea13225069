"""The filtering stage: keep the rows for which a user's function holds, and compact back to the root."""

from collections.abc import Callable
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.tables.embedding_table import Columns, EmbeddingTable

Predicate = Callable[[Any, Any, Any], Any]


def filter_rows(table: EmbeddingTable, keep: Predicate, graph: Any) -> EmbeddingTable:
    """Keep the rows for which a function holds.

    Parameters
    ----------
    table
        A v-ET or an e-ET.
    keep
        Called as ``keep(columns, graph, xp)``: `columns[l]` is the array of level l, int64 and read-only, flattened
        when it is used; `xp` is numpy or cupy. Returns a bool array with one entry per row.
    graph
        Handed to `keep`.

    Raises
    ------
    InputError
        If `keep` returns anything else than one bool per row.
    """
    xp = table.xp
    mask = xp.asarray(keep(Columns(table), graph, xp))
    if mask.shape != (len(table),) or mask.dtype != bool:
        raise InputError(
            f"a filter must return a bool array of shape ({len(table)},), one entry per row; "
            f"it returned {mask.dtype} of shape {mask.shape}"
        )
    return table.filtered(mask)
