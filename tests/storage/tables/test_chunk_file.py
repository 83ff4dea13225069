"""Stored chunks: they come back as they were, any reader of Zarr can open them, and damage never goes unnoticed."""

import errno
import json
import os
import resource
import signal
import struct
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.tables import chunk_file
from longwall.storage.tables.chunk_file import ChunkRecord, read_chunk, remove_chunk, write_chunk
from longwall.storage.tables.embedding_table import EmbeddingTable


def make_disk(limit: int = 1 << 40) -> MemoryBudget:
    return MemoryBudget("memory.disk", limit)


def random_table(seed: int, levels: int, rows: int, dtype: type = np.uint32, largest: int = 2**31) -> EmbeddingTable:
    rng = np.random.default_rng(seed)
    table = EmbeddingTable((rng.integers(0, largest, rows).astype(dtype),), ())
    for _ in range(levels - 1):
        counts = rng.integers(0, 4, len(table))
        table = table.extended(counts, rng.integers(0, largest, int(counts.sum())).astype(dtype))
    return table


def assert_equal(found: EmbeddingTable, expected: EmbeddingTable) -> None:
    for a, b in zip((*found.values, *found.offsets), (*expected.values, *expected.offsets), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    levels=st.integers(1, 4),
    rows=st.integers(0, 60),
    dtype=st.sampled_from([np.uint32, np.int64, np.uint16]),
    largest=st.sampled_from([1, 2, 255, 256, 65535, 2**32 - 1, 2**62]),
    piece=st.sampled_from([8, 64, 2**20]),
    sync=st.booleans(),
)
def test_a_table_comes_back_as_it_was(tmp_path, seed, levels, rows, dtype, largest, piece, sync):
    table = random_table(seed, levels, rows, dtype, min(largest, np.iinfo(dtype).max))
    disk, path = make_disk(), tmp_path / "chunk"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_file, "_PIECE", piece)
        record = write_chunk(table, path, disk, sync=sync)
    assert_equal(read_chunk(path, checksum=record.checksum), table)
    assert record == ChunkRecord(len(table), table.nbytes, path.stat().st_size, record.checksum)
    assert disk.used == record.stored <= disk.peak
    assert ChunkRecord(**asdict(record)) == record
    assert [p.name for p in tmp_path.iterdir()] == ["chunk"]
    remove_chunk(path, record, disk)
    assert disk.used == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("piece", [16, 2**20])
def test_zarr_reads_what_was_written(tmp_path, monkeypatch, piece):
    import zarr

    monkeypatch.setattr(chunk_file, "_PIECE", piece)
    table = random_table(1, 3, 50)
    write_chunk(table, tmp_path / "chunk.zip", make_disk())
    with zarr.storage.ZipStore(tmp_path / "chunk.zip", mode="r") as store:
        group = zarr.open_group(store, mode="r")
        assert group.attrs["rows"] == len(table)
        for level, values in enumerate(table.values):
            np.testing.assert_array_equal(group[f"values{level}"][:], values)
        for level, offsets in enumerate(table.offsets):
            np.testing.assert_array_equal(group[f"offsets{level}"][:], np.diff(offsets))


def test_an_empty_array_is_read_by_zarr(tmp_path):
    import zarr

    write_chunk(random_table(1, 2, 0), tmp_path / "chunk.zip", make_disk())
    with zarr.storage.ZipStore(tmp_path / "chunk.zip", mode="r") as store:
        assert zarr.open_group(store, mode="r")["values1"][:].size == 0


def test_a_slice_is_stored_without_its_surroundings(tmp_path):
    table = random_table(3, 3, 100).sliced(20, 30)
    record = write_chunk(table, tmp_path / "chunk", make_disk())
    assert record.rows == 10
    assert_equal(read_chunk(tmp_path / "chunk"), table)


@pytest.mark.parametrize("levels", [[0], [1], [2], [0, 2], [1, 2], [2, 0, 1], [0, 1]])
def test_only_the_wanted_columns_are_read(tmp_path, levels):
    table = random_table(4, 3, 40)
    write_chunk(table, tmp_path / "chunk", make_disk())
    found = read_chunk(tmp_path / "chunk", levels)
    assert len(found) == len(table)
    assert [values is not None for values in found.values] == [level in levels for level in range(3)]
    assert [offsets is not None for offsets in found.offsets] == [level >= min(levels) for level in range(2)]
    for level in levels:
        np.testing.assert_array_equal(found.column(level), table.column(level))


def test_the_unread_column_may_be_damaged(tmp_path):
    table = random_table(4, 2, 400)
    path = tmp_path / "chunk"
    write_chunk(table, path, make_disk())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("values0/c/0").header_offset + 200
    flip(path, 8 * start)
    np.testing.assert_array_equal(read_chunk(path, [1]).values[1], table.values[1])
    with pytest.raises(RunError):
        read_chunk(path, [0])


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


