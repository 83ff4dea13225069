"""Parquet files that are made by hand to take long or much: refused before they do."""

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.tables.parquet import open_parquet
from longwall.storage.ingest.tables.parquet_pages import Damaged, check_pages, read_footer

INT32, INT64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
Field = tuple[int, int, bytes]
"""Number, kind and content of a field of a struct."""

_DATA, _DICTIONARY = 0, 2  # kinds of pages
_PLAIN, _DELTA, _INDICES = 0, 5, 8  # encodings
_INT64_COLUMN = 2


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def integer(number: int, at: int, kind: int = INT32) -> Field:
    return at, kind, varint(2 * number)


def text(content: bytes) -> bytes:
    return varint(len(content)) + content


def struct(*fields: Field) -> bytes:
    """Write a struct in Thrift's compact protocol."""
    out, last = b"", 0
    for number, kind, content in fields:
        out += bytes([(number - last) << 4 | kind]) + content
        last = number
    return out + b"\0"


def items(kind: int, *content: bytes) -> bytes:
    return bytes([0xF0 | kind]) + varint(len(content)) + b"".join(content)


def page(kind: int, encoding: int, values: int, data: bytes) -> bytes:
    own = struct(integer(values, 1), integer(encoding, 2), integer(3, 3), integer(3, 4))
    header = 5 if kind == _DATA else 7
    return struct(integer(kind, 1), integer(len(data), 2), integer(len(data), 3), (header, STRUCT, own)) + data


def chunk(name: bytes, values: int, first: int, dictionary: int = 0) -> bytes:
    """Describe a column chunk; `first` is where its first data page begins."""
    meta = [
        integer(_INT64_COLUMN, 1),
        (2, LIST, items(INT32, varint(0))),
        (3, LIST, items(BINARY, text(name))),
        integer(0, 4),
        integer(values, 5, INT64),
        integer(9, 6, INT64),
        integer(9, 7, INT64),
        integer(first, 9, INT64),
        *([integer(dictionary, 11, INT64)] if dictionary else []),
    ]
    return struct(integer(0, 2, INT64), (3, STRUCT, struct(*meta)))


def group(rows: int, *chunks: bytes) -> bytes:
    return struct((1, LIST, items(STRUCT, *chunks)), integer(9, 2, INT64), integer(rows, 3, INT64))


def whole(body: bytes, rows: int, *groups: bytes) -> bytes:
    """Write a file with two columns of integers."""
    root = struct((4, BINARY, text(b"schema")), integer(2, 5))
    columns = [struct(integer(_INT64_COLUMN, 1), integer(0, 3), (4, BINARY, text(name))) for name in (b"u", b"v")]
    schema = items(STRUCT, root, *columns)
    footer = struct(integer(1, 1), (2, LIST, schema), integer(rows, 3, INT64), (4, LIST, items(STRUCT, *groups)))
    return b"PAR1" + body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


class CountedFile(io.BytesIO):
    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


def checked(file: CountedFile) -> int:
    size = len(file.getvalue())
    return check_pages(file, size, read_footer(file, size, 2**24), (0, 1), 2**23)


def test_row_groups_that_share_their_pages_are_refused_soon() -> None:
    body = page(_DATA, _PLAIN, 0, b"") * 500 + page(_DATA, _PLAIN, 1, b"\0" * 8)
    shared = group(1, chunk(b"u", 1, 4), chunk(b"v", 1, 4))
    file = CountedFile(whole(body, 500, *[shared] * 500))
    with pytest.raises(Damaged):
        checked(file)
    assert len(file.getvalue()) < 2**16
    assert file.reads < 5000
    alone = CountedFile(whole(body + body, 1, group(1, chunk(b"u", 1, 4), chunk(b"v", 1, 4 + len(body)))))
    assert checked(alone) == 2 * (8 + 8)
    assert alone.reads < 1010


VALUES = b"".join(number.to_bytes(8, "little") for number in range(1000))


def delta(block: int, parts: int, values: int, rest: bytes) -> bytes:
    """Write a page's data: values of a block, parts of a block, values, the first value, and what follows."""
    return varint(block) + varint(parts) + varint(values) + varint(10) + rest


