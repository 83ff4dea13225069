"""Compressed files are read as plain ones; damaged archives, and those that hold more than a graph, are refused."""

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cases import each_case

from longwall.storage.errors import InputError
from longwall.storage.ingest.formats import detect_format
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.text.input_file import Source, decompression_bytes
from longwall.storage.ingest.text.text_file import TextFile

EDGES = [(u, (7 * u + 3) % 5000) for u in range(60_000)]
TEXT = "".join(f"{u} {v}\n" for u, v in EDGES).encode()
MATRIX = b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def tarred(members: dict[str, bytes], kind: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def parts(text: bytes) -> tuple[bytes, bytes]:
    return text[: len(text) // 3], text[len(text) // 3 :]


COMPRESSED = {
    "g.txt.gz": gzip.compress(TEXT),
    "g.txt.zst": pa.compress(TEXT, codec="zstd", asbytes=True),
    "g.txt.bz2": bz2.compress(TEXT),
    "two streams.txt.bz2": b"".join(map(bz2.compress, parts(TEXT))),
    "g.TXT.XZ": lzma.compress(TEXT),
    "strongest.xz": lzma.compress(TEXT, preset=9),
    "two streams.xz": b"\0\0\0\0".join(map(lzma.compress, parts(TEXT))) + b"\0\0\0\0",
    "g.zip": zipped({"folder/g.txt": TEXT}),
    "stored.zip": zipped({"g.edges": TEXT}, zipfile.ZIP_STORED),
    "network repository.zip": zipped({"g.edges": TEXT, "readme.html": b"<p>", "__MACOSX/._g.edges": b"\0"}),
}


@each_case("name", COMPRESSED)
def test_a_compressed_list_is_the_list(tmp_path: Path, name: str) -> None:
    (tmp_path / "plain.txt").write_bytes(TEXT)
    (tmp_path / name).write_bytes(COMPRESSED[name])
    assert load_graph(tmp_path / name).content_hash == load_graph(tmp_path / "plain.txt").content_hash


@each_case("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_may_be_large(tmp_path: Path, method: int) -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 2**40, (300_000, 2))
    text = "\n".join(f"{u} {v}" for u, v in ends.tolist()).encode()
    (tmp_path / "g.zip").write_bytes(zipped({"g.txt": text}, method))
    assert (tmp_path / "g.zip").stat().st_size > 2**21
    assert load_graph(tmp_path / "g.zip").num_edges == len(ends)


def test_an_archive_is_read_as_the_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"m/a.mtx": MATRIX, "m/": b"", "README": b"a"}))
    assert detect_format(tmp_path / "a.zip") == "matrix-market"
    assert load_graph(tmp_path / "a.zip").num_edges == 2
    (tmp_path / "b.csv.zip").write_bytes(zipped({"b.tsv": b"source\ttarget\n1\t2\n"}))
    assert load_graph(tmp_path / "b.csv.zip").num_edges == 1
    assert detect_format(tmp_path / "missing.mtx.zip") == "matrix-market"


KONECT = {"a/": b"", "a/out.a": TEXT, "a/README.a": b"a network", "a/meta.a": b"name: a"}


def test_tar_in_the_middle_of_a_name_is_no_archive(tmp_path: Path) -> None:
    for name in ("g.tar.txt", "g.txt"):
        (tmp_path / name).write_bytes(TEXT)
    assert load_graph(tmp_path / "g.tar.txt").content_hash == load_graph(tmp_path / "g.txt").content_hash


@each_case("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_the_file_of_a_tar_archive_is_read(tmp_path: Path, kind: int) -> None:
    (tmp_path / "plain.txt").write_bytes(TEXT)
    expected = load_graph(tmp_path / "plain.txt").content_hash
    long = {f"{'é' * 60}/out.a": TEXT} if kind != tarfile.USTAR_FORMAT else {}
    for members in filter(None, (KONECT, dict(reversed(KONECT.items())), {"out.a": TEXT}, long)):
        (tmp_path / "a.tar").write_bytes(tarred(members, kind))
        assert load_graph(tmp_path / "a.tar").content_hash == expected


def test_a_tar_archive_may_be_compressed(tmp_path: Path) -> None:
    archive = tarred(KONECT)
    names = {
        "download.tsv.a.tar.bz2 download.tsv.a.TBZ2 a.tbz": bz2.compress(archive),
        "a.tar.gz a.tgz": gzip.compress(archive),
        "a.tar.xz a.txz": lzma.compress(archive),
        "a.tar.zst a.tzst": pa.compress(archive, codec="zstd", asbytes=True),
    }
    (tmp_path / "plain.txt").write_bytes(TEXT)
    expected = load_graph(tmp_path / "plain.txt").content_hash
    for name, content in ((name, content) for some, content in names.items() for name in some.split()):
        (tmp_path / name).write_bytes(content)
        assert load_graph(tmp_path / name).content_hash == expected, name


def test_a_tar_archive_is_read_as_the_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(tarred({"a/a.mtx": MATRIX})))
    assert detect_format(tmp_path / "a.tar.gz") == "matrix-market"
    assert load_graph(tmp_path / "a.tar.gz").num_edges == 2
    assert detect_format(tmp_path / "missing.tar.gz") == "edge-list"
    for name in ("a.txz", "a.tar.xz"):
        (tmp_path / name).write_bytes(lzma.compress(tarred({"a/a.mtx": MATRIX})))
    assert detect_format(tmp_path / "a.txz") == "matrix-market"
    assert decompression_bytes(tmp_path / "a.txz", 2**30) == decompression_bytes(tmp_path / "a.tar.xz", 2**30)


