"""Rows come out in order, none is lost, and memory and disk stay within their budgets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.resources import open_resources
from longwall.storage.tables import row_sorter
from longwall.storage.tables.row_sorter import RowSorter

MIB = 1 << 20


def resources(folder: Path, host: int = 256 * MIB, disk: int = 256 * MIB) -> Any:
    return open_resources(host=host, disk=disk, spill=folder / "spill")


def table(rows: list[tuple[Any, ...]], kinds: list[pa.DataType]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    schema = pa.schema([pa.field(f"v{at}", kind, nullable=False) for at, kind in enumerate(kinds)])
    return pa.Table.from_arrays(arrays, schema=schema)


def in_order(rows: pa.Table, sorter: RowSorter, batch: int) -> pa.Table:
    for one in rows.to_batches(batch):
        sorter.add(one)
    return pa.Table.from_batches(list(sorter.rows()), rows.schema)


def rows_of(found: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chunks of a few KiB and blocks of a few rows, so that small tables are merged in several passes."""
    monkeypatch.setattr(row_sorter, "_LEAST", 1 << 12)
    monkeypatch.setattr(row_sorter, "_MOST", 1 << 12)
    monkeypatch.setattr(row_sorter, "_READER", 0)
    monkeypatch.setattr(row_sorter, "_BLOCK", 1 << 8)
    monkeypatch.setattr(row_sorter, "_MOST_BLOCK", 1 << 8)
    return


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    ("kinds", "high"),
    [([pa.int64()] * 3, 1 << 40), ([pa.int64()] * 2, 5), ([pa.uint64()], 1 << 60), ([pa.large_string()] * 2, 40)],
)
def test_many_runs_are_merged_as_python_sorts(tmp_path: Path, kinds: list[pa.DataType], high: int) -> None:
    """With few values, equal rows fill many blocks."""
    drawn = np.random.default_rng(1).integers(0, high, (5000, len(kinds))).tolist()
    texts = pa.types.is_large_string(kinds[0])
    rows = [tuple(f"é{one}" if texts else one for one in row) for row in drawn]
    with resources(tmp_path) as ours:
        free = ours.host.free
        with RowSorter(ours, table([], kinds).schema) as sorter:
            found = in_order(table(rows, kinds), sorter, 300)
            assert sorter.spilled > 0
            assert sorter._made > 10, "more than a merge can take at once"
        assert rows_of(found) == sorted(rows)
        assert list((tmp_path / "spill").rglob("*.parquet")) == []
        assert (ours.host.free, ours.disk.used) == (free, 0)


@pytest.mark.usefixtures("small_chunks")
@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=400), st.integers(1, 50))
def test_any_rows(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], batch: int) -> None:
    with resources(tmp_path_factory.mktemp("any")) as ours:
        kinds = [pa.int64(), pa.int64()]
        with RowSorter(ours, table([], kinds).schema) as sorter:
            assert rows_of(in_order(table(rows, kinds), sorter, batch)) == sorted(rows)


def test_rows_that_fit_memory_are_not_spilled(tmp_path: Path) -> None:
    rows = [(3, 1), (1, 2), (1, 1)]
    with resources(tmp_path) as ours, RowSorter(ours, table([], [pa.int64()] * 2).schema) as sorter:
        assert rows_of(in_order(table(rows, [pa.int64()] * 2), sorter, 2)) == sorted(rows)
        assert sorter.spilled == 0
        assert not (tmp_path / "spill").exists()


def test_no_rows(tmp_path: Path) -> None:
    with resources(tmp_path) as ours, RowSorter(ours, table([], [pa.int64()]).schema) as sorter:
        assert list(sorter.rows()) == []


def test_the_disk_budget_is_kept(tmp_path: Path) -> None:
    rows = table([(number * 7919 % 100_003,) for number in range(100_000)], [pa.int64()])
    with resources(tmp_path, host=2 * MIB, disk=100 << 10) as ours, RowSorter(ours, rows.schema) as sorter:
        with pytest.raises(BudgetExceeded, match=r"sorting the results.*memory\.disk"):
            in_order(rows, sorter, 1000)
        sorter.close()
        assert ours.disk.used == 0
        assert list((tmp_path / "spill").rglob("*.parquet")) == []


@pytest.mark.usefixtures("small_chunks")
def test_a_refusal_at_the_end_of_a_file_names_the_sort(tmp_path: Path) -> None:
    rows = table([(number,) for number in range(4)], [pa.int64()])  # the ends of a file take more
    with resources(tmp_path) as ours, RowSorter(ours, rows.schema) as sorter:
        sorter.add(rows.to_batches()[0])
        size = sorter._written(sorter._sorted_chunk()).bytes
    assert size > rows.nbytes
    for disk in range(0, size, 8):
        with resources(tmp_path, disk=disk) as ours, RowSorter(ours, rows.schema) as sorter:
            sorter.add(rows.to_batches()[0])
            with pytest.raises(BudgetExceeded, match=r"no room for sorting the results .*memory\.disk"):
                sorter._written(sorter._sorted_chunk())


def test_the_host_budget_is_kept(tmp_path: Path) -> None:
    with resources(tmp_path, host=MIB // 2) as ours, pytest.raises(BudgetExceeded, match="sorting the results"):
        RowSorter(ours, table([], [pa.int64()]).schema)


@pytest.mark.usefixtures("small_chunks")
def test_a_damaged_run_is_noticed(tmp_path: Path) -> None:
    rows = table([(number * 7919 % 10_007,) for number in range(10_000)], [pa.int64()])
    with resources(tmp_path) as ours, RowSorter(ours, rows.schema) as sorter:
        for one in rows.to_batches(500):
            sorter.add(one)
        path = sorted((tmp_path / "spill").rglob("*.parquet"))[0]
        content = bytearray(path.read_bytes())
        column = pq.read_metadata(path).row_group(0).column(0)
        content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
        path.write_bytes(content)
        with pytest.raises(RunError, match="damaged"):
            list(sorter.rows())
