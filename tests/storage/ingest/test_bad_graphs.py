"""Bad input: one message with the place and what to do, as `InputError`, never a traceback."""

import errno
import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.tables.table_options import TableOptions
from longwall.storage.ingest.text import text_file

MTX = "%%MatrixMarket matrix coordinate pattern symmetric\n"


def refusal(path: Path, labels: Path | None = None) -> str:
    """Load, and return the message of the refusal."""
    with pytest.raises(InputError) as caught:
        load_graph(path, labels)
    message = str(caught.value)
    assert "\n" not in message
    return message


@each_case(
    ("name", "content", "line", "says"),
    [
        ("g.txt", "1 2\n3\n", 2, "too few columns"),
        ("g.mtx", MTX + "3 3 1\n-3 4\n", 3, "negative number -3"),
        ("g.mtx", MTX + "3 3 1\n3 -4\n", 3, "negative number -4"),
        ("g.txt", "1 2\n1.5 4\n", 2, "'1.5' is not an integer"),
        ("g.txt", "1 2\nabc 4\n", 2, "'abc' is not an integer"),
        ("g.txt", "1 2\n3 4x\n", 2, "'4x' is not an integer"),
        ("g.txt", "1 2\n3 +4\n", 2, "'+4' is not an integer"),
        ("g.txt", "1 2\n- 3\n", 2, "'-' is not an integer"),
        ("g.csv", "1,2\n5,,7\n", 2, "an empty field in '5,,7'"),
        ("g.csv", "u,v,c\n1,2,3\n5,,7\n", 3, "an empty field in '5,,7'"),
        ("g.csv", ",1,2\n,2,3\n", 1, "an empty field in ',1,2'"),
        ("g.csv", "1,,2,\n", 1, "an empty field in '1,,2,'"),
        ("g.tsv", "5\t\t7\n", 1, "an empty field"),
        ("g.csv", "1,2\n1,000,2\n", 2, "the number of fields changes from 2 to 3 in '1,000,2'"),
        ("g.csv", "source,target,w\n1,2,3\n1,2\n", 3, "the number of fields changes from 3 to 2"),
        ("g.csv", "source,target\n1,2,3\n", 2, "the number of fields changes from 2 to 3"),
        ("g.txt", "# neighbours\n1 2 3\n2 1\n3 1\n", 3, "the number of fields changes from 3 to 2 in '2 1'"),
        ("g.txt", "1 2\n1 2,5\n", 2, "different separators in '1 2,5'"),
        ("g.txt", "1 2\n1,2 5\n", 2, "different separators in '1,2 5'"),
        ("g.csv", '1,2,a\n1,2,"a\n', 2, "a quote that is not closed"),
        ("g.csv", "# c\r1,2\n3,4\n", 1, "carriage return"),
        ("g.csv", "3,4\n# c\r1,2\n", 2, "carriage return"),
        ("g.csv", "1,2,a\rb\n", 1, "carriage return"),
        ("g.mtx", MTX + "% c\r2 2 1\n2 2 1\n1 2\n", 2, "carriage return"),
        ("g.csv", "# \x01\n1,2\n", 1, "binary data (byte 0x01)"),
        ("g.csv", "id,name,age\n1,2,3\n", 1, "it is not clear which columns are meant: id, name, age; say which two"),
        ("g.csv", "u,v,source,target\n1,2,3,4\n", 1, "more than one pair of columns could be meant"),
        ("g.csv", "source,source,target\n1,2,3\n", 1, "more than one pair of columns could be meant"),
        ("g.csv", "source\n1\n", 1, "two columns of integers or texts are needed"),
        ("g.txt", "<?xml version='1.0'?>\n<graphml/>\n", 1, "this looks like XML"),
        ("g.txt", '{"nodes": []}\n', 1, "this looks like JSON"),
        ("g.txt", "[[1, 2], [2, 3]]\n", 1, "this looks like JSON"),
        ("g.toml", '[graph]\npath = "g.txt"\n', 1, "this looks like a config"),
        ("g.txt", "# mine\n[workload]\n", 2, "this looks like a config"),
        ("g.graph", "t # 1 2\nv 0 1 1\nv 1 1 1\ne 0 1\n", 1, "not the header"),
        ("g.txt", "src 1\n1 2\n", 1, "'src' is not an integer"),
        ("g.csv", "src,dst\n1,2\nsrc,dst\n", 3, "'src' is not an integer"),
        ("g.mtx", MTX + f"3 3 1\n1 {2**63}\n", 3, "2^63 or more"),
        ("g.txt", f"{2**64 + 1} 1\n", 1, "2^64 or more"),
        ("g.txt", "1" * 50 + " 1\n", 1, "2^64 or more"),
        *[("g.txt", f"1 2\n3 {times * 2**64}\n", 2, f"{times * 2**64} is 2^64 or more") for times in (1, 5, 10, 100)],
        ("g.txt", f"1 2\n{'0' * 30}{2**64} 3\n", 2, "2^64 or more"),
        ("g.txt", f"1 2\n3 -{2**64}\n", 2, f"-{2**64} is below -2^63"),
        ("g.txt", f"1 2\n3 -{2**63 + 1}\n", 2, f"-{2**63 + 1} is below -2^63"),
        ("g.txt", f"1 2\n-3 1\n4 5\n6 {2**63}\n", 4, "ids below 0 and ids from 2^63 on (see line 2)"),
        ("g.txt", f"{2**64 - 1} 2\n5 -1\nx 1\n", 2, "ids below 0 and ids from 2^63 on (see line 1)"),
        ("g.txt", "1 2\n3 --4\n", 2, "'--4' is not an integer"),
        ("g.txt", "1 2\n3 -4-5\n", 2, "'-4-5' is not an integer"),
        ("g.lg", f"t # 1\nv 0 1\nv {2**64} 1\n", 3, "2^63 or more"),
        ("g.lg", f"t # 1\nv 0 1\nv 1 1\ne 0 1 {2**64}\n", 4, "2^63 or more"),
        ("g.mtx", MTX + f"3 3 1\n1 {2**64 * 10}\n", 3, "2^63 or more"),
        ("g.mtx", MTX + f"{2**63} {2**63} 1\n1 2\n", 2, "a size is 2^63 or more"),
        ("g.mtx", MTX + f"3 3 {'1' * 5000}\n1 2\n", 2, "a size is 2^63 or more"),
        ("g.graph", f"t 2 {'1' * 5000}\nv 0 1 1\nv 1 1 1\ne 0 1\n", 1, "announces 2^63 or more"),
        ("g.txt", "1 2\n2 3\0\n", 2, "binary data"),
        ("g.txt", "# c\n# \1 \n1 2\n", 2, "binary data (byte 0x01)"),
        ("g.txt", "1 2\n\xff\xfe 3\n", 2, "binary data (byte 0xff)"),
        ("g.lg", "t # 1\nv 0 1\n\x80\x81\n", 3, "binary data (byte 0x80)"),
        ("g.txt", "1 2\n3 \xc3\xa9\n", 2, "'\u00e9' is not an integer; write whole numbers, or set graph.ids"),
        ("g.txt", "\x7fELF\x02\x01\x01\0\0", 1, "binary data"),
        ("g.csv", "PK\x03\x04 1 2", 1, "binary data"),
        ("g.csv", "\xff\xfea\0,\0b\0\n\0c\0,\0d\0\n\0", 1, "this text is UTF-16"),
        ("g.csv", "\xfe\xff\0a\0,\0b\0\n\0c\0,\0d\0\n", 1, "this text is UTF-16"),
        ("g.csv", "a\0,\0b\0\n\0c\0,\0d\0\n\0", 1, "this text is UTF-16"),
        ("g.txt", "1 2\r3 4\r", 1, "carriage return"),
        ("g.mtx", "1 2\n2 3\n", 1, "not a Matrix Market header"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern\n2 2 1\n1 2\n", 1, "not a Matrix Market header"),
        ("g.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", 1, "'array' cannot be read"),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 0 0\n",
            1,
            "'complex' cannot",
        ),
        ("g.mtx", "%%MatrixMarket matrix coordinate real hermitian\n2 2 1\n1 2 0\n", 1, "'hermitian' cannot"),
        ("g.mtx", MTX + "%\n2 2\n1 2\n", 3, "three sizes"),
        ("g.mtx", MTX, 2, "three sizes"),
        ("g.mtx", MTX + "2 3 1\n1 2\n", 2, "square"),
        ("g.mtx", MTX + "2 2 1\n1 3\n", 3, "outside 1..2"),
        ("g.mtx", MTX + "2 2 1\n0 1\n", 3, "outside 1..2"),
        ("g.mtx", MTX + "3 3 2\n1 2\n", 2, "2 entries are announced but the file has 1"),
        ("g.mtx", MTX + "3 3 1\n1 2\n2 3\n", 2, "1 entries are announced but the file has 2"),
        ("g.graph", "v 0 1 1\nv 1 1 1\ne 0 1\n", 1, "not the header"),
        ("g.graph", "t 2 x\nv 0 1 1\nv 1 1 1\ne 0 1\n", 1, "not the header"),
        ("g.graph", "t 3 1\nv 0 1 1\nv 1 1 1\ne 0 1\n", 1, "3 vertices are announced but the file has 2"),
        ("g.graph", "t 2 2\nv 0 1 1\nv 1 1 1\ne 0 1\n", 1, "2 edges are announced but the file has 1"),
        ("g.graph", "t 2 1\nv 0 1 1\nv 1 1 1\ne 0 5\n", 4, "vertex 5 is not declared"),
        ("g.graph", "t 2 1\nv 0 1 1\nx 1 1 1\ne 0 1\n", 3, "neither a vertex"),
        ("g.graph", "t 2 1\nv 0 1 1\nv 1 1 1\ne 0\n", 4, "too few columns"),
        ("g.lg", "t 2 1\nv 0 1\n", 1, "not the header"),
        ("g.lg", "t # 0\nv 0 1\nv 1 2\nv 0 2\ne 0 1\n", 4, "declared a second time"),
        ("g.graph", "t 3 1\nv 0 1 1\ne 0 1\nv 1 2 1\nv 1 2 1\n", 5, "vertex 1 is declared a second time"),
        ("g.lg", "t # 0\nv 0 1\nv 1 2\ne 5 5\ne 0 1\ne 1 7\ne 6 0\n", 6, "vertex 7 is not declared"),
        ("g.lg", "e 0 1\n", 1, "vertex 0 is not declared"),
        ("g.lg", "t # 0\nv 0 1\nv 1 2\ne 0 1\nt # 1\nv 0 1\n", 5, "starts another graph"),
        ("g.lg", "t # 0\nv 0 1\nv 1 2\nv 2 2\ne 0 1 1\ne 1 2\n", 6, "no label"),
        ("g.lg", f"t # 0\nv 0 1\nv 1 2\ne 0 1 {2**31}\n", 4, "2^31"),
        ("g.lg", f"t # 0\nv 0 {2**31}\nv 1 2\ne 0 1\n", 2, "out of range"),
        ("g.lg", "t # 0\nv 0 1\nv a 1\ne 0 1\n", 3, "'a' is not an integer"),
    ],
)
def test_bad_line(tmp_path: Path, name: str, content: str, line: int, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    message = refusal(path)
    assert message.startswith(f"{path}, line {line}: ")
    assert says in message


def test_line_number_past_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "LEAST_BLOCK", 64)
    monkeypatch.setattr(text_file, "LARGEST_BLOCK", 64)
    path = tmp_path / "g.txt"
    path.write_text("1 2\n# c\n" * 500 + "7\n" + "1 2\n" * 500 + "x\n")
    assert refusal(path).startswith(f"{path}, line 1001: too few columns")


