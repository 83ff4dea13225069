"""What reading columns of a Parquet file takes, found before Arrow reads them.

Arrow allocates what the footer and the headers of pages claim before it looks whether the file holds that much. So a
damaged file of a few bytes could take gigabytes: here all claims are compared with the file and with each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from longwall.storage.ingest.tables.thrift import LIST, STRUCT, Cursor, NotThrift, Struct

_MAGIC = b"PAR1"
_END = 8  # bytes of a file behind the footer: its length, the magic bytes
_FOOTER_COPIES = 8  # times its size, what a footer takes when it is read, and itself
_CONTAINER_BYTES = 1024  # of an element of the footer's lists
_FIRST_READ, _LARGEST_HEADER = 2**9, 2**16  # bytes of a page header
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_BOOL, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTES, _FIXED_BYTES = range(8)  # physical types
_VALUE_BYTES = {_BOOL: 0, _INT32: 4, _INT64: 8, _INT96: 12, _FLOAT: 4, _DOUBLE: 8, _BYTES: 4, _FIXED_BYTES: 1}
"""At least."""
_VIEW_BYTES = 16  # of a text of a dictionary, besides its bytes
_NESTED_BYTES = 16  # of a value in a list: the value, and its levels
_MOST_ROWS = 2**30
_ENDLESS = 2**62  # bytes: more than any budget

# Numbers of fields; https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
_SCHEMA, _ROWS, _ROW_GROUPS = 2, 3, 4  # of the footer
_PHYSICAL_TYPE, _CHILDREN = 1, 5  # of an element of the schema
_COLUMNS, _GROUP_ROWS = 1, 3  # of a row group
_CHUNK_META = 3  # of a column chunk
_CHUNK_TYPE, _CHUNK_VALUES, _DATA_OFFSET, _DICTIONARY_OFFSET = 1, 5, 9, 11  # of its metadata
_TYPE, _SIZE, _COMPRESSED = 1, 2, 3  # of a page header
_HEADER_OF = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}
_VALUES = 1  # of the header of each kind of page
_LEVELS = (5, 6)  # bytes of both kinds of levels, of a data page of version 2
_ENCODING_OF = {_DATA_PAGE: 2, _DATA_PAGE_2: 4}
_DICTIONARY_INDICES = (2, 8)  # encodings
_DELTA_LENGTHS, _DELTA_TEXTS = 6, 7  # encodings of texts: lengths apart; and without prefixes of the text before


class Damaged(Exception):
    """The file's claims cannot be true."""


class TooLarge(Exception):
    """What has to be held at once does not fit; the message says what it is."""

    def __init__(self, what: str, size: int) -> None:
        super().__init__(what)
        self.size = size


def read_footer(file: BinaryIO, file_size: int, memory: int) -> bytes:
    """Return the footer.

    Raises
    ------
    Damaged
        There is none.
    TooLarge
        It takes more than `memory` bytes.
    """
    file.seek(max(0, file_size - _END))
    end = file.read(_END)
    size = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or not 0 < size <= file_size - _END - len(_MAGIC):
        raise Damaged
    if size * _FOOTER_COPIES > memory:
        raise TooLarge("the list of its row groups and columns", size * _FOOTER_COPIES)
    file.seek(file_size - _END - size)
    return file.read(size)


