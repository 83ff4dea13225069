"""Embedding tables against their plainest model: a list of tuples."""

import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each_case
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.tables.chunk_file import read_chunk, write_chunk
from longwall.storage.tables.embedding_table import Columns, EmbeddingTable, NotRead, concatenated

Rows = list[tuple[int, ...]]
relaxed = settings(deadline=None, max_examples=200)
brief = settings(deadline=None, max_examples=50)


@pytest.fixture(scope="session")
def xp(engine_kind: str) -> Any:
    """The engine's array module."""
    if engine_kind == "cpu":
        return np
    return pytest.importorskip("cupy")


def table_of(rows: Rows, levels: int, xp: Any = np, dtype: Any = np.uint32) -> EmbeddingTable:
    """A table of rows in which equal prefixes that stand together are one node; every row is a leaf."""
    # The paths of the nodes of each level, from the last one (with a node per row) to the first.
    paths: list[Rows] = [rows]
    offsets: list[np.ndarray] = []
    for _ in range(levels - 1):
        groups = [(prefix, len(list(members))) for prefix, members in groupby(paths[0], lambda path: path[:-1])]
        offsets.insert(0, np.cumsum([0, *(size for _, size in groups)]).astype(np.int64))
        paths.insert(0, [prefix for prefix, _ in groups])
    values = tuple(np.array([path[-1] for path in level], dtype) for level in paths)
    return EmbeddingTable(values, tuple(offsets)).to(xp)


def rows_of(table: EmbeddingTable) -> Rows:
    return [tuple(row) for row in table.columns().T.tolist()]


def compacted(table: EmbeddingTable) -> bool:
    """Whether every node has a row."""
    return all((np.diff(offsets) > 0).all() for offsets in table.to(np).offsets)


def check(table: EmbeddingTable) -> None:
    """The table's own rules: offsets ascend from 0 to the size of the next level."""
    assert table.columns().dtype == table.values[-1].dtype
    table = table.to(np)
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


@brief
@given(
    drawn=row_lists(),
    ids=st.lists(st.integers(0, 2**63 - 1), min_size=4, max_size=4),
    dtype=st.sampled_from(["int64", "uint64"]),
    fixed=st.booleans(),
)
def test_a_column_has_the_ids_of_its_vertices(
    xp: Any, drawn: tuple[Rows, int], ids: list[int], dtype: str, fixed: bool
) -> None:
    rows, levels = drawn
    table, known = table_of(rows, levels, xp), xp.asarray(np.array(ids, dtype))
    if xp is np:
        known.flags.writeable = not fixed  # those of a mapped store cannot be written to
    for level in range(levels):
        assert table.column(level).tolist() == [row[level] for row in rows]
        column = table.column(level, known)
        assert column.tolist() == [ids[row[level]] for row in rows]
        assert column.dtype == dtype
    begin, end = len(rows) // 3, len(rows) // 2
    if begin < end:
        assert table.sliced(begin, end).column(levels - 1, known).tolist() == [ids[row[-1]] for row in rows[begin:end]]


@relaxed
@given(row_lists())
def test_columns_are_the_rows(xp, given_rows):
    rows, levels = given_rows
    table = table_of(rows, levels, xp)
    check(table)
    assert len(table) == len(rows)
    assert rows_of(table) == rows


@relaxed
@given(row_lists(), st.data())
def test_filtered(xp, given_rows, choice):
    rows, levels = given_rows
    keep = choice.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    found = table_of(rows, levels, xp).filtered(xp.asarray(np.array(keep, bool)))
    check(found)
    kept = [row for row, yes in zip(rows, keep, strict=True) if yes]
    assert rows_of(found) == kept
    if not all(keep):
        # Compacted back to the root: no node without a row below it.
        assert compacted(found)


@relaxed
@given(row_lists(), st.data())
def test_sliced(xp, given_rows, choice):
    rows, levels = given_rows
    begin = choice.draw(st.integers(0, len(rows)))
    end = choice.draw(st.integers(begin, len(rows)))
    found = table_of(rows, levels, xp).sliced(begin, end)
    check(found)
    assert rows_of(found) == rows[begin:end]


@relaxed
@given(row_lists(), st.data())
def test_extended(xp, given_rows, choice):
    rows, levels = given_rows
    children = [choice.draw(st.lists(st.integers(0, 9), max_size=3)) for _ in rows]
    counts = xp.asarray(np.array([len(c) for c in children], np.int64))
    values = xp.asarray(np.array([v for c in children for v in c], np.uint32))
    found = table_of(rows, levels, xp).extended(counts, values)
    check(found)
    assert rows_of(found) == [(*row, v) for row, c in zip(rows, children, strict=True) for v in c]