@pytest.mark.slow
def test_any_flipped_bit_is_found_or_harmless(tmp_path, monkeypatch):
    """Bits that say nothing (times and names of the archive, the copy of the metadata for other readers) may flip."""
    monkeypatch.setattr(chunk_file, "_PIECE", 64)
    table = random_table(5, 3, 12)
    path = tmp_path / "chunk"
    write_chunk(table, path, make_disk())
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        contents = [
            range(info.header_offset + 30 + 20 + len(info.filename), info.header_offset + 50 + info.file_size)
            for info in archive.infolist()
            if info.filename.endswith("/c/0")
        ]
    found = 0
    for byte in range(len(data)):
        path.write_bytes(data)
        flip(path, 8 * byte + byte % 8)
        try:
            assert_equal(read_chunk(path), table)
        except RunError:
            found += 1
        else:
            assert not any(byte in span for span in contents)
    assert found > sum(map(len, contents))


@pytest.mark.parametrize("levels", [None, [1]])
def test_another_whole_chunk_in_its_place_is_found(tmp_path, levels):
    """Both have the same shapes and compress to as many bytes: only their values differ."""
    rng = np.random.default_rng(7)
    offsets = np.arange(0, 4001, 10)
    paths, records = [tmp_path / "one", tmp_path / "two"], []
    for path in paths:
        values = tuple(rng.integers(2**31, 2**32, size, np.uint32) for size in (400, 4000))
        records.append(write_chunk(EmbeddingTable(values, (offsets,)), path, make_disk()))
    with zipfile.ZipFile(paths[0]) as one, zipfile.ZipFile(paths[1]) as two:
        for name in ("values0/c/0", "values1/c/0"):
            assert one.getinfo(name).file_size == two.getinfo(name).file_size
    paths[0].write_bytes(paths[1].read_bytes())
    read_chunk(paths[0], levels, checksum=records[1].checksum)
    with pytest.raises(RunError, match="one: the spilled chunk is damaged or gone"):
        read_chunk(paths[0], levels, checksum=records[0].checksum)


def test_a_truncated_chunk_is_found(tmp_path):
    path = tmp_path / "chunk"
    write_chunk(random_table(6, 2, 30), path, make_disk())
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(RunError, match=r"chunk: .*damaged or gone: resume the run, or run again"):
            read_chunk(path)


@pytest.mark.parametrize("what", ["file", "folder", "replaced by a folder"])
def test_a_chunk_that_is_gone_is_found(tmp_path, what):
    folder = tmp_path / "spill"
    folder.mkdir()
    path = folder / "chunk"
    disk = make_disk()
    record = write_chunk(random_table(6, 2, 30), path, disk)
    path.unlink()
    if what == "folder":
        folder.rmdir()
    if what == "replaced by a folder":
        path.mkdir()
    with pytest.raises(RunError, match="damaged or gone"):
        read_chunk(path)
    if what != "replaced by a folder":
        remove_chunk(path, record, disk)
        assert disk.used == 0


def test_a_folder_that_is_gone_is_named(tmp_path):
    disk = make_disk()
    with pytest.raises(RunError, match=r"nowhere.*another spill folder"):
        write_chunk(random_table(6, 2, 30), tmp_path / "nowhere" / "chunk", disk)
    assert disk.used == 0


def test_a_small_disk_budget_is_named_and_nothing_is_written(tmp_path):
    disk = make_disk(1000)
    with pytest.raises(BudgetExceeded, match=r"memory\.disk"):
        write_chunk(random_table(6, 2, 3000), tmp_path / "chunk", disk)
    assert disk.used == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES])
def test_a_failing_disk_leaves_nothing(tmp_path, monkeypatch, code):
    def fail(*args: object) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(Path, "rename", fail)
    disk = make_disk()
    with pytest.raises(RunError, match="another spill folder"):
        write_chunk(random_table(6, 2, 30), tmp_path / "chunk", disk)
    assert disk.used == 0
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_named(tmp_path):
    """The system's limit on the size of a file stands for a full disk."""
    old_limit, old_handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, old_limit[1]))
    disk = make_disk()
    try:
        with pytest.raises(RunError, match=r"the disk is full.*another spill folder, or lower the disk budget"):
            write_chunk(random_table(6, 2, 3000), tmp_path / "chunk", disk)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert disk.used == 0
    assert not list(tmp_path.iterdir())


def forge(
    path: Path,
    change: Callable[[dict[str, Any]], object],
    compression: int = zipfile.ZIP_STORED,
    changed: dict[str, bytes] | None = None,
) -> int:
    """Change what the metadata of a chunk say, and make their checksum right; exchange members. Return the checksum."""
    import google_crc32c

    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    group = json.loads(members["zarr.json"])
    del group["attributes"]["checksum"]
    change(group["attributes"])
    group["attributes"]["checksum"] = google_crc32c.value(json.dumps(group["attributes"]).encode())
    members |= {"zarr.json": json.dumps(group).encode(), **(changed or {})}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return int(group["attributes"]["checksum"])