@each_case("rest", [b"", b"\0", b"\0" * 200_000], ids=["nothing", "a block", "zeros"])
@each_case(
    ("block", "parts", "values"),
    [
        (2**31, 2**26, 1000),
        (2**32 - 128, (2**32 - 128) // 32, 1000),
        (2**32 - 128, 1, 1000),
        (128, 2**32 - 1, 1000),
        (128, 4, 2**32 - 1),
        (128, 0, 1000),
        (0, 0, 0),
    ],
)
def test_claims_in_the_data_of_a_page_take_no_memory(
    tmp_path: Path, block: int, parts: int, values: int, rest: bytes
) -> None:
    require_little(tmp_path / "g.parquet", [page(_DATA, _DELTA, 1000, delta(block, parts, values, rest))])


@each_case("width", [1, 10, 32, 33, 255])
@each_case("run", [2 * 10**9, 2 * (10**9 // 8) + 1, 2 * 1000, 2**32 - 1])
def test_indices_into_a_dictionary_take_no_memory(tmp_path: Path, width: int, run: int) -> None:
    data = bytes([width]) + varint(run) + b"\xff" * 40
    require_little(tmp_path / "g.parquet", [page(_DICTIONARY, _PLAIN, 1000, VALUES), page(_DATA, _INDICES, 1000, data)])


def require_little(path: Path, pages: list[bytes]) -> None:
    """Read a file whose two columns have these pages each: its rows come, or it is refused, with little memory."""
    pq.write_table(pa.table({"u": [1], "v": [2]}), path)
    list(open_parquet(FileRequest(path, 2**24, 1)).blocks)  # imports take memory, too
    begin = 4 + len(b"".join(pages))
    firsts = [at + len(b"".join(pages[:-1])) for at in (4, begin)]
    dictionaries = (4, begin) if len(pages) > 1 else (0, 0)
    columns = [
        chunk(name, 1000, *at) for name, at in zip((b"u", b"v"), zip(firsts, dictionaries, strict=True), strict=True)
    ]
    path.write_bytes(whole(b"".join(pages) * 2, 1000, group(1000, *columns)))
    before = memory_peak(anew=True)
    with suppress(InputError):
        assert sum(block.src.size for block in open_parquet(FileRequest(path, 2**24, 1)).blocks) == 1000
    assert memory_peak() - before < 2**25


@pytest.mark.parametrize("repeated", ["", "x" * 50_000])
def test_many_texts_of_a_row_group_are_not_held_at_once(tmp_path: Path, repeated: str) -> None:
    names = [f"{repeated}{at % 7 if repeated else at}" for at in range(700)]
    names += [f"a vertex whose name is as long as an address {at}" for at in range(100_000)]
    path = tmp_path / "g.parquet"
    for rows in (1000, len(names)):  # imports and kernels take memory, too
        pq.write_table(pa.table({"u": names[:rows], "v": names[:rows]}), path, data_page_size=2**14)
        before = memory_peak(anew=True)
        assert sum(block.src.size for block in open_parquet(FileRequest(path, 2**24, 1)).blocks) == rows
    assert memory_peak() - before < 2**25


@each_case("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@each_case("memory", [2**16, 2**26])
def test_texts_of_all_encodings_are_read(tmp_path: Path, encoding: str, memory: int) -> None:
    names = [f"a name {at}" for at in range(9000)]
    table = pa.table({"u": names, "v": ["b", *names[:-1]]})
    pq.write_table(table, tmp_path / "g.parquet", use_dictionary=False, column_encoding=encoding, data_page_size=2**10)
    blocks = list(open_parquet(FileRequest(tmp_path / "g.parquet", memory, 2)).blocks)
    src, dst = (np.concatenate([getattr(block, end) for block in blocks]) for end in ("src", "dst"))
    assert np.array_equal(src[:-1], dst[1:])
    assert len(src) == len(np.unique(src)) == 9000


def memory_peak(*, anew: bool = False) -> int:
    """Return the most bytes that the process has held at a time, or `anew` those that it holds now."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


@each_case("index", [[0, 2], [-1, 0]])
def test_a_text_that_its_dictionary_lacks_is_refused(index: list[int]) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), ["a", "b"], safe=False)
    with pytest.raises(InputError, match="column source is damaged, as it has texts that its dictionary lacks"):
        longwall.graph(pa.table({"source": column, "target": ["c", "d"]}))