@relaxed
@given(row_lists(), st.data())
def test_any_sequence_of_operations(xp, given_rows, choice):
    """Operations on the results of operations: views of views, empty tables."""
    rows, levels = given_rows
    table = table_of(rows, levels, xp)
    for step in choice.draw(st.lists(st.sampled_from(["slice", "filter", "extend"]), max_size=6)):
        if step == "slice":
            begin = choice.draw(st.integers(0, len(rows)))
            end = choice.draw(st.integers(begin, len(rows)))
            table, rows = table.sliced(begin, end), rows[begin:end]
        elif step == "filter":
            keep = choice.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
            table = table.filtered(xp.asarray(np.array(keep, bool)))
            rows = [row for row, yes in zip(rows, keep, strict=True) if yes]
        else:
            children = [choice.draw(st.lists(st.integers(0, 9), max_size=2)) for _ in rows]
            counts = xp.asarray(np.array([len(c) for c in children], np.int64))
            table = table.extended(counts, xp.asarray(np.array([v for c in children for v in c], np.uint32)))
            rows = [(*row, v) for row, c in zip(rows, children, strict=True) for v in c]
        check(table)
        assert rows_of(table) == rows


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_empty_slice_can_be_sliced_again(xp, at):
    table = table_of([(0, 0), (0, 1)], 2, xp).sliced(at, at)
    for _ in range(2):
        check(table)
        assert rows_of(table) == []
        table = table.sliced(0, 0)


@pytest.mark.parametrize("levels", [1, 2, 3, 8])
def test_an_empty_table_has_its_columns(xp, levels):
    table = table_of([], levels, xp)
    check(table)
    assert table.columns().shape == (levels, 0)
    assert table.column(0).tolist() == []
    assert len(table.sliced(0, 0)) == len(table.filtered(xp.zeros(0, bool))) == 0
    extended = table.extended(xp.zeros(0, np.int64), xp.zeros(0, np.uint32))
    assert extended.num_levels == levels + 1
    check(extended)


def bushy_rows(seed: int, fans: list[int], most: int = 3000) -> Rows:
    """Random rows, a level for each number: nodes have about so many children, and some have very many."""
    rng = np.random.default_rng(seed)
    rows: Rows = [()]
    for fan in fans:
        sizes = rng.integers(1, 2 * fan, len(rows))
        sizes[rng.integers(len(rows))] += rng.integers(700) * (rng.random() < 0.3)
        rows = [(*row, i) for row, size in zip(rows, sizes, strict=True) for i in range(size)][:most]
    return rows


def some(seed: int, number: int, share: float) -> Any:
    """Which rows are kept: about a share of them, or those in random runs."""
    rng = np.random.default_rng(seed)
    kept = rng.random(number) < share
    return np.repeat(kept, 300)[:number] if seed % 2 else kept


@pytest.mark.slow
@brief
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from([1, 2, 3, 10, 300]), min_size=1, max_size=10),
    st.sampled_from([0.0, 0.001, 0.1, 0.9, 1.0]),
    st.sampled_from([np.uint32, np.int32, np.int64, np.uint64]),
    st.data(),
)
@example(1, [256], 0.5, np.uint32, None)
@example(2, [1] * 10, 1.0, np.int64, None)
def test_long_and_deep_tables(xp, seed, fans, share, dtype, choice):
    """Tables of several levels with many nodes, nodes with many children, in all dtypes."""
    rows, levels = bushy_rows(seed, fans), len(fans)
    table = table_of(rows, levels, xp, dtype)
    check(table)
    assert rows_of(table) == rows
    level = seed % levels
    assert table.column(level).tolist() == [row[level] for row in rows]
    assert table.column(level).dtype == dtype

    keep = some(seed, len(rows), share)
    found = table.filtered(xp.asarray(keep))
    check(found)
    assert compacted(found)
    kept = [row for row, yes in zip(rows, keep, strict=True) if yes]
    assert rows_of(found) == kept
    assert {array.dtype for array in found.values} == {np.dtype(dtype)}
    assert (found is table) == keep.all()

    counts = np.random.default_rng(seed).integers(1, 5, len(rows)) * keep
    found = table.extended(xp.asarray(counts), xp.arange(int(counts.sum()), dtype=dtype))
    check(found)
    assert compacted(found)
    owners = [row for row, count in zip(rows, counts.tolist(), strict=True) for _ in range(count)]
    assert rows_of(found) == [(*row, i) for i, row in enumerate(owners)]

    begin, end = (0, len(rows)) if choice is None else (choice.draw(st.integers(0, len(rows))) for _ in range(2))
    begin, end = min(begin, end), max(begin, end)
    found = table.sliced(begin, end)
    check(found)
    assert compacted(found)
    assert rows_of(found) == rows[begin:end]


