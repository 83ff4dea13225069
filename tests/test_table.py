"""Embedding tables against their plainest model: a list of tuples."""

import tempfile
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.storage.account import Account
from longwall.storage.tables.chunk_file import read_chunk, write_chunk
from longwall.storage.tables.table import Columns, EmbeddingTable, NotRead, concatenated

Rows = list[tuple[int, ...]]
relaxed = settings(deadline=None, max_examples=200)


def table_of(rows: Rows, levels: int) -> EmbeddingTable:
    """A table of rows in which equal prefixes that stand together are one node; every row is a leaf."""
    # The paths of the nodes of each level, from the last one (with a node per row) to the first.
    paths: list[Rows] = [rows]
    offsets: list[np.ndarray] = []
    for _ in range(levels - 1):
        groups = [(prefix, len(list(members))) for prefix, members in groupby(paths[0], lambda path: path[:-1])]
        offsets.insert(0, np.cumsum([0, *(size for _, size in groups)]).astype(np.int64))
        paths.insert(0, [prefix for prefix, _ in groups])
    values = tuple(np.array([path[-1] for path in level], np.uint32) for level in paths)
    return EmbeddingTable(values, tuple(offsets))


def rows_of(table: EmbeddingTable) -> Rows:
    return [tuple(row) for row in table.columns().T.tolist()]


def check(table: EmbeddingTable) -> None:
    """The table's own rules: offsets ascend from 0 to the size of the next level."""
    assert len(table.offsets) == table.num_levels - 1
    for level, offsets in enumerate(table.offsets):
        assert offsets.size == table.values[level].size + 1
        assert offsets[0] == 0
        assert offsets[-1] == table.values[level + 1].size
        assert (np.diff(offsets) >= 0).all()
    assert table.columns().shape == (table.num_levels, len(table))
    assert table.nbytes == sum(a.nbytes for a in (*table.values, *table.offsets))


@st.composite
def row_lists(draw: st.DrawFn, levels: int | None = None) -> tuple[Rows, int]:
    levels = draw(st.integers(1, 4)) if levels is None else levels
    rows = draw(st.lists(st.tuples(*[st.integers(0, 3)] * levels), max_size=25))
    # Rows that share a prefix stand together; the order is otherwise free.
    return sorted(rows, reverse=draw(st.booleans())), levels


@relaxed
@given(row_lists())
def test_columns_are_the_rows(given_rows):
    rows, levels = given_rows
    table = table_of(rows, levels)
    check(table)
    assert len(table) == len(rows)
    assert rows_of(table) == rows


@relaxed
@given(row_lists(), st.data())
def test_filtered(given_rows, choice):
    rows, levels = given_rows
    keep = choice.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    found = table_of(rows, levels).filtered(np.array(keep, bool))
    check(found)
    kept = [row for row, yes in zip(rows, keep, strict=True) if yes]
    assert rows_of(found) == kept
    if not all(keep):
        # Compacted back to the root: no node without a row below it.
        assert all((np.diff(offsets) > 0).all() for offsets in found.offsets)


@relaxed
@given(row_lists(), st.data())
def test_sliced(given_rows, choice):
    rows, levels = given_rows
    begin = choice.draw(st.integers(0, len(rows)))
    end = choice.draw(st.integers(begin, len(rows)))
    found = table_of(rows, levels).sliced(begin, end)
    check(found)
    assert rows_of(found) == rows[begin:end]


@relaxed
@given(row_lists(), st.data())
def test_extended(given_rows, choice):
    rows, levels = given_rows
    children = [choice.draw(st.lists(st.integers(0, 9), max_size=3)) for _ in rows]
    counts = np.array([len(c) for c in children], np.int64)
    values = np.array([v for c in children for v in c], np.uint32)
    found = table_of(rows, levels).extended(counts, values)
    check(found)
    assert rows_of(found) == [(*row, v) for row, c in zip(rows, children, strict=True) for v in c]