def thrift_limits(footer: bytes, memory: int) -> dict[str, int]:
    """Return the limits for reading the footer, as arguments of `pyarrow.parquet.ParquetFile`."""
    return {
        "thrift_string_size_limit": len(footer),
        "thrift_container_size_limit": max(1, min(len(footer), memory // _CONTAINER_BYTES)),
    }


def first_leaves(footer: bytes) -> list[int]:
    """Return the first leaf of each top-level field, by its place among all leaves of the schema.

    The paths of leaves do not tell: field b of a struct a, and a column that is named a.b, have the same.

    Raises
    ------
    Damaged
        There is no schema.
    """
    cursor = Cursor(footer)
    try:
        for number, kind in cursor.fields():
            if number == _SCHEMA and kind == LIST:
                elements = [cursor.value(of) for of in cursor.items()]
                return _first_leaves(elements)
            cursor.skip(kind)
    except (IndexError, KeyError, TypeError, AttributeError, NotThrift):
        pass
    raise Damaged


def _first_leaves(elements: Sequence[Struct]) -> list[int]:
    """Walk the elements, which stand in the order of their tree, each ahead of its children."""
    first = []
    leaves = left = 0  # elements that are still to come of the present field
    for element in elements[1:]:
        if left == 0:
            first.append(leaves)
            left = 1
        children = element.get(_CHILDREN, 0)
        leaves += children == 0 and _PHYSICAL_TYPE in element
        left += children - 1
    return first


def check_pages(file: BinaryIO, file_size: int, footer: bytes, columns: Sequence[int], memory: int) -> int:
    """Return the bytes that pages and dictionaries of columns take while they are read side by side.

    Parameters
    ----------
    file, file_size
        The file.
    footer
        See `read_footer`. It is read here, as the Python interface of Arrow's ends the process where it is damaged.
    columns
        The columns, by their place among all leaves of the schema; each has one integer or text a row.
    memory
        Bytes that they may take.

    Raises
    ------
    Damaged
        The footer and the pages contradict each other, or the file.
    TooLarge
        They take more.
    """
    pages, largest = _Pages(file, file_size), 0
    try:
        for group, (rows, chunks) in enumerate(_groups(Cursor(footer), columns), 1):
            if any(chunk[_CHUNK_VALUES] != rows for chunk in chunks) or rows < 0:
                raise Damaged
            here = sum(_survey_chunk(pages, chunk).bytes for chunk in chunks)
            if here > memory:
                raise TooLarge(f"a page of row group {group}", here)
            largest = max(largest, here)
    except (IndexError, KeyError, TypeError, AttributeError, NotThrift):
        raise Damaged from None
    return largest


def survey_texts(file: BinaryIO, file_size: int, footer: bytes, columns: Sequence[int]) -> list[tuple[int, int]]:
    """Return facts about the texts of each row group, of a file that `check_pages` has checked.

    Returns
    -------
    list of tuple of int
        The bytes of the texts that are not in dictionaries (more than any budget if Arrow cannot read them as
        dictionaries), and the bytes of a row of them: the largest mean of a page.
    """
    pages, found = _Pages(file, file_size), []
    for _, chunks in _groups(Cursor(footer), columns):
        of = [_survey_chunk(pages, chunk) for chunk in chunks]
        found.append((sum(one.written for one in of), sum(one.longest for one in of)))
    return found


@dataclass
class Pages:
    """Facts about the pages of a whole file.

    Attributes
    ----------
    rows_at_once
        The most rows of a batch whose pages fit; at least 1.
    dictionaries
        The leaves of texts that have dictionaries, by their place.
    """

    rows_at_once: int
    dictionaries: list[int]


def survey_pages(file: BinaryIO, file_size: int, footer: bytes, memory: int) -> Pages:
    """Check the pages of all columns of any type; parameters and errors are those of `check_pages`."""
    pages, found = _Pages(file, file_size), Pages(_MOST_ROWS, [])
    try:
        for group, (rows, chunks) in enumerate(_groups(Cursor(footer), None), 1):
            here = 0
            for leaf, chunk in enumerate(chunks):
                of = _survey_chunk(pages, chunk)
                here += of.bytes
                nested = chunk[_CHUNK_VALUES] != rows
                if nested and max(chunk[_CHUNK_VALUES] * _NESTED_BYTES, of.total) > memory:
                    raise TooLarge(f"a list of row group {group}", max(chunk[_CHUNK_VALUES] * _NESTED_BYTES, of.total))
                if not nested and of.total * len(chunks) > memory:
                    fitting = memory // len(chunks) // of.plain * of.least
                    found.rows_at_once = max(min(found.rows_at_once, fitting), 1)
                if of.dictionary and chunk[_CHUNK_TYPE] == _BYTES and leaf not in found.dictionaries:
                    found.dictionaries.append(leaf)
            if here > memory:
                raise TooLarge(f"a page of row group {group}", here)
    except (IndexError, KeyError, TypeError, AttributeError, NotThrift):
        raise Damaged from None
    return found


def _groups(footer: Cursor, columns: Sequence[int] | None) -> Iterator[tuple[int, list[Struct]]]:
    """Yield the number of rows of each row group, and the metadata of its chunks of `columns`; None: of all.

    Raises
    ------
    Damaged
        If the row groups have more or fewer rows than the footer says.
    """
    rows = 0
    announced = None
    for number, kind in footer.fields():
        if number == _ROWS:
            announced = footer.value(kind)
        elif number == _ROW_GROUPS and kind == LIST:
            for _ in footer.items():
                group = _read_group(footer, columns)
                rows += group[0]
                yield group
        else:
            footer.skip(kind)
    if rows != announced:
        raise Damaged


def _read_group(footer: Cursor, columns: Sequence[int] | None) -> tuple[int, list[Struct]]:
    """Return the rows of a row group, and the metadata of its chunks of `columns`; None: of all."""
    rows = -1
    chunks = []
    for number, kind in footer.fields():
        if number == _COLUMNS and kind == LIST:
            for column, of in enumerate(footer.items()):
                if columns is None or column in columns:
                    chunks.append(footer.value(of)[_CHUNK_META])
                else:
                    footer.skip(of)
        elif number == _GROUP_ROWS:
            rows = footer.value(kind)
        else:
            footer.skip(kind)
    if columns is not None and len(chunks) != len(columns):
        raise Damaged
    return rows, chunks


@dataclass
class _Page:
    kind: int
    size: int
    compressed: int
    values: int
    encoding: int | None


@dataclass
class _Chunk:
    """The pages of a column chunk."""

    packed: int = 0
    """Bytes of the largest one, compressed."""
    plain: int = 0
    """The same, decompressed."""
    dictionary: int = 0
    """Bytes of the dictionary and of its values."""
    total: int = 0
    """Bytes of all pages with values, decompressed."""
    least: int = 0
    """Values of the page with the fewest, but for the last one."""
    written: int = 0
    """Bytes of the pages that have values, not indices of a dictionary; see `survey_texts`."""
    longest: int = 0
    """Bytes of a value: the largest mean of such a page, or all of the page if values may lack their prefixes."""

    @property
    def bytes(self) -> int:
        """Memory to read the pages: the largest one, compressed and decompressed, and the dictionary twice."""
        return self.packed + self.plain + self.dictionary


def _survey_chunk(pages: "_Pages", chunk: Struct) -> _Chunk:
    width, found = _VALUE_BYTES[chunk[_CHUNK_TYPE]], _Chunk()
    seen, least = 0, None
    for page in pages.of(chunk):
        found.packed, found.plain = max(found.packed, page.compressed), max(found.plain, page.size)
        if page.kind == _DICTIONARY_PAGE:
            if seen or found.dictionary or page.values * width > page.size:
                raise Damaged
            decoded = page.values * width
            if chunk[_CHUNK_TYPE] in (_BYTES, _FIXED_BYTES):
                decoded = page.size + page.values * _VIEW_BYTES
            found.dictionary = page.size + decoded
        elif page.kind in _HEADER_OF:
            seen += page.values
            found.total += page.size
            if page.encoding not in _DICTIONARY_INDICES:
                found.written += _ENDLESS if page.encoding in (_DELTA_LENGTHS, _DELTA_TEXTS) else page.size
                values = 1 if page.encoding == _DELTA_TEXTS else max(page.values, 1)
                found.longest = max(found.longest, page.size // values)
            if seen < chunk[_CHUNK_VALUES] or least is None:
                least = page.values if least is None else min(least, page.values)
    if seen != chunk[_CHUNK_VALUES]:
        raise Damaged
    found.least = least or 0
    return found


class _Pages:
    """The headers of a file's pages.

    Chunks that overlap would have the same headers read again and again: all that are read are no longer than the file.

    Parameters
    ----------
    file, file_size
        The file.
    """

    def __init__(self, file: BinaryIO, file_size: int) -> None:
        self._file, self._file_size = file, file_size
        self._left = file_size

    def of(self, chunk: Struct) -> Iterator[_Page]:
        """Yield the pages of a column chunk, up to that which has its last value."""
        at = chunk[_DATA_OFFSET]
        if 0 < chunk.get(_DICTIONARY_OFFSET, 0) < at:
            at = chunk[_DICTIONARY_OFFSET]
        seen = 0
        while seen < chunk[_CHUNK_VALUES]:
            header, length = self._read_header(at)
            page = _page_of(header)
            at += length + page.compressed
            self._left -= length
            if page.compressed < 0 or page.size < 0 or page.values < 0 or at > self._file_size - _END or self._left < 0:
                raise Damaged
            if page.kind in (_DATA_PAGE, _DATA_PAGE_2):
                seen += page.values
            yield page

    def _read_header(self, at: int) -> tuple[Struct, int]:
        """Return a page header and its length."""
        size = _FIRST_READ
        while 0 < at < self._file_size:
            self._file.seek(at)
            data = self._file.read(size)
            cursor = Cursor(data)
            try:
                return cursor.value(STRUCT), cursor.at
            except IndexError:
                if len(data) < size or size >= _LARGEST_HEADER:
                    break
                size *= 8
        raise Damaged


def _page_of(header: Struct) -> _Page:
    kind, size, compressed = header[_TYPE], header[_SIZE], header[_COMPRESSED]
    own = header[_HEADER_OF[kind]] if kind in _HEADER_OF else {_VALUES: 0}
    if kind == _DATA_PAGE_2 and not 0 <= sum(own[level] for level in _LEVELS) <= min(size, compressed):
        raise Damaged
    return _Page(kind, size, compressed, own[_VALUES], own.get(_ENCODING_OF.get(kind)))