@each_case(
    "change",
    [
        lambda a: a["arrays"][0].update(dtype="object"),
        lambda a: a["arrays"][0].update(stored_dtype="O"),
        lambda a: a["arrays"][0].update(stored_dtype="float64"),
        lambda a: a["arrays"][0].update(dtype=["uint32"]),
        lambda a: a["arrays"][0].update(size=2**60),
        lambda a: a["arrays"][0].update(size=2**43),
        lambda a: a["arrays"][0].update(size=-1),
        lambda a: a["arrays"][0].update(size=True),
        lambda a: a["arrays"][0].update(piece=2**40),
        lambda a: a["arrays"][0].update(piece=0),
        lambda a: a["arrays"][0].update(name="values9"),
        lambda a: a["arrays"][0].update(name=7),
        lambda a: a["arrays"][0].update(more=1),
        lambda a: a["arrays"][2].update(dtype="uint8"),
        lambda a: a["arrays"].pop(),
        lambda a: a["arrays"].clear(),
        lambda a: a.update(arrays={}),
        lambda a: a.update(arrays=[3]),
        lambda a: a.update(rows=3),
        lambda a: a.update(format="zarr"),
        lambda a: a.update(more=3),
    ],
)
def test_forged_metadata_are_refused(tmp_path, change):
    path = tmp_path / "chunk"
    write_chunk(random_table(8, 2, 30), path, make_disk())
    checksum = forge(path, lambda _: None)
    read_chunk(path, checksum=checksum)
    checksum = forge(path, change)
    with pytest.raises(RunError, match="damaged or gone"):
        read_chunk(path, checksum=checksum)


@each_case("row, column, value", [(0, 1, 3), (0, 1, 2**40), (1, 1, 5), (1, 0, 0), (0, 0, 1)])
def test_an_index_that_does_not_fit_is_refused(tmp_path, monkeypatch, row, column, value):
    """With the right checksum: where a piece begins, and how long it is."""
    import google_crc32c

    monkeypatch.setattr(chunk_file, "_PIECE", 64)
    path = tmp_path / "chunk"
    write_chunk(random_table(8, 1, 30), path, make_disk())
    with zipfile.ZipFile(path) as archive:
        pieces = archive.read("values0/c/0")
    count = 2
    index = np.frombuffer(pieces[-16 * count - 4 : -4], "<u8").reshape(count, 2).copy()
    assert index[1, 0] == index[0, 1], "the second piece begins where the first one ends"
    index[row, column] = value
    right = google_crc32c.value(index.tobytes())
    forged = pieces[: -16 * count - 4] + index.tobytes() + right.to_bytes(4, "little")
    checksum = forge(path, lambda a: a["arrays"][0].update(checksum=right), changed={"values0/c/0": forged})
    with pytest.raises(RunError, match="damaged or gone") as caught:
        read_chunk(path, checksum=checksum)
    assert "the index does not fit the file" in str(caught.value.__cause__)


def test_compressed_members_are_refused(tmp_path):
    path = tmp_path / "chunk"
    write_chunk(random_table(8, 2, 30), path, make_disk())
    checksum = forge(path, lambda _: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(RunError, match="damaged or gone"):
        read_chunk(path, checksum=checksum)


@pytest.mark.parametrize("kind", ["pipe", "link", "device"])
def test_only_regular_files_are_chunks(tmp_path, kind):
    """None of them is waited for."""
    write_chunk(random_table(8, 2, 30), tmp_path / "aside", make_disk())
    path = tmp_path / "chunk"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "aside" if kind == "link" else "/dev/zero")
    with pytest.raises(RunError, match="damaged or gone"):
        read_chunk(path)


def test_values_are_smaller_than_those_of_the_graph(tmp_path):
    table = random_table(8, 2, 30, largest=100)
    write_chunk(table, tmp_path / "chunk", make_disk())
    largest = max(int(values.max()) for values in table.values)
    assert_equal(read_chunk(tmp_path / "chunk", below=largest + 1), table)
    with pytest.raises(RunError, match="damaged or gone"):
        read_chunk(tmp_path / "chunk", below=largest)


@pytest.mark.parametrize("offsets", [[0, 2, 5], [0, 2, 3], [0, 7, 4], [0, 2**62, 4], [0, -1, 4], [0, 2**63 - 1, 4]])
def test_offsets_that_do_not_fit_the_next_level_are_refused(tmp_path, offsets):
    values = np.array([1, 2], np.uint32), np.array([5, 6, 7, 8], np.uint32)
    kind = chunk_file.np.min_scalar_type
    with pytest.MonkeyPatch.context() as patch:
        # Differences in words, so that any can be written.
        patch.setattr(chunk_file.np, "min_scalar_type", lambda _: kind(2**63))
        write_chunk(EmbeddingTable(values, (np.array(offsets, np.int64),)), tmp_path / "chunk", make_disk())
    with pytest.raises(RunError, match="damaged or gone"):
        read_chunk(tmp_path / "chunk")


def test_a_directory_of_an_archive_without_end_is_not_read(tmp_path):
    path = tmp_path / "chunk"
    write_chunk(random_table(8, 2, 30), path, make_disk())
    size = 2**40
    with path.open("r+b") as file:
        file.seek(size)  # the bytes before take no space
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 5, 5, size, 0))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, size, 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 5, 5, 2**32 - 1, 2**32 - 1, 0))
    with pytest.raises(RunError, match="damaged or gone"):
        read_chunk(path)
