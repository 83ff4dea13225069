"""Row groups of Parquet that are decoded at the same time: their rows come in order, and the first bad one is named."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.tables import parquet
from longwall.storage.ingest.tables.parquet import open_parquet
from longwall.storage.ingest.tables.row_groups import pieces_of, readers_for

GROUPS = [5, 0, 120, 1, 1, 40, 3]
MEMORY = 1 << 28


def write(path: Path, groups: list[int], bad: int | None = None) -> np.ndarray:
    """Write groups of so many rows, with an id that is none in one row."""
    rows = np.arange(2 * sum(groups)).reshape(-1, 2)
    columns = [pa.array(column) for column in rows.T]
    if bad is not None:
        columns[1] = pa.array([None if row == bad else value for row, value in enumerate(rows[:, 1].tolist())])
    start = 0
    schema = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    with pq.ParquetWriter(path, schema) as file:
        for size in groups:
            file.write_table(pa.table([column.slice(start, size) for column in columns], schema=schema))
            start += size
    return rows


@each_case("workers", [1, 2, 5])
@each_case("least", [1, 50, 1000])
def test_rows_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, least: int) -> None:
    monkeypatch.setattr(parquet, "LARGEST_BATCH", least)
    path = tmp_path / "edges.parquet"
    rows = write(path, GROUPS)
    seen: list[int] = []
    with open_parquet(FileRequest(path, MEMORY, workers, lambda done, _: seen.append(done))) as stream:
        blocks = [(block.src, block.dst) for block in stream.blocks]
    np.testing.assert_array_equal(np.concatenate([np.column_stack(block) for block in blocks]), rows)
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size


@pytest.mark.parametrize("bad", [0, 130, 169])
def test_the_first_bad_row_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int) -> None:
    monkeypatch.setattr(parquet, "LARGEST_BATCH", 10)
    path = tmp_path / "edges.parquet"
    write(path, GROUPS, bad)
    found = []
    for workers in (1, 4):
        with pytest.raises(InputError) as error, open_parquet(FileRequest(path, MEMORY, workers)) as stream:
            list(stream.blocks)
        found.append(str(error.value))
    assert f"row {bad + 1}" in found[0]
    assert found[0] == found[1]


def test_reading_may_end_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "LARGEST_BATCH", 10)
    path = tmp_path / "edges.parquet"
    write(path, [20] * 30)
    with open_parquet(FileRequest(path, MEMORY, 3)) as stream:
        assert len(next(iter(stream.blocks)).src) == 10


def test_pieces_and_readers(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    write(path, GROUPS)
    metadata = pq.ParquetFile(path).metadata
    pieces = pieces_of(metadata, 6)
    assert [(piece.start, piece.rows) for piece in pieces] == [(0, 125), (125, 42), (167, 3)]
    assert [group for piece in pieces for group in piece.groups] == list(range(len(GROUPS)))
    assert readers_for(pieces, 0, 1 << 20, 2) == 2
    assert readers_for(pieces, 0, 1 << 20, 9) == 3
    assert readers_for(pieces, 0, 32 * 125 * 4, 9) == 1
    assert readers_for([], 1, 1 << 20, 9) == 1