def linked() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    return made.getvalue()


def encrypted() -> bytes:
    archive = bytearray(zipped({"g.txt": b"1 2\n"}))
    archive[6] |= 1
    archive[archive.index(b"PK\x01\x02") + 8] |= 1
    return bytes(archive)


REFUSED = {
    "two.zip": (zipped({"a.txt": TEXT, "b.txt": TEXT}), "the archive has 2 files; give an archive of one file"),
    "none.zip": (zipped({}), "the archive has no file"),
    "password.zip": (encrypted(), "the archive has a password; unpack it"),
    "method.zip": (zipped({"a.txt": TEXT}, zipfile.ZIP_LZMA), "another method than deflate"),
    "text.zip": (b"1 2\n", "this is not a complete zip archive"),
    "cut.zip": (zipped({"a.txt": TEXT})[:-30], "this is not a complete zip archive"),
    "many.zip": (zipped({f"{at:0100}.txt": b"" for at in range(10_000)}), "too many members"),
    "cut.txt.xz": (lzma.compress(TEXT)[:-500], "the xz data is truncated or damaged; copy or download the file again"),
    "text.txt.xz": (b"1 2\n" * 9, "the xz data is truncated or damaged"),
    "cut.txt.bz2": (bz2.compress(TEXT)[:-500], "the bzip2 data is truncated or damaged"),
    "text.txt.bz2": (b"1 2\n" * 9, "the bzip2 data is truncated or damaged"),
    "empty.txt.xz": (b"", "the file is empty"),
    "empty.zip": (b"", "the file is empty"),
    "text.tar.bz2": (bz2.compress(TEXT), "this is not a complete tar archive"),
    "text.tar": (b"1 2\n", "this is not a complete tar archive"),
    "cut.tar": (tarred({"a.txt": TEXT})[:9000], "this is not a complete tar archive"),
    "cut.tar.gz": (gzip.compress(tarred({"a.txt": TEXT})[:9000]), "this is not a complete tar archive"),
    "cut.tar.bz2": (bz2.compress(tarred({"a.txt": TEXT}))[:-500], "the bzip2 data is truncated or damaged"),
    "two.tar": (tarred({"a.txt": b"1 2\n", "b.txt": b"2 3\n"}), "the archive has several files, a.txt and b.txt;"),
    "none.tar": (tarred({"a/": b"", "readme": b"a"}), "the archive has no file; unpack it"),
    "link.tar": (linked(), "the archive has no file"),
    "cut.tgz": (gzip.compress(tarred({"a.txt": TEXT})[:9000]), "this is not a complete tar archive"),
    "cut.txz": (lzma.compress(tarred({"a.txt": TEXT}))[:-500], "the xz data is truncated or damaged"),
    "text.tbz2": (bz2.compress(TEXT), "this is not a complete tar archive"),
    "large.xz": (
        lzma.compress(TEXT, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**28}]),
        "decompressing this file takes more than 128 MiB; compress it with xz -9 or lower",
    ),
}


@each_case("name", REFUSED)
def test_archives_that_are_refused(tmp_path: Path, name: str) -> None:
    content, says = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        load_graph(tmp_path / name)
    assert str(refused.value).startswith(f"{tmp_path / name}: ")
    assert says in str(refused.value)


def test_the_dictionary_of_xz_counts_as_memory(tmp_path: Path) -> None:
    path = tmp_path / "g.xz"
    path.write_bytes(lzma.compress(TEXT, preset=9))
    assert decompression_bytes(path, 2**30) >= 65 * 2**20
    with pytest.raises(InputError, match=r"takes 66 MiB, and reading it has 8 MiB; raise memory\.host"):
        TextFile(path, 2**23, 1)
    path.write_bytes(lzma.compress(TEXT))
    with TextFile(path, 2**23, 1) as text:
        assert sum(lines.columns.shape[1] for lines in text.parse(text.rows())) == len(EDGES)


@each_case("suffix", [".xz", ".zip"])
def test_a_small_file_of_many_zeros_takes_little_memory(tmp_path: Path, suffix: str) -> None:
    zeros = b"0" * 2**26
    content = lzma.compress(zeros, preset=0) if suffix == ".xz" else zipped({"a.txt": zeros})
    (tmp_path / f"g.txt{suffix}").write_bytes(content)
    buffer, size = bytearray(2**16), 0
    tracemalloc.start()
    try:
        source = Source(tmp_path / f"g.txt{suffix}")
        while filled := source.fill(memoryview(buffer)):
            size += filled
        source.close()
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert size == len(zeros)
