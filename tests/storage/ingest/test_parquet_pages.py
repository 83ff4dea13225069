"""Parquet files whose footer or pages claim more than there is: refused before Arrow allocates it."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest
from longwall.storage.ingest.tables.parquet import open_parquet
from longwall.storage.ingest.tables.parquet_pages import (
    Damaged,
    TooLarge,
    check_pages,
    first_leaves,
    read_footer,
    thrift_limits,
)

CODECS = ["none", "zstd"]
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"use_dictionary": False},
    {"data_page_version": "2.0"},
    {"data_page_size": 100, "row_group_size": 70, "write_page_checksum": True},
]


def written(rows: int = 300, **options: Any) -> bytes:
    file = io.BytesIO()
    values = np.random.default_rng(1).integers(0, 90, rows)
    pq.write_table(pa.table({"u": values, "v": values, "name": ["x" * 9] * rows}), file, **options)
    return file.getvalue()


def checked(content: bytes, memory: int = 2**23) -> int:
    file = io.BytesIO(content)
    return check_pages(file, len(content), read_footer(file, len(content), 2**24), (0, 1), memory)


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def first_page(content: bytes) -> int:
    chunk = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)


def end_of_number(content: bytes, at: int) -> int:
    while content[at] > 127:
        at += 1
    return at + 1


def claim(content: bytes, field: int, value: int) -> bytes:
    """Let the first page's header claim another size (field 2), compressed size (3), or number of values (4)."""
    at = end_of_number(content, first_page(content) + 1)  # behind the page's kind
    for _ in range(field - 2):
        at = end_of_number(content, at + 1)
    if field == 4:
        at = content.index(b"\x15", at)
    return content[: at + 1] + varint(2 * value) + content[end_of_number(content, at + 1) :]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_whole_files_pass_and_their_largest_pages_are_known(codec: str, layout: dict[str, Any]) -> None:
    content = written(compression=codec, **layout)
    small = checked(content)
    assert 100 < small < 20_000
    with pytest.raises(TooLarge, match="a page of row group"):
        checked(content, small - 1)
    large = checked(written(200_000, compression=codec, **layout))
    assert large > small
    assert checked(content, small) == small


@each_case("codec", CODECS)
@each_case("layout", LAYOUTS[:3])
@each_case("field", [2, 3, 4])
@each_case("value", [2**31 - 1, 2**20, 2**40])
def test_no_claim_is_believed(codec: str, layout: dict[str, Any], field: int, value: int) -> None:
    with pytest.raises((Damaged, TooLarge)):
        checked(claim(written(compression=codec, **layout), field, value), 2**20)


@pytest.mark.parametrize("field", [2, 3, 4])
def test_a_damaged_file_is_refused_before_its_pages_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: int
) -> None:
    path = tmp_path / "g.parquet"
    path.write_bytes(claim(written(), field, 2**31 - 1))

    def read(*args: Any, **options: Any) -> None:
        raise AssertionError("the pages are read")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", read)
    with pytest.raises(InputError, match="not a complete Parquet file"):
        list(open_parquet(FileRequest(path, 2**24, 2)).blocks)


