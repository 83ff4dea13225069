"""The embeddings of frequent patterns as Parquet: each subgraph once, in original vertex ids."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from longwall.kernels.dfs_code import restrictions
from longwall.pipeline.context import RunContext
from longwall.pipeline.frequent import FrequentPatterns
from longwall.pipeline.frequent_plan import FrequentPlan
from longwall.storage.tables.chunked_table import ChunkedTable

_ROWS_AT_ONCE = 1 << 20
_COPIES = 4  # of a column of ids: as they are flattened, gathered, translated and encoded


def write_embeddings(
    found: FrequentPatterns,
    numbers: NDArray[np.int64],
    table: ChunkedTable,
    plan: FrequentPlan,
    context: RunContext,
) -> None:
    """Write the embeddings of a level to ``embeddings-<edges>.parquet``.

    The columns are `pattern`, the row of the pattern in ``patterns.parquet``, and `v0`, `v1`, ... for the vertices of
    the largest pattern that the config allows; null beyond those of the pattern.

    Parameters
    ----------
    found, table
        A level: its patterns, and their mappings.
    numbers : int64[p]
        The row of each pattern in ``patterns.parquet``, -1 where its embeddings are not wanted.
    plan, context
        The run.
    """
    width, ids = plan.max_vertices, context.graph.original_ids
    _, _, columns = found.patterns.vertices
    sizes = found.patterns.sizes
    symmetric = (numbers >= 0) & (found.automorphisms > 1)
    wanted = [
        restrictions(code) if several else [] for code, several in zip(found.patterns.codes, symmetric, strict=True)
    ]
    schema = pa.schema([("pattern", pa.int64()), *((f"v{vertex}", pa.int64()) for vertex in range(width))])
    path = context.results / f"embeddings-{found.patterns.num_edges:05}.parquet"
    rows_at_once = max(min(_ROWS_AT_ONCE, context.accounts.host.free // 2 // (8 * _COPIES * (width + 1))), 1)
    context.observer.phase("writing embeddings", len(table), "embeddings")
    with (
        context.accounts.host.book(8 * _COPIES * (width + 1) * rows_at_once, "embeddings to write"),
        pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as file,
    ):
        for chunk in table.stream():
            for begin in range(0, len(chunk), rows_at_once):
                rows = chunk.sliced(begin, min(begin + rows_at_once, len(chunk))).columns()
                kept = _one_of_each(rows, numbers, columns, wanted)
                rows = rows[:, kept]
                patterns = rows[0].astype(np.int64)
                arrays = [pa.array(numbers[patterns])]
                for vertex in range(width):
                    there = sizes[patterns] > vertex
                    place = columns[patterns, min(vertex, columns.shape[1] - 1)]
                    values = ids[rows[np.where(there, place, 0), np.arange(rows.shape[1])] * there]
                    arrays.append(pa.array(values, mask=~there))
                file.write_table(pa.table(arrays, schema=schema))
                context.observer.advance(kept.size)


def _one_of_each(
    rows: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    columns: NDArray[np.int32],
    wanted: list[list[tuple[int, int]]],
) -> NDArray[np.bool_]:
    """Whether a row is wanted, and the one of its subgraph's mappings that is written: bool[rows]."""
    kept = np.ones(rows.shape[1], np.bool_)
    bounds = [0, *(np.flatnonzero(np.diff(rows[0])) + 1).tolist(), rows.shape[1]]
    for begin, end in pairwise(bounds):
        pattern = int(rows[0, begin])
        some = slice(begin, end)
        kept[some] = numbers[pattern] >= 0
        for first, second in wanted[pattern]:
            kept[some] &= rows[columns[pattern, first], some] < rows[columns[pattern, second], some]
    return kept
