"""Arrays of a store, written and read: against Zarr, in any layout, with every chunk damaged."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each_case

from longwall.storage.arrays import array_hash, array_writer, blosc_chunks, layout
from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.array_reader import StoredArray
from longwall.storage.arrays.array_writer import ArrayWriter, WritingThreads
from longwall.storage.arrays.layout import Layout
from longwall.storage.stored_files import Damage


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "CHUNK_BYTES", 256)
    monkeypatch.setattr(layout, "CHUNKS_PER_SHARD", 3)
    monkeypatch.setattr(array_hash, "SEGMENT_BYTES", 64)


def write(
    folder: Path, array: np.ndarray, memory: int | None = None, piece: int = 11, together: int = 1, **options: bool
) -> str:
    """Write an array in pieces; returns its hash's line."""
    hashed = ArrayHash(array.dtype, len(array))
    cut = Layout.of(array.dtype, len(array), memory)
    with WritingThreads() as threads, ArrayWriter(folder, "a", cut, threads, 2, hashed, together) as writer:
        for at in range(0, len(array), piece):
            writer.append(array[at : at + piece], **options)
        writer.finish()
        threads.settle()
    (folder / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    return hashed.line("a")


def read(folder: Path, array: np.ndarray, chunks: int = 1, hashed: ArrayHash | None = None) -> np.ndarray:
    stored = StoredArray(folder, "a", array.dtype, len(array))
    out = np.full_like(array, 77)
    for start, stop in stored.blocks(chunks):
        stored.read(start, out[start:stop], hashed)
    return out


@each_case("length", [1, 31, 32, 33, 500])
@each_case("memory", [None, 256, 64, 1])
def test_zarr_and_the_reader_read_what_is_written(tmp_path: Path, length: int, memory: int | None) -> None:
    import zarr

    array = np.random.default_rng(length).integers(0, 2**40, length)
    lines = set()
    for way, (piece, options) in enumerate({(11, ()), (1, ()), (1000, (("kept", True),)), (70, (("kept", True),))}):
        folder = tmp_path / str(way)
        folder.mkdir()
        lines.add(write(folder, array, memory, piece, **dict(options)))
        np.testing.assert_array_equal(zarr.open_group(folder, mode="r")["a"][:], array)
        for chunks in (1, 2, 32):
            hashed = ArrayHash(array.dtype, length)
            np.testing.assert_array_equal(read(folder, array, chunks, hashed), array)
            lines.add(hashed.line("a"))
    assert len(lines) == 1


@pytest.fixture(params=[True, False], ids=["by address", "by numcodecs"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder of Blosc is called by its address, or as where the library does not show it."""
    if not request.param:
        monkeypatch.setattr(blosc_chunks, "_address", lambda function: 0)


@pytest.mark.parametrize("missing", ["package", "module", "function", "library"])
def test_without_an_address_there_is_none(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Whatever is missing; a library with an empty name would be that of the process itself."""
    if missing == "package":
        monkeypatch.setattr(blosc_chunks, "find_spec", lambda name: None)
    if missing in ("module", "library"):
        found = None if missing == "module" else SimpleNamespace(origin="/nowhere/blosc.so")
        monkeypatch.setattr(blosc_chunks.PathFinder, "find_spec", lambda name, path: found)
    function = "no_such_function" if missing == "function" else "blosc_decompress_ctx"
    assert blosc_chunks._address.__wrapped__(function) == 0


def test_functions_of_blosc_have_addresses() -> None:
    for function in ("blosc_compress_ctx", "blosc_decompress_ctx"):
        assert blosc_chunks._address(function)


def test_short_chunks_have_as_long_shards(tmp_path: Path) -> None:
    large, small = Layout.of(np.dtype("<i8"), 5000), Layout.of(np.dtype("<i8"), 5000, 64)
    assert (large.chunk_bytes, large.per_shard) == (256, 3)
    assert (small.chunk_bytes, small.per_shard) == (64, 12)
    assert Layout.of(np.dtype("<i8"), 5000, 1).chunk_bytes == 32


def test_both_ways_to_encode_make_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(1).integers(0, 2**40, 500)
    found = []
    for way in ("by address", "by numcodecs"):
        folder = tmp_path / way
        folder.mkdir()
        line = write(folder, array)
        files = sorted((folder / "a" / "c").iterdir(), key=lambda path: int(path.name))
        found.append((line, [path.read_bytes() for path in files]))
        monkeypatch.setattr(blosc_chunks, "_address", lambda function: 0)
    assert found[0] == found[1]


@pytest.mark.parametrize("together", [2, 3, 4])
def test_pieces_of_several_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    """A shard has so many chunks that no piece is in two, whatever its size."""
    monkeypatch.setattr(layout, "CHUNKS_PER_SHARD", 6)
    array = np.random.default_rng(1).integers(0, 2**40, 500)
    for number, (piece, kept) in enumerate([(11, False), (1000, True), (200, True)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        line, hashed = write(folder, array, None, piece, together, kept=kept), ArrayHash(array.dtype, len(array))
        np.testing.assert_array_equal(read(folder, array, 2, hashed), array)
        assert hashed.line("a") == line


@pytest.mark.usefixtures("decoder")
def test_a_changed_byte_of_any_chunk_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    """By the decoder or by the hash; bytes that nothing is read from may stand there."""
    array = np.random.default_rng(1).integers(0, 2**40, 300)
    line = write(tmp_path, array)
    shards = sorted((tmp_path / "a" / "c").iterdir())
    noticed = 0
    for path in shards:
        data = path.read_bytes()
        for at in range(0, len(data), 7):
            path.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
            hashed = ArrayHash(array.dtype, len(array))
            try:
                found = read(tmp_path, array, hashed=hashed)
            except Damage:
                noticed += 1
                continue
            assert (hashed.line("a") == line) == bool((found == array).all())
            noticed += hashed.line("a") != line
        path.write_bytes(data)
    assert len(shards) == 4
    assert noticed > 100


def test_a_file_that_ends_while_it_is_read(tmp_path: Path) -> None:
    array = np.random.default_rng(1).integers(0, 2**40, 300)
    write(tmp_path, array)
    stored = StoredArray(tmp_path, "a", array.dtype, len(array))
    path = tmp_path / "a" / "c" / "2"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(Damage, match="a/c/2: the file ends early"):
        stored.read(0, np.empty_like(array))


@pytest.mark.parametrize("where", ["_write", "sync_folder"])
def test_errors_of_threads_come_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(array_writer, where, fail)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, np.arange(1000))