def with_footer(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    length = int.from_bytes(content[-8:-4], "little")
    footer = change(content[-8 - length : -8])
    return content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_lists_of_the_footer_are_no_longer_than_the_footer() -> None:
    content = written()
    footer = read_footer(io.BytesIO(content), len(content), 2**24)
    size = len(footer)
    assert thrift_limits(footer, 2**24) == {"thrift_string_size_limit": size, "thrift_container_size_limit": size}
    assert thrift_limits(footer, 2**17)["thrift_container_size_limit"] == 2**7
    long = with_footer(content, lambda footer: footer.replace(b"\x19\x4c", b"\x19\xfc" + varint(999_999), 1))
    assert long != content
    limits = thrift_limits(footer, 2**24)
    with pytest.raises(OSError, match="Exceeded size limit"):
        pq.ParquetFile(io.BytesIO(long), **limits)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1\x00\x00\x00\x00PAR1", b"PAR1\xff\xff\xff\x7fPAR1", b"x" * 99])
def test_files_without_a_footer(content: bytes) -> None:
    with pytest.raises(Damaged):
        read_footer(io.BytesIO(content), len(content), 2**24)


@pytest.mark.slow
def test_a_footer_that_does_not_fit_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    columns = {f"c{at}": [1] for at in range(12_000)}
    pq.write_table(pa.table({"u": [1], "v": [2], **columns}), path)
    with pytest.raises(
        InputError, match=r"list of its row groups and columns takes .* MiB, too much .*raise memory\.host"
    ):
        list(open_parquet(FileRequest(path, 2**21, 2)).blocks)
    assert [block.dst.tolist() for block in open_parquet(FileRequest(path, 2**26, 2)).blocks] == [[2]]


def test_pages_that_do_not_fit_are_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    values = np.random.default_rng(1).integers(0, 2**62, 2**20)  # a dictionary of 8 MiB, which is decoded, each
    pq.write_table(pa.table({"u": values, "v": values}), path, dictionary_pagesize_limit=2**26)
    with pytest.raises(InputError, match=r"a page of row group 1 takes 64 MiB, too much .*raise memory\.host"):
        list(open_parquet(FileRequest(path, 2**24, 2)).blocks)
    assert sum(len(block.src) for block in open_parquet(FileRequest(path, 2**27, 2)).blocks) == len(values)


def test_rows_that_the_footer_leaves_out_are_missed() -> None:
    content = written(row_group_size=100)
    rows = varint(2 * 300)
    short = with_footer(content, lambda footer: footer.replace(b"\x16" + rows, b"\x16" + varint(2 * 200), 1))
    with pytest.raises(Damaged):
        checked(short)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    content = written(store_schema=False)
    path.write_bytes(with_footer(content, lambda footer: footer.replace(b"name", b"n\xffme")))
    with pytest.raises(InputError, match="a column has a name that is not UTF-8"):
        list(open_parquet(FileRequest(path, 2**24, 2)).blocks)
    names = {"a\nb": [1], "b" * 100: [2], "": [3]}
    pq.write_table(pa.table(names), path)
    with pytest.raises(InputError, match=r"'a\\nb', b{40}\.\.\., ''; say which two") as caught:
        list(open_parquet(FileRequest(path, 2**24, 2)).blocks)
    assert "\n" not in str(caught.value)


def dotted(path: Path, values: npt.NDArray[np.int64], **options: Any) -> None:
    """Write columns whose paths are alike: field b of a struct a, and a column a.b."""
    structs = pa.nulls(len(values), pa.struct([("b", pa.int64()), ("c", pa.string())]))
    lists = pa.array([[{"d": 1, "e": 2}]] * len(values))
    columns = {"a": structs, "": lists, "x": values, "a.b": values, "w": values, "zeros": 0 * values}
    pq.write_table(pa.table(columns), path, compression="none", **options)


DOTTED = ColumnRequest(EDGES, ("a.b", "w"))


@pytest.mark.parametrize("columns", [("a.b", "w"), ("w", "a.b"), ("x", "a.b")])
def test_columns_are_found_whatever_other_columns_have_their_paths(tmp_path: Path, columns: tuple[str, str]) -> None:
    path = tmp_path / "g.parquet"
    dotted(path, np.arange(50))
    with path.open("rb") as file:
        assert first_leaves(read_footer(file, path.stat().st_size, 2**24)) == [0, 2, 4, 5, 6, 7]
    (block,) = open_parquet(FileRequest(path, 2**24, 2, columns=ColumnRequest(EDGES, columns))).blocks
    assert block.src.tolist() == block.dst.tolist() == list(range(50))


def test_only_the_columns_that_were_checked_are_read(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    dotted(path, np.arange(50), write_page_checksum=True)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    content = bytearray(path.read_bytes())
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content[begin + chunk.total_compressed_size - 1] ^= 1  # in the page of field b
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        pq.ParquetFile(path, page_checksum_verification=True).read(["a.b"])
    (block,) = open_parquet(FileRequest(path, 2**24, 2, columns=DOTTED)).blocks
    assert block.src.tolist() == list(range(50))


def test_the_pages_of_a_column_are_checked_whatever_other_columns_have_its_path(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    one_page = {"data_page_size": 2**30, "max_rows_per_page": 2**31 - 1, "write_batch_size": 2**20}
    dotted(path, np.arange(2**20), use_dictionary=["zeros"], **one_page)
    with pytest.raises(InputError, match=r"a page of row group 1 takes .* MiB, too much"):
        list(open_parquet(FileRequest(path, 2**24, 2, columns=ColumnRequest(EDGES, ("a.b", "zeros")))).blocks)
