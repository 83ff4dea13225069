"""Write columns of prefix trees as Parquet, with work for each value of the tree and not for each row.

To number values (dictionary indices), Arrow looks up each value of each row in a hash table, which takes half of the
time of a listing. A value of an upper level of a tree stands for many rows, and is numbered once. The schema in the
footer is Arrow's.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.column_pages import (
    MOST_NUMBERS,
    hash_table,
    literals_room,
    number_values,
    pack_numbers,
    pack_runs,
    page_room,
)
from longwall.storage.hashed_file import HashedFile
from longwall.storage.ingest.tables.parquet_pages import read_footer
from longwall.storage.ingest.tables.thrift import (
    BINARY,
    INT16,
    INT32,
    INT64,
    LIST,
    STRUCT,
    TRUE,
    Cursor,
    encoded,
)
from longwall.storage.tables.embedding_table import EmbeddingTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

_MAGIC = b"PAR1"
_PAGE_ROWS = 1 << 17  # of numbers
_PLAIN_ROWS = 1 << 15  # of values

# The numbers of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
_INT64_TYPE, _ZSTD = 2, 6
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_ROWS, _ROW_GROUPS = 3, 4  # fields of the footer


@dataclass(frozen=True)
class TreeRows:
    """Rows of a prefix tree as columns of ids.

    Attributes
    ----------
    table
        The tree, on the host.
    levels
        The level of each column.
    ids : int64[num_vertices] or uint64[num_vertices]
        The id of each vertex.
    """

    table: EmbeddingTable
    levels: tuple[int, ...]
    ids: NDArray[Any]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.table)

    def slice(self, begin: int, length: int) -> TreeRows:
        """Return at most `length` rows from `begin` on, as `RecordBatch.slice` does."""
        return TreeRows(self.table.sliced(begin, min(begin + length, len(self.table))), self.levels, self.ids)


class TreeSink:
    """A Parquet file of columns of int64 or uint64 that is written row group by row group.

    Parameters
    ----------
    path
        The file.
    schema
        The schema of the rows.
    level
        The level of the compression (Zstandard).
    """

    def __init__(self, path: Path, schema: pa.Schema, *, level: int):
        import pyarrow as pa

        self._names = schema.names
        self._footer = _empty_footer(schema)
        self._codec = pa.Codec("zstd", compression_level=level)
        self._table, self._literals = hash_table(), literals_room()
        self._distinct = np.empty(MOST_NUMBERS, np.uint32)
        self._numbers = np.empty(0, np.uint32)  # kept: new memory takes as long as the numbering
        self._groups: list[bytes] = []
        self._rows = 0
        self._file = HashedFile(path)
        self._at = self._file.write(_MAGIC)

    def write(self, parts: Sequence[TreeRows]) -> None:
        """Append rows as a row group."""
        rows, begin = sum(part.num_rows for part in parts), self._at
        chunks = [
            self._write_column(name, _Column.of(parts, part), parts[0].ids) for part, name in enumerate(self._names)
        ]
        group = {
            1: (LIST, (STRUCT, [{2: (INT64, 0), 3: (STRUCT, chunk)} for chunk in chunks])),
            2: (INT64, sum(chunk[6][1] for chunk in chunks)),
            3: (INT64, rows),
            5: (INT64, begin),
            6: (INT64, self._at - begin),
            7: (INT16, len(self._groups)),
        }
        self._groups.append(encoded(STRUCT, group))
        self._rows += rows

    def _write_column(self, name: str, column: _Column, ids: NDArray[Any]) -> dict[int, Any]:
        """Write the pages of a column, and return its metadata."""
        begin, plain, lowest, highest = self._at, 0, None, None
        numbers, count = self._numbered(column.values)
        if numbers is None:
            data_at, encodings = self._at, [_PLAIN, _RLE]
            for first in range(0, column.rows, _PLAIN_ROWS):
                page = column.rows_of(first, min(first + _PLAIN_ROWS, column.rows), ids)
                least, most = page.min(), page.max()
                lowest = least if lowest is None else min(lowest, least)
                highest = most if highest is None else max(highest, most)
                plain += self._write_page(_DATA_PAGE, page.size, _PLAIN, page.view(np.uint8))
        else:
            values = ids[self._distinct[:count]]
            lowest, highest = values.min(), values.max()
            plain += self._write_page(_DICTIONARY_PAGE, count, _PLAIN, values.view(np.uint8))
            data_at, encodings, width = self._at, [_PLAIN, _RLE, _RLE_DICTIONARY], max(1, (count - 1).bit_length())
            for size, packed in column.packed(numbers, width, self._literals):
                plain += self._write_page(_DATA_PAGE, size, _RLE_DICTIONARY, packed)
        assert lowest is not None
        assert highest is not None
        metadata: dict[int, Any] = {
            1: (INT32, _INT64_TYPE),
            2: (LIST, (INT32, encodings)),
            3: (LIST, (BINARY, [name.encode()])),
            4: (INT32, _ZSTD),
            5: (INT64, column.rows),
            6: (INT64, plain),
            7: (INT64, self._at - begin),
            9: (INT64, data_at),
        }
        if numbers is not None:
            metadata[11] = INT64, begin
        bounds: dict[int, Any] = {3: (INT64, 0), 5: (BINARY, highest.tobytes()), 6: (BINARY, lowest.tobytes())}
        metadata[12] = STRUCT, bounds | {7: (TRUE, None), 8: (TRUE, None)}
        return metadata

    def _numbered(self, values: Sequence[NDArray[np.uint32]]) -> tuple[NDArray[np.uint32] | None, int]:
        """Number values; return the numbers, and how many there are, or None if they are too many for a dictionary."""
        size, at, count = sum(some.size for some in values), 0, 0
        if size > self._numbers.size:
            self._numbers = np.empty(size, np.uint32)
        numbers = self._numbers[:size]
        self._table.fill(0)
        for some in values:
            count = number_values(some, self._table, self._distinct, count, numbers[at : at + some.size])
            if count < 0:
                return None, 0
            at += some.size
        return numbers, count

    def _write_page(self, kind: int, values: int, encoding: int, data: NDArray[np.uint8]) -> int:
        """Write a page; return its bytes before compression."""
        import pyarrow as pa

        packed = self._codec.compress(pa.py_buffer(data))
        checksum = zlib.crc32(packed)
        header: dict[int, Any] = {
            1: (INT32, kind),
            2: (INT32, data.size),
            3: (INT32, packed.size),
            4: (INT32, checksum - (checksum >> 31 << 32)),
        }
        of_values: dict[int, Any] = {1: (INT32, values), 2: (INT32, encoding)}
        if kind == _DICTIONARY_PAGE:
            header[7] = STRUCT, of_values
        else:
            header[5] = STRUCT, of_values | {3: (INT32, _RLE), 4: (INT32, _RLE)}
        head = encoded(STRUCT, header)
        self._at += self._file.write(head) + self._file.write(packed)
        return len(head) + data.size

    def finish(self) -> dict[str, Any]:
        """End the file, sync it to the disk, and return its rows, bytes and checksum, as a commit names them."""
        try:
            before, between, after = self._footer
            groups = encoded(LIST, (STRUCT, [])) if not self._groups else _list_of(self._groups)
            footer = before + encoded(INT64, self._rows) + between + groups + after
            self._file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
            return {"rows": self._rows} | self._file.finish()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Abandon the file as it is; nothing happens if it has ended."""
        self._file.abandon()


