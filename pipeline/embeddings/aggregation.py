"""The call that groups embeddings, by pattern or by a key, and counts each group."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from longwall.kernels.host.patterns.pattern_codes import edges_text
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.embeddings.embeddings import Embeddings, require_embeddings, require_function
from longwall.pipeline.table import Table
from longwall.stages.aggregation.by_key import GROUP_BYTES, LAYOUT, MakeUserKeys, UserKey
from longwall.stages.aggregation.by_pattern import AddPatterns, MakePatternKeys, PatternTable, keys_at_once
from longwall.stages.aggregation.pattern_keys import LABEL_BYTES, PatternKeys
from longwall.stages.tables import StoredChunks, StoredRows
from longwall.storage.errors import InputError
from longwall.storage.system.arguments import require_type

if TYPE_CHECKING:
    import pyarrow as pa


def aggregate(
    embeddings: Embeddings,
    key: Callable[[Any, GraphArrays, Any], Any] | None = None,
    *,
    labelled: bool | None = None,
) -> Table:
    """Group the embeddings and count each group; rows that memory has no room for are sorted on disk.

    Parameters
    ----------
    embeddings
        A v-ET, grouped by the pattern that its vertices induce, or an e-ET, grouped by the pattern of its edges.
    key
        Group by this instead: ``key(columns, graph, xp)`` returns an array of integers, floating-point numbers or bools
        with one entry per row; `columns` and `graph` are as in :func:`filter`. It is called for parts of the rows, and
        only the columns that it asks for are read.
    labelled
        Whether patterns carry vertex labels; by default they do if the graph does.

    Returns
    -------
    Table
        Columns ``pattern`` (edge list), ``labels`` (null where unlabelled) and ``count``; or ``key``, ascending, and
        ``count``. It is not part of the memory budget, but has to fit what is left of it.

    Raises
    ------
    InputError
        If the arguments do not go together, or `key` returns something else.
    RunError
        If memory or disk do not suffice.

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> pairs = longwall.extend_vertices(longwall.vertices(karate))
    >>> wedges = longwall.extend_vertices(pairs, adjacent_to=[0])
    >>> for row in longwall.aggregate(wedges, labelled=False).select(["pattern", "count"]).to_pylist():
    ...     print(row)
    {'pattern': '0-1,0-2', 'count': 786}
    {'pattern': '0-1,0-2,1-2', 'count': 270}
    >>> degrees = longwall.aggregate(pairs, lambda columns, graph, xp: xp.diff(graph.indptr)[columns[0]])
    >>> degrees.slice(0, 2).to_pylist()  # ends of edges by their degree
    [{'key': 1, 'count': 1}, {'key': 2, 'count': 22}]
    """
    require_embeddings(embeddings)
    require_type("labelled", labelled, (bool, NoneType), "True or False")
    if key is not None:
        require_function("key", key)
        return Table(_count_keys(embeddings, UserKey(key)))
    wanted = embeddings.graph.has_labels if labelled is None else labelled
    if wanted and not embeddings.graph.has_labels:
        raise InputError("aggregate(labelled=True) needs a graph with labels")
    return Table(_count_patterns(embeddings, labelled=wanted))


def _count_patterns(embeddings: Embeddings, *, labelled: bool) -> "pa.Table":
    """Group by pattern: patterns, sorted, and counts."""
    import pyarrow as pa

    session, names = embeddings.session, embeddings.graph.stats.label_counts
    with session.pool.reserve(LABEL_BYTES * len(names) * labelled, "the labels of the graph"):
        keys = PatternKeys.of_table(embeddings.kind, embeddings.table.num_levels, names if labelled else None)
        with PatternTable(keys, session.pool.reserve) as patterns:
            if keys.fit:
                _sort_patterns(embeddings, keys, patterns)
            else:
                session.run([StoredRows(), AddPatterns(keys, patterns)], embeddings.table)
            found = patterns.result()
    return pa.table(
        {
            "pattern": pa.array([edges_text(edges) for (edges, _), _ in found], pa.string()),
            "labels": pa.array([labels for (_, labels), _ in found], pa.list_(pa.int32())),
            "count": pa.array([count for _, count in found], pa.int64()),
        }
    )


def _sort_patterns(embeddings: Embeddings, keys: PatternKeys, patterns: PatternTable) -> None:
    """Sort and count the keys of all rows, and bring the distinct ones to canonical patterns."""
    session, table = embeddings.session, embeddings.table
    most, size = keys_at_once(keys, session.work)
    making = [StoredRows(), MakePatternKeys(keys)]
    distinct = min(len(table), 1 << keys.bits)
    with closing(session.counted_keys(making, table, keys.layout, distinct, "grouping by pattern", size)) as blocks:
        for block_keys, counts in blocks:
            for begin in range(0, len(counts), most):
                patterns.add(keys, block_keys[..., begin : begin + most], counts[begin : begin + most])


def _count_keys(embeddings: Embeddings, key: UserKey) -> "pa.Table":
    """Group by a user's key: distinct keys, ascending, and counts."""
    import pyarrow as pa

    session, table = embeddings.session, embeddings.table
    making = [StoredChunks(), MakeUserKeys(key)]
    found, numbers = [], []
    with (
        ExitStack() as held,
        closing(session.counted_keys(making, table, LAYOUT, len(table), "grouping by a key", 0)) as blocks,
    ):
        for words, counts in blocks:
            held.enter_context(session.pool.reserve(GROUP_BYTES * len(words), "the table of groups"))
            found.append(pa.array(key.values(words)))
            numbers.append(pa.array(counts.copy()))
    key_type = pa.from_numpy_dtype(key.dtype or np.dtype(np.int64))
    return pa.table({"key": pa.chunked_array(found, key_type), "count": pa.chunked_array(numbers, pa.int64())})