@each_case("number", [1, 31, 32, 33, 255, 256, 257, 511, 512, 513])
@each_case("fan", [1, 2, 256])
def test_tables_that_end_where_groups_of_nodes_do(xp, number, fan):
    rows = [(i // fan, i) for i in range(number)]
    table = table_of(rows, 2, xp)
    for kept in (0, 1, number // 2, number - 1, number):
        mask = np.zeros(number, bool)
        mask[:kept] = True
        for chosen in (mask, mask[::-1]):
            found = table.filtered(xp.asarray(chosen.copy()))
            check(found)
            assert rows_of(found) == [row for row, yes in zip(rows, chosen, strict=True) if yes]
            assert rows_of(table.extended(xp.asarray(chosen * 2), xp.asarray(np.repeat(chosen, 2).nonzero()[0]))) == [
                (*row, 2 * row[1] + i) for row, yes in zip(rows, chosen, strict=True) if yes for i in range(2)
            ]
        assert rows_of(table.sliced(kept, number)) == rows[kept:]
        assert rows_of(table.sliced(0, kept)) == rows[:kept]


def test_tables_longer_than_the_grid_of_a_small_device(xp):
    rows = [(i // 1000, i // 3, i) for i in range(20_000)]
    table = table_of(rows, 3, xp)
    assert rows_of(table) == rows
    keep = np.arange(len(rows)) % 7 < 3
    kept = [row for row, yes in zip(rows, keep, strict=True) if yes]
    assert rows_of(table.filtered(xp.asarray(keep))) == kept
    extended = table.extended(xp.asarray(keep.astype(np.int64)), xp.arange(len(kept), dtype=np.uint32))
    assert rows_of(extended) == [(*row, i) for i, row in enumerate(kept)]
    assert rows_of(table.sliced(1, 19_999)) == rows[1:-1]


def test_rows_with_negative_counts_have_no_children(xp):
    table = table_of([(0, 1), (0, 2), (3, 4)], 2, xp)
    extended = table.extended(xp.asarray(np.array([-1, 2, -2])), xp.asarray(np.array([8, 9], np.uint32)))
    assert rows_of(extended) == [(0, 2, 8), (0, 2, 9)]


def test_parts_of_other_arrays_and_other_dtypes_are_taken(xp):
    """Columns are of the last level's dtype; arrays need not lie one element behind the other."""
    wide = xp.arange(12, dtype=np.int64)[::3]
    table = EmbeddingTable((xp.asarray(np.array([5, 6], np.int32)), wide), (xp.asarray(np.array([0, 3, 4])),), xp)
    assert rows_of(table) == [(5, 0), (5, 3), (5, 6), (6, 9)]
    mask, counts = xp.asarray(np.array([True, False] * 4))[::2], xp.asarray(np.array([0, 9, 1, 9], np.int32))[::2]
    assert table.filtered(mask) is table
    assert rows_of(table.filtered(~mask)) == []
    assert rows_of(table.sliced(2, 4).extended(counts, xp.asarray(np.array([7])))) == [(6, 9, 7)]


@pytest.mark.parametrize("read", range(8))
def test_slices_of_tables_that_were_not_read_whole(xp, read):
    """Only one column is read: the levels above have no offsets, those below no values."""
    rows = bushy_rows(3, [3] * 8)
    whole = table_of(rows, 8, xp)
    values = tuple(array if level == read else None for level, array in enumerate(whole.values))
    offsets = tuple(array if level >= read else None for level, array in enumerate(whole.offsets))
    table = EmbeddingTable(values, offsets, xp)
    for begin, end in ((0, len(rows)), (100, 101), (257, 1500), (40, 40)):
        part = table.sliced(begin, end)
        assert part.column(read).tolist() == [row[read] for row in rows[begin:end]]
        assert [array is None for array in part.values] == [level != read for level in range(8)]
        assert [array is None for array in part.offsets] == [level < read for level in range(7)]


def test_a_prefix_is_stored_once():
    rows = [(7, 8, i) for i in range(100_000)]
    assert table_of(rows, 3).nbytes < 100_000 * 4 + 100


@relaxed
@given(row_lists(), st.data())
def test_compaction_back_to_the_root_survives_being_stored(given_rows, choice):
    """Filter, store, filter again: the rows of a naive list, and no node without a row."""
    rows, levels = given_rows
    table = table_of(rows, levels)
    disk = MemoryBudget("memory.disk", 1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            keep = choice.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
            table = table.filtered(np.array(keep, bool))
            rows = [row for row, yes in zip(rows, keep, strict=True) if yes]
            write_chunk(table, Path(folder) / str(number), disk)
            table = read_chunk(Path(folder) / str(number))
            check(table)
            assert rows_of(table) == rows
            assert compacted(table)


@relaxed
@given(st.integers(1, 4), st.data())
def test_concatenated(levels, choice):
    parts = [choice.draw(row_lists(levels))[0] for _ in range(choice.draw(st.integers(1, 4)))]
    found = concatenated([table_of(rows, levels) for rows in parts])
    check(found)
    assert rows_of(found) == [row for rows in parts for row in rows]


@relaxed
@given(row_lists(), st.data())
def test_columns_one_by_one(xp, given_rows, choice):
    rows, levels = given_rows
    columns = Columns(table_of(rows, levels, xp))
    level = choice.draw(st.integers(-levels, levels - 1))
    assert columns[level].tolist() == [row[level] for row in rows]
    assert columns.touched == {level % levels}
    assert [column.tolist() for column in columns] == [[row[i] for row in rows] for i in range(levels)]
    assert len(columns[1:]) == levels - 1


def test_columns_that_were_not_read_are_named(xp):
    table = table_of([(1, 2), (1, 3)], 2, xp)
    pruned = EmbeddingTable((None, table.values[1]), (None,), xp)
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