@dataclass(frozen=True)
class _Column:
    """A column of the rows of several trees.

    Attributes
    ----------
    values
        The vertices of the level in each tree.
    ends : int64[nodes]
        The end of the rows of each of these vertices; None: each has one row.
    rows
        The number of rows.
    """

    values: tuple[NDArray[np.uint32], ...]
    ends: NDArray[np.int64] | None
    rows: int

    @classmethod
    def of(cls, parts: Sequence[TreeRows], column: int) -> _Column:
        """Return a column of trees."""
        values, ends, rows = [], [], 0
        for part in parts:
            level, offsets = part.levels[column], part.table.offsets
            values.append(part.table.values[level])
            if level < len(offsets):
                bounds = offsets[level]
                for below in offsets[level + 1 :]:
                    bounds = below[bounds]
                ends.append(bounds[1:] + rows)
            rows += part.num_rows
        return cls(tuple(values), np.concatenate(ends) if ends else None, rows)

    def packed(
        self, numbers: NDArray[np.uint32], width: int, literals: NDArray[np.uint32]
    ) -> Iterable[tuple[int, NDArray[np.uint8]]]:
        """Yield the rows and the bytes of each page of dictionary indices; the next page overwrites the bytes."""
        out = np.empty(1 + page_room(min(self.rows, _PAGE_ROWS), width), np.uint8)
        out[0] = width
        for first in range(0, self.rows, _PAGE_ROWS):
            last = min(first + _PAGE_ROWS, self.rows)
            if self.ends is None:
                size = pack_numbers(numbers[first:last], width, out[1:])
            else:
                node = int(np.searchsorted(self.ends, first, side="right"))
                size = pack_runs(numbers[node:], self.ends[node:], first, last, width, literals, out[1:])
            yield last - first, out[: 1 + size]

    def rows_of(self, first: int, last: int, ids: NDArray[Any]) -> NDArray[Any]:
        """Return the ids of the rows `first` to `last` - 1."""
        starts = np.cumsum([0, *(some.size for some in self.values)])
        begin, end = first, last
        if self.ends is not None:
            begin = int(np.searchsorted(self.ends, first, side="right"))
            end = int(np.searchsorted(self.ends, last, side="left")) + 1
        parts = zip(self.values, starts.tolist()[:-1], strict=True)
        wanted = np.concatenate([some[max(begin - at, 0) : max(end - at, 0)] for some, at in parts])
        found: NDArray[Any] = ids[wanted]
        if self.ends is None:
            return found
        return np.repeat(found, np.diff(np.minimum(self.ends[begin:end], last), prepend=first))


def _list_of(structs: Sequence[bytes]) -> bytes:
    """Write a list of structs that are written already."""
    size = len(structs)
    head = encoded(LIST, (STRUCT, [{}] * size))  # an empty struct takes one byte
    return head[:-size] + b"".join(structs)


def _empty_footer(schema: pa.Schema) -> tuple[bytes, bytes, bytes]:
    """Return the footer that Arrow writes for a schema: before the number of rows, between it and the groups, after."""
    import pyarrow.parquet as pq

    made = BytesIO()
    pq.ParquetWriter(made, schema, compression="zstd").close()
    footer = read_footer(made, len(made.getvalue()), 1 << 30)
    cursor, places = Cursor(footer), {}
    for number, kind in cursor.fields():
        begin = cursor.at
        cursor.skip(kind)
        places[number] = begin, cursor.at
    (rows, rows_end), (groups, groups_end) = places[_ROWS], places[_ROW_GROUPS]
    return footer[:rows], footer[rows_end:groups], footer[groups_end:]
