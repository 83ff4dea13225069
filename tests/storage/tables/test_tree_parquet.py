"""Files of prefix trees, as pyarrow and polars read them, against the rows of the trees."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longwall.storage.ingest.tables.thrift import BINARY, INT64, LIST, STRUCT, TRUE, Cursor, encoded
from longwall.storage.tables import tree_parquet
from longwall.storage.tables.embedding_table import EmbeddingTable
from longwall.storage.tables.parquet_rows import parquet_batches
from longwall.storage.tables.tree_parquet import TreeRows, TreeSink

Rows = list[tuple[int, ...]]
VERTICES = 300


def tree_of(rows: Rows, levels: int) -> EmbeddingTable:
    """Make a table of rows in which equal prefixes that stand together are one node."""
    paths, offsets = [rows], list[Any]()
    for _ in range(levels - 1):
        groups = [(prefix, len(list(members))) for prefix, members in groupby(paths[0], lambda path: path[:-1])]
        offsets.insert(0, np.cumsum([0, *(size for _, size in groups)]).astype(np.int64))
        paths.insert(0, [prefix for prefix, _ in groups])
    return EmbeddingTable(tuple(np.array([path[-1] for path in level], np.uint32) for level in paths), tuple(offsets))


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Rows], int]:
    """Draw the rows of some tables, with runs of all lengths around 8, from which on runs are not bit-packed."""
    levels = draw(st.integers(1, 4))
    vertex = st.integers(0, draw(st.sampled_from([1, 3, VERTICES - 1])))
    table = st.lists(
        st.tuples(st.tuples(*[vertex] * (levels - 1)), st.lists(vertex, min_size=1, max_size=30)),
        min_size=1,
        max_size=12,
    )
    drawn = draw(st.lists(table, min_size=1, max_size=3))
    return [[(*prefix, last) for prefix, lasts in rows for last in lasts] for rows in drawn], levels


def schema_of(columns: int, dtype: str) -> pa.Schema:
    fields = [pa.field(f"v{column}", getattr(pa, dtype)(), nullable=False) for column in range(columns)]
    return pa.schema(fields, metadata={"longwall": '{"pattern": "triangle"}'})


@settings(deadline=None, max_examples=150)
@given(
    drawn=trees(),
    order=st.permutations(range(4)),
    columns=st.integers(1, 4),
    dtype=st.sampled_from(["int64", "uint64"]),
    seed=st.integers(0, 100),
    page_rows=st.sampled_from([3, 8, 24, 1 << 17]),
    numbers=st.sampled_from([1, 4, 1 << 17]),
)
def test_files_have_the_rows_of_trees(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[list[Rows], int],
    order: list[int],
    columns: int,
    dtype: str,
    seed: int,
    page_rows: int,
    numbers: int,
) -> None:
    tables, levels = drawn
    ids = np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, VERTICES, dtype, endpoint=True)
    if dtype == "int64":
        ids[::3] *= -1
    wanted = tuple(level for level in order if level < levels)[:columns]
    schema = schema_of(len(wanted), dtype)
    parts = [TreeRows(tree_of(rows, levels), wanted, ids) for rows in tables]
    path = tmp_path_factory.mktemp("trees") / "part.parquet"
    with (
        patch.object(tree_parquet, "_PAGE_ROWS", page_rows),
        patch.object(tree_parquet, "_PLAIN_ROWS", page_rows),
        patch.object(tree_parquet, "MOST_NUMBERS", numbers),
    ):
        sink = TreeSink(path, schema, level=1)
        sink.write(parts)
        sink.write(parts[-1:])
        facts = sink.finish()
    rows = [tuple(int(ids[row[level]]) for level in wanted) for table in [*tables, tables[-1]] for row in table]
    assert facts["rows"] == len(rows)
    assert facts["bytes"] == path.stat().st_size
    found = pq.read_table(path, page_checksum_verification=True)
    assert found.schema.equals(schema, check_metadata=True)
    assert [tuple(row.values()) for row in found.to_pylist()] == rows
    with path.open("rb") as file:
        assert pa.Table.from_batches(list(parquet_batches(file, "part"))).equals(found)
    metadata, last = pq.read_metadata(path), tables[-1]
    assert metadata.num_row_groups == 2
    for column, level in enumerate(wanted):
        values = [int(ids[row[level]]) for row in last]
        statistics = metadata.row_group(1).column(column).statistics
        assert (statistics.min, statistics.max, statistics.null_count) == (min(values), max(values), 0)
        assert metadata.row_group(1).column(column).num_values == len(values)


@pytest.mark.parametrize("distinct", [1, 2, 255, 256, 257, (1 << 17) - 1, 1 << 17, (1 << 17) + 1])
def test_dictionaries_have_at_most_a_megabyte(tmp_path: Path, distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    values = rng.permutation(np.concatenate([np.arange(distinct), rng.integers(0, distinct, 1000)])).astype(np.uint32)
    ids, rows = np.arange(distinct) * 3 - 7, values.size
    table = EmbeddingTable(
        (values[::2].copy(), values), (np.minimum(np.arange(0, rows + 2, 2), rows)[: values[::2].size + 1],)
    )
    sink = TreeSink(tmp_path / "part.parquet", schema_of(2, "int64"), level=1)
    sink.write([TreeRows(table, (0, 1), ids)])
    sink.finish()
    found = pq.read_table(tmp_path / "part.parquet", page_checksum_verification=True)
    np.testing.assert_array_equal(found["v1"].to_numpy(), ids[values])
    np.testing.assert_array_equal(found["v0"].to_numpy(), ids[np.repeat(values[::2], 2)[:rows]])
    encodings = pq.read_metadata(tmp_path / "part.parquet").row_group(0).column(1).encodings
    assert ("RLE_DICTIONARY" in encodings) == (distinct <= 1 << 17)


def test_other_readers_read_the_files(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(3)
    rows = sorted({tuple(row) for row in rng.integers(0, 40, (20_000, 3)).tolist()})
    sink = TreeSink(tmp_path / "part.parquet", schema_of(3, "uint64"), level=1)
    ids = np.arange(40, dtype=np.uint64) + np.uint64(2**64 - 40)
    for begin in range(0, len(rows), 7000):
        sink.write([TreeRows(tree_of(rows[begin : begin + 7000], 3), (0, 1, 2), ids)])
    sink.finish()
    wanted = [tuple(int(ids[vertex]) for vertex in row) for row in rows]
    assert polars.read_parquet(tmp_path / "part.parquet").rows() == wanted
    few = polars.scan_parquet(tmp_path / "part.parquet").filter(polars.col("v0") == int(ids[39])).collect()
    assert few.rows() == [row for row in wanted if row[0] == ids[39]]
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql(f"FROM '{tmp_path / 'part.parquet'}' ORDER BY ALL").fetchall() == wanted


def test_a_file_without_rows_has_its_columns(tmp_path: Path) -> None:
    TreeSink(tmp_path / "part.parquet", schema_of(2, "int64"), level=1).finish()
    found = pq.read_table(tmp_path / "part.parquet")
    assert (found.num_rows, found.column_names) == (0, ["v0", "v1"])


def test_an_abandoned_file_is_closed(tmp_path: Path) -> None:
    sink = TreeSink(tmp_path / "part.parquet", schema_of(1, "int64"), level=1)
    sink.abandon()
    sink.abandon()
    assert (tmp_path / "part.parquet").read_bytes() in (b"", b"PAR1")


integers = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(integers, max_size=40), st.binary(max_size=300), integers)
@example([], b"", 0)
def test_thrift_that_is_written_is_read_again(numbers: list[int], text: bytes, number: int) -> None:
    written = encoded(
        STRUCT,
        {
            1: (INT64, number),
            2: (LIST, (INT64, numbers)),
            5: (BINARY, text),
            9: (TRUE, None),
            20: (STRUCT, {1: (LIST, (STRUCT, [{2: (INT64, one)} for one in numbers]))}),
        },
    )
    cursor = Cursor(written)
    read = cursor.value(STRUCT)
    assert cursor.at == len(written)
    assert read == {1: number, 2: numbers, 5: None, 9: True, 20: {1: [{2: one} for one in numbers]}}
    assert text in written