def test_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "LEAST_BLOCK", 64)
    monkeypatch.setattr(text_file, "LARGEST_BLOCK", 64)
    path = tmp_path / "g.txt"
    for lines in ("1 2\n", "# a\n", "1 2\n" * 50):
        path.write_text(lines + "3 " * 100)
        assert refusal(path).startswith(f"{path}, line {len(lines) // 4 + 1}: longer than 64 bytes")


@each_case(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "there are no edges"),
        ("\n\n", "there are no edges"),
    ],
)
@each_case("suffix", [".txt", ".csv", ".txt.gz"])
def test_no_edges(tmp_path: Path, content: str, says: str, suffix: str) -> None:
    path = tmp_path / f"g{suffix}"
    path.write_bytes(gzip.compress(content.encode()) if suffix.endswith(".gz") else content.encode())
    message = refusal(path)
    assert message.startswith(f"{path}: ")
    assert (says if content or suffix != ".txt.gz" else "there are no edges") in message


@each_case(
    ("name", "content"),
    [
        ("g.mtx", MTX + "0 0 0\n"),
        ("g.mtx", MTX + "0 0 0\n% c\n\n"),
        ("g.csv", "source,target\n"),
        ("g.graph", "t 0 0\n"),
        ("g.gspan", "t # 0\n"),
        ("g.col", "p edge 0 0\n"),
        ("g.col", "p edge 5 3\n"),
        ("g.gml", "graph [ ]"),
        ("g.gexf", "<gexf><graph/></gexf>"),
        ("g.lg", "t # 1\n"),
        ("end.lg", "t # -1\nv 0 1\nv 1 1\ne 0 1\n"),
        ("e.lg", "\n"),
    ],
)
def test_no_edges_in_other_formats(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert "there are no edges" in refusal(tmp_path / name)


def test_missing_file(tmp_path: Path) -> None:
    for name in ("none.txt", "none.parquet", "none.mtx.gz", "none/none.txt"):
        assert "there is no such file" in refusal(tmp_path / name)


def test_folder(tmp_path: Path) -> None:
    assert "this is a folder" in refusal(tmp_path)
    (tmp_path / "g.txt").write_text("1 2\n")
    assert "this is a folder" in refusal(tmp_path / "g.txt", tmp_path)


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    nul, length = "has a NUL character", "is too long for a path"
    for name, said in {"a\0b.txt": nul, "n" * 5000: length, "a\0b.parquet": nul, "a\0b.graph": nul}.items():
        assert said in refusal(tmp_path / name)
        assert said in refusal(tmp_path / "g.txt", tmp_path / name)


@pytest.mark.parametrize("name", ["g.txt", "g.parquet", "g.mtx.gz", "g.lg"])
def test_pipes_and_devices(tmp_path: Path, name: str) -> None:
    (tmp_path / "good.txt").write_text("1 2\n")
    os.mkfifo(tmp_path / f"pipe-{name}")
    (tmp_path / f"device-{name}").symlink_to("/dev/zero")
    for kind in ("pipe", "device"):
        path = tmp_path / f"{kind}-{name}"
        assert refusal(path).startswith(f"{path}: this is not a regular file")
        assert refusal(tmp_path / "good.txt", path).startswith(f"{path}: this is not a regular file")


def test_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    assert "cannot be read" in refusal(tmp_path / "g.txt" / "x.txt")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2\n")
    if os.geteuid() == 0:  # root reads everything
        open_file = os.open

        def deny(file: str | Path, *args: Any, **options: Any) -> int:
            if file == path:
                raise PermissionError(errno.EACCES, "Permission denied", str(file))
            return open_file(file, *args, **options)

        monkeypatch.setattr(os, "open", deny)
    else:
        path.chmod(0)
    assert "no permission to read" in refusal(path)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("keep", [0.999, 0.5, 0.01])
def test_truncated_compression(tmp_path: Path, suffix: str, keep: float) -> None:
    content = "".join(f"{u} {u * 7919 % 10007}\n" for u in range(20_000)).encode()
    data = gzip.compress(content) if suffix == ".gz" else pa.compress(content, codec="zstd", asbytes=True)
    path = tmp_path / f"g.txt{suffix}"
    path.write_bytes(data[: int(len(data) * keep)])
    assert "truncated or damaged" in refusal(path)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_not_compressed_at_all(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"g.txt{suffix}"
    path.write_text("1 2\n2 3\n")
    assert "truncated or damaged" in refusal(path)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damaged_compression(tmp_path: Path, suffix: str) -> None:
    content = "".join(f"{u} {u * 7919 % 10007}\n" for u in range(20_000)).encode()
    data = gzip.compress(content) if suffix == ".gz" else pa.compress(content, codec="zstd", asbytes=True)
    path = tmp_path / f"g.txt{suffix}"
    path.write_bytes(data[:100] + bytes(100) + data[200:])
    refusal(path)


def test_compressed_data_under_a_text_name(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(gzip.compress(b"1 2\n"))
    assert "binary data (byte 0x1f)" in refusal(path)


@each_case(
    ("columns", "says"),
    [
        (
            {"src": pa.array([2**63, 1], pa.uint64()), "dst": [2, -3]},
            "row 2: column dst holds -3, and another column ids from 2^63 on",
        ),
        ({"src": [1, 2], "dst": [2, None]}, "row 2: column dst is empty"),
        (
            {"src": [1.0, 2.0], "dst": [2, 3]},
            "two columns of integers or texts are needed, the columns are src (double), dst",
        ),
        ({"source": ["a"], "target": [2]}, "columns source and target hold string and int64; give both the same type"),
        ({"x": [1], "y": [2], "z": [3]}, "it is not clear which columns are meant: x, y, z; say which two to read"),
        ({"u": [1], "v": [2], "from": [3], "to": [4]}, "more than one pair of columns could be meant"),
        ({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())}, "there are no edges"),
    ],
)
def test_bad_parquet(tmp_path: Path, columns: dict[str, list[int]], says: str) -> None:
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table(columns), path)
    message = refusal(path)
    assert message.startswith(str(path))
    assert says in message


@each_case(
    ("name", "says"),
    [
        ("g.jsonl", ".jsonl files are not read; Longwall reads edge lists"),
        ("*.csv", "no file matches this pattern"),
        ("folder", "this is a folder without files, and no graph store"),
    ],
)
def test_what_is_not_read_is_named_with_what_is(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    if name == "folder":
        (tmp_path / name).mkdir()
    elif "*" not in name:
        (tmp_path / name).write_bytes(b"1 2\n")
    assert refusal(tmp_path / name).startswith(f"{tmp_path / name}: ")
    assert says in refusal(tmp_path / name)


@each_case(
    ("name", "columns", "says"),
    [
        ("g.csv", ("a", "x"), ", line 1: there is no column x; the columns are a, b, c, b"),
        ("g.csv", ("a", "b"), ", line 1: more than one column is named b"),
        ("g.csv", ("a", "a"), ": columns: give two different names"),
        ("g.csv", ("a",), ": columns: give two different names"),
        ("plain.csv", ("a", "b"), ", line 1: there is no column a; the columns are 1, 2, 3"),
        ("g.parquet", ("a", "c"), ": column c holds double; choose a column of integers"),
        ("g.parquet", ("a", "A"), ": there is no column A"),
        ("g.lg", ("a", "b"), ": columns are chosen in edge lists and Parquet files, not in the format lg"),
    ],
)
def test_columns_that_cannot_be_chosen(tmp_path: Path, name: str, columns: tuple[str, str], says: str) -> None:
    path = tmp_path / name
    if name == "g.parquet":
        pq.write_table(pa.table({"a": [1], "b": [2], "c": [0.5]}), path)
    else:
        path.write_text({"g.csv": "a,b,c,b\n1,2,3,4\n", "plain.csv": "1,2,3\n"}.get(name, "t # 1\n"))
    with pytest.raises(InputError) as caught:
        load_graph(path, table=TableOptions(columns))
    assert str(caught.value).startswith(f"{path}{says}")


@pytest.mark.parametrize("content", [b"", b"1 2\n", b"PAR1" * 20])
def test_text_as_parquet(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "g.parquet"
    path.write_bytes(content)
    assert "not a complete Parquet file" in refusal(path)


@each_case(
    ("labels", "says"),
    [
        ("1 0\n3 0\n", ": vertex 2 has an edge but no label"),
        ("1 0\n2 0\n", ": vertex 3 has an edge but no label"),
        ("1 0\n# c\n2 0\n3 0\n2 1\n1 1\n", ", line 5: vertex 2 is labelled a second time"),
        (f"1 0\n2 {2**31}\n3 0\n", ", line 2: label 2147483648 is out of range"),
        ("1 0\n2 -1\n3 0\n", ", line 2: negative number -1"),
        (f"1 0\n2 {2**64}\n3 0\n", f", line 2: {2**64} is 2^64 or more"),
        (f"1 0\n2 {2**63}\n3 0\n", f", line 2: {2**63} is 2^63 or more"),
        ("1 0\n2\n3 0\n", ", line 2: the label is missing in '2'"),
        ("# none\n", ": vertex 2 has an edge but no label"),
        ("", ": the file is empty"),
    ],
)
def test_bad_labels(tmp_path: Path, labels: str, says: str) -> None:
    path, label_path = tmp_path / "g.txt", tmp_path / "labels.txt"
    path.write_text("1 2\n2 3\n")
    label_path.write_text(labels)
    assert refusal(path, label_path).startswith(f"{label_path}{says}")


@pytest.mark.parametrize(("labels", "line"), [("1 0\n2 0\n3 0\n4 0\n5 0\n", 5), ("0 0\n1 0\n2 0\n3 0\n", 1)])
def test_labels_of_vertices_that_the_file_does_not_have(tmp_path: Path, labels: str, line: int) -> None:
    """A Matrix Market file says which vertices there are, so that labels that begin at 0 are seen."""
    path, label_path = tmp_path / "g.mtx", tmp_path / "labels.txt"
    path.write_text(MTX + "4 4 2\n1 2\n2 3\n")
    label_path.write_text(labels)
    message = refusal(path, label_path)
    assert message.startswith(f"{label_path}, line {line}: vertex ")
    assert "does not exist, the graph's ids go from 1 to 4; remove the line or use the graph's own ids" in message


def test_labels_of_a_parquet_file_name_the_row(tmp_path: Path) -> None:
    path, labels = tmp_path / "g.mtx", tmp_path / "labels.parquet"
    path.write_text(MTX + "3 3 2\n1 2\n2 3\n")
    pq.write_table(pa.table({"vertex": [1, 2, 3, 4], "label": [0, 0, 0, 0]}), labels)
    assert refusal(path, labels).startswith(f"{labels}, row 4: vertex 4 does not exist")


def test_missing_labels(tmp_path: Path) -> None:
    """They are missed before the graph is read, which may take long."""
    (tmp_path / "g.txt").write_text("1 2\nx\n")
    for name in ("none.txt", "none.parquet"):
        assert refusal(tmp_path / "g.txt", tmp_path / name).startswith(f"{tmp_path / name}: there is no such file")
    with pytest.raises(InputError, match=r"none\.txt: there is no such file"):
        load_graph(tmp_path / "g.txt", transactions=tmp_path / "none.txt")


def test_labels_given_twice(tmp_path: Path) -> None:
    path, labels = tmp_path / "g.graph", tmp_path / "labels.txt"
    path.write_text("t 2 1\nv 0 1 1\nv 1 1 1\ne 0 1\n")
    labels.write_text("0 1\n1 1\n")
    assert "labels of its own" in refusal(path, labels)


def test_edge_labels_that_disagree(tmp_path: Path) -> None:
    path = tmp_path / "g.lg"
    path.write_text("t # 1\nv 3 1\nv 8 1\ne 3 8 1\ne 8 3 2\n")
    assert "edge 3-8 is given twice with different labels (1 and 2)" in refusal(path)


@each_case(
    ("name", "content", "says"),
    [
        ("g.json", '{"links": [{"source": 1,\n"target": }]}', "g.json, line 2: this is not complete JSON"),
        ("g.metis", "3 2\n2 3\n1 x\n1\n", "g.metis, line 3: 'x' is not an integer"),
        ("g.graph", "3 2\n2 3\n4\n1\n", "g.graph, line 3: vertex 2 has the neighbour '4'"),
        ("g.net", "*Vertices 3\n*Edges\n1 4\n", "g.net, line 3: vertex '4' is outside 1..3"),
        ("g.col", "p edge 3 1\ne 1 4\n", "g.col, line 2: the edge 1 4 is outside 1..3"),
        ("g.xz", "1 2\n", "g.xz: the xz data is truncated or damaged"),
        ("g.bz2", "1 2\n", "g.bz2: the bzip2 data is truncated or damaged"),
        ("g.zip", "1 2\n", "g.zip: this is not a complete zip archive"),
        ("g.csv", 'source,target,a\n1,2,"b\n3,4,c\n', "g.csv, line 2: a quote that is not closed"),
    ],
)
def test_a_command_ends_with_code_2_and_one_sentence(tmp_path: Path, name: str, content: str, says: str) -> None:
    (tmp_path / name).write_text(content)
    ran = CliRunner().invoke(app, ["info", str(tmp_path / name)])
    assert ran.exit_code == 2
    *notes, error = ran.stderr.strip().splitlines()
    assert error.startswith("error: ")
    assert says in error
    assert len(notes) == (name == "g.csv"), "the columns that are read"