@relaxed
@given(row_lists(), st.data())
def test_any_sequence_of_operations(given_rows, choice):
    """Operations on the results of operations: views of views, empty tables."""
    rows, levels = given_rows
    table = table_of(rows, levels)
    for step in choice.draw(st.lists(st.sampled_from(["slice", "filter", "extend"]), max_size=6)):
        if step == "slice":
            begin = choice.draw(st.integers(0, len(rows)))
            end = choice.draw(st.integers(begin, len(rows)))
            table, rows = table.sliced(begin, end), rows[begin:end]
        elif step == "filter":
            keep = choice.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
            table = table.filtered(np.array(keep, bool))
            rows = [row for row, yes in zip(rows, keep, strict=True) if yes]
        else:
            children = [choice.draw(st.lists(st.integers(0, 9), max_size=2)) for _ in rows]
            counts = np.array([len(c) for c in children], np.int64)
            table = table.extended(counts, np.array([v for c in children for v in c], np.uint32))
            rows = [(*row, v) for row, c in zip(rows, children, strict=True) for v in c]
        check(table)
        assert rows_of(table) == rows


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_empty_slice_can_be_sliced_again(at):
    table = table_of([(0, 0), (0, 1)], 2).sliced(at, at)
    for _ in range(2):
        check(table)
        assert rows_of(table) == []
        table = table.sliced(0, 0)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_an_empty_table_has_its_columns(levels):
    table = table_of([], levels)
    check(table)
    assert table.columns().shape == (levels, 0)
    assert len(table.sliced(0, 0)) == len(table.filtered(np.zeros(0, bool))) == 0
    assert table.extended(np.zeros(0, np.int64), np.zeros(0, np.uint32)).num_levels == levels + 1


def test_a_prefix_is_stored_once():
    rows = [(7, 8, i) for i in range(100_000)]
    assert table_of(rows, 3).nbytes < 100_000 * 4 + 100


@relaxed
@given(row_lists(), st.data())
def test_compaction_back_to_the_root_survives_being_stored(given_rows, choice):
    """Filter, store, filter again: the rows of a naive list, and no node without a row."""
    rows, levels = given_rows
    table = table_of(rows, levels)
    disk = Account("memory.disk", 1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            keep = choice.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
            table = table.filtered(np.array(keep, bool))
            rows = [row for row, yes in zip(rows, keep, strict=True) if yes]
            write_chunk(table, Path(folder) / str(number), disk)
            table = read_chunk(Path(folder) / str(number))
            check(table)
            assert rows_of(table) == rows
            assert all((np.diff(offsets) > 0).all() for offsets in table.offsets)


@relaxed
@given(st.integers(1, 4), st.data())
def test_concatenated(levels, choice):
    parts = [choice.draw(row_lists(levels))[0] for _ in range(choice.draw(st.integers(1, 4)))]
    found = concatenated([table_of(rows, levels) for rows in parts])
    check(found)
    assert rows_of(found) == [row for rows in parts for row in rows]


@relaxed
@given(row_lists(), st.data())
def test_columns_one_by_one(given_rows, choice):
    rows, levels = given_rows
    columns = Columns(table_of(rows, levels))
    level = choice.draw(st.integers(-levels, levels - 1))
    assert columns[level].tolist() == [row[level] for row in rows]
    assert columns.touched == {level % levels}
    assert [column.tolist() for column in columns] == [[row[i] for row in rows] for i in range(levels)]
    assert len(columns[1:]) == levels - 1


def test_columns_that_were_not_read_are_named():
    table = table_of([(1, 2), (1, 3)], 2)
    pruned = EmbeddingTable((None, table.values[1]), (None,))
    assert Columns(pruned.sliced(1, 2))[1].tolist() == [3]
    with pytest.raises(NotRead):
        Columns(pruned)[0]
    with pytest.raises(IndexError):
        Columns(pruned)[2]


@pytest.mark.parametrize("levels", [1, 3])
def test_views_share_the_memory_of_the_last_level(levels):
    rows = [(1, 2, i)[-levels:] for i in range(10)]
    table = table_of(rows, levels)
    last = table.values[-1]
    assert table.to(np) is table
    assert np.shares_memory(table.column(levels - 1), last)
    arrow = table.to_arrow([f"x{i}" for i in range(levels)])
    assert arrow.column(levels - 1).chunk(0).buffers()[1].address == last.ctypes.data
    assert [tuple(row.values()) for row in arrow.to_pylist()] == rows
    frame = table.to_pandas()
    assert np.shares_memory(frame[f"c{levels - 1}"].to_numpy(), last)
    assert [tuple(row) for row in frame.to_numpy().tolist()] == rows


@relaxed
@given(row_lists())
def test_arrow_and_pandas_have_the_rows(given_rows):
    rows, levels = given_rows
    table = table_of(rows, levels)
    assert [tuple(row.values()) for row in table.to_arrow().to_pylist()] == rows
    assert [tuple(row) for row in table.to_pandas().to_numpy().tolist()] == rows
