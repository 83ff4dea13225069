"""What reading columns of a Parquet file takes, found before Arrow reads them.

Arrow allocates what the footer and the headers of pages claim before it looks whether the file holds that much. So a
damaged file of a few bytes could take gigabytes: here all claims are compared with the file and with each other.
Footer and headers are Thrift's compact protocol, https://github.com/apache/parquet-format.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

_MAGIC = b"PAR1"
_END = 8  # bytes of a file behind the footer: its length, the magic bytes
_FOOTER_COPIES = 8  # times its size, what a footer takes when it is read, and itself
_CONTAINER_BYTES = 1024  # of an element of the footer's lists
_FIRST_READ, _LARGEST_HEADER = 2**9, 2**16  # bytes of a page header
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_TYPE, _SIZE, _COMPRESSED = 1, 2, 3  # fields of a page header
_HEADER_OF = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}
_VALUES = 1  # in the header of each kind of page
_LEVELS = (5, 6)  # bytes of both kinds of levels, in a data page of version 2
_VALUE_BYTES = {"INT32": 4, "INT64": 8}
_DEEPEST = 8  # structs in structs

Header = dict[int, Any]


class Damaged(Exception):
    """The file's claims cannot be true."""


class TooLarge(Exception):
    """What has to be held at once does not fit; the message says what it is."""

    def __init__(self, what: str, size: int) -> None:
        super().__init__(what)
        self.size = size


def thrift_limits(file: BinaryIO, file_size: int, memory: int) -> dict[str, int]:
    """Return the limits for reading the footer, as arguments of `pyarrow.parquet.ParquetFile`.

    Raises
    ------
    Damaged
        There is no footer.
    TooLarge
        It takes more than `memory` bytes.
    """
    file.seek(max(0, file_size - _END))
    end = file.read(_END)
    footer = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or not 0 < footer <= file_size - _END - len(_MAGIC):
        raise Damaged
    if footer * _FOOTER_COPIES > memory:
        raise TooLarge("the list of its row groups and columns", footer * _FOOTER_COPIES)
    return {
        "thrift_string_size_limit": footer,
        "thrift_container_size_limit": max(1, min(footer, memory // _CONTAINER_BYTES)),
    }


def check_pages(file: BinaryIO, file_size: int, metadata: Any, columns: Sequence[int], memory: int) -> int:
    """Return the bytes that pages and dictionaries of columns take while they are read side by side.

    Parameters
    ----------
    file, file_size
        The file.
    metadata
        Its footer, as `pyarrow.parquet.ParquetFile` gives it.
    columns
        The columns, by their place among all leaves of the schema; each has one integer a row.
    memory
        Bytes that they may take.

    Raises
    ------
    Damaged
        The footer and the pages contradict each other, or the file.
    TooLarge
        They take more.
    """
    largest = rows = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        rows += row_group.num_rows
        here = 0
        for column in columns:
            chunk = row_group.column(column)
            if chunk.num_values != row_group.num_rows or chunk.physical_type not in _VALUE_BYTES:
                raise Damaged
            here += _chunk_bytes(file, file_size, chunk)
        if here > memory:
            raise TooLarge(f"a page of row group {group + 1}", here)
        largest = max(largest, here)
    if rows != metadata.num_rows:
        raise Damaged
    return largest


@dataclass
class _Page:
    kind: int
    size: int
    compressed: int
    values: int


def _chunk_bytes(file: BinaryIO, file_size: int, chunk: Any) -> int:
    """Return what the pages of a column chunk take: the largest one, compressed and not, and the dictionary twice."""
    width = _VALUE_BYTES[chunk.physical_type]
    packed = plain = dictionary = seen = 0
    for page in _pages(file, file_size, chunk):
        packed, plain = max(packed, page.compressed), max(plain, page.size)
        if page.kind == _DICTIONARY_PAGE:
            if seen or dictionary or page.values * width > page.size:
                raise Damaged
            dictionary = page.size + page.values * width
        elif page.kind in _HEADER_OF:
            seen += page.values
    if seen != chunk.num_values:
        raise Damaged
    return packed + plain + dictionary


def _pages(file: BinaryIO, file_size: int, chunk: Any) -> Iterator[_Page]:
    """Yield the pages of a column chunk, up to that which has its last value."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    seen = 0
    while seen < chunk.num_values:
        header, length = _read_header(file, at, file_size)
        page = _page_of(header)
        at += length + page.compressed
        if page.compressed < 0 or page.size < 0 or page.values < 0 or at > file_size - _END:
            raise Damaged
        if page.kind in (_DATA_PAGE, _DATA_PAGE_2):
            seen += page.values
        yield page


def _page_of(header: Header) -> _Page:
    try:
        kind, size, compressed = header[_TYPE], header[_SIZE], header[_COMPRESSED]
        own = header[_HEADER_OF[kind]] if kind in _HEADER_OF else {_VALUES: 0}
        if kind == _DATA_PAGE_2 and not 0 <= sum(map(own.__getitem__, _LEVELS)) <= min(size, compressed):
            raise Damaged
        return _Page(kind, size, compressed, own[_VALUES])
    except (KeyError, TypeError, AttributeError):
        raise Damaged from None


def _read_header(file: BinaryIO, at: int, file_size: int) -> tuple[Header, int]:
    """Return a page header and its length."""
    size = _FIRST_READ
    while 0 < at < file_size:
        file.seek(at)
        data = file.read(size)
        try:
            return _struct(data, 0)
        except IndexError:
            if len(data) < size or size >= _LARGEST_HEADER:
                break
            size *= 8
    raise Damaged


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[Header, int]:
    """Read a Thrift struct: field number -> integer, struct, or None for what no check needs; and where it ends."""
    if depth > _DEEPEST:
        raise Damaged
    fields: Header = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, head & 15, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true, false
        return kind == 1, at
    if kind == 3:  # a byte
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == 7:  # a double
        return None, at + 8
    if kind == 8:  # bytes
        length, at = _unsigned(data, at)
        return None, at + length
    if kind == 12:
        return _struct(data, at, depth + 1)
    raise Damaged  # no page header has a list, a set or a map


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise Damaged
