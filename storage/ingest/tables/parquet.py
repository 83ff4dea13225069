"""Parquet files: edges or vertex labels, in columns of integers or texts."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.readers.edge_stream import EdgeStream, FileRequest
from longwall.storage.ingest.tables.arrow_columns import choose_pair, is_text
from longwall.storage.ingest.tables.arrow_rows import Rows, rows_of
from longwall.storage.ingest.tables.parquet_pages import (
    Damaged,
    TooLarge,
    check_pages,
    first_leaves,
    read_footer,
    survey_texts,
    thrift_limits,
)
from longwall.storage.ingest.tables.row_groups import decode, pieces_of, readers_for
from longwall.storage.ingest.text.input_file import input_errors, open_input
from longwall.storage.ingest.text.parallel_parse import blocks_in_flight, in_order
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource
from longwall.storage.memory.sizes import round_size

LARGEST_BATCH = 2**17
_LEAST_BATCH, _LEAST_BYTES = 2**12, 2**20
_BYTES_A_ROW = 64  # two columns as Arrow decodes them (levels, values, validity), as int64, and masks over them
_PAGE_BUFFER = 2**18
_CHECKING = 3  # threads that check and copy, which is faster than decoding
_ARROW_BYTES = 8 * 2**20  # pages and dictionaries of both columns, compressed and decoded
_DICTIONARY_TIMES = 8  # the bytes of a row group's texts: what Arrow takes for a dictionary of them


def open_parquet(file: FileRequest) -> EdgeStream:
    """Read edges from two columns of integers or texts: those with known names, or that are chosen, or the only two.

    Integers are names if the request says that ids are. Columns are decoded page by page, so row groups may be of any
    size. The memory of footer, pages and dictionaries is found beforehand, see `parquet_pages`. A batch has at least
    4096 rows.

    Raises
    ------
    InputError
        From the iteration: the file is not Parquet, or damaged; it is not clear which columns are meant; a page needs
        more than `memory`; or a value (its row is named) is not an id.
    """
    path, request = str(file.path), file.columns
    labels = request.label_names or LabelNames(path)
    rows = _rows(file, 2, None if request.ids == "auto" else request.ids == "names")
    return EdgeStream(path, (part.edges(labels) for part in rows), edge_label_names=labels, notes=request.notes)


class ParquetLabels(LabelSource):
    """Labels in columns vertex (or id, node, v) and label, or the only two columns; errors are as of `open_parquet`."""

    texts: LabelNames

    def __init__(self, file: FileRequest) -> None:
        self.source = str(file.path)
        self.texts, self._file = LabelNames(self.source), file

    def blocks(self) -> Generator[LabelBlock, None, None]:
        """See `LabelSource`."""
        for part in _rows(self._file, 1, self.named):
            yield part.labelled(self.texts)


def _rows(file: FileRequest, ends: int, named: bool | None) -> Generator[Rows, None, None]:
    """Yield consecutive rows, whose first columns, one or two, are vertices."""
    import pyarrow as pa

    path, request = file.path, file.columns
    with input_errors(path), open_input(path) as source:
        size = os.fstat(source.fileno()).st_size
        try:
            parquet, columns, leaves, needed, texts, row_bytes = _open(file, source, size)
            texts |= named is True
            total, start = parquet.metadata.num_rows, 0

            def convert(start: int, batch: Any) -> Rows:
                return rows_of(path, columns, ends, start, batch, named, as_written=True, drops=request.drops)

            for rows, start in _batches(file, parquet, leaves, texts, needed, row_bytes, convert):
                request.notes.add("rows", rows.dropped)
                yield rows
                if file.progress is not None:
                    file.progress(size * start // total, size)
            if start != total:
                raise Damaged
        except TooLarge as error:
            raise InputError(
                f"{path}: {error} takes {round_size(error.size)}, too much to read the file: raise memory.host, or "
                "write the file with smaller row groups and pages"
            ) from None
        except UnicodeDecodeError:
            raise InputError(
                f"{path}: a column has a name that is not UTF-8; write the file with other names"
            ) from None
        except (pa.ArrowException, OSError, Damaged) as error:
            raise InputError(
                f"{path}: this is not a complete Parquet file; write it again, or name it by its format"
            ) from error


def _batches(
    file: FileRequest,
    parquet: Any,
    leaves: list[int],
    texts: bool,
    needed: int,
    row_bytes: int,
    convert: Callable[[int, Any], Rows],
) -> Generator[tuple[Rows, int], None, None]:
    """Yield rows, and how many there were up to their end: of several row groups at a time, where memory has room."""
    path, memory, workers = file.opening
    pieces = pieces_of(parquet.metadata, LARGEST_BATCH)
    readers = readers_for(pieces, needed + _BYTES_A_ROW * LARGEST_BATCH, memory, workers)
    if readers > 1 and not texts:
        yield from decode(path, parquet.metadata, pieces, leaves, LARGEST_BATCH, readers, convert)
        return
    columns_at_once = workers > 1  # Arrow decodes each column of a batch on a thread
    workers = min(workers, _CHECKING)
    most = max(memory - needed, _LEAST_BYTES) // ((_BYTES_A_ROW + row_bytes) * (blocks_in_flight(workers) + 1))
    batch_size = max(1 if row_bytes else _LEAST_BATCH, min(LARGEST_BATCH, most))
    groups = range(parquet.metadata.num_row_groups)
    # By their names Arrow would read all columns of the same path, too, which nothing has looked at.
    batches = _numbered(parquet.reader.iter_batches(batch_size, groups, leaves, use_threads=columns_at_once))
    for (start, batch), rows in in_order(lambda: next(batches, None), lambda item: convert(*item), workers):
        yield rows, start + batch.num_rows


def _open(request: FileRequest, file: BinaryIO, size: int) -> tuple[Any, list[str], list[int], int, bool, int]:
    """Return the opened file, the columns to read, their places among the leaves, what pages take, if one has texts.

    The last number is the bytes of the texts of a row if Arrow does not read them as dictionaries, otherwise 0.
    """
    import pyarrow.parquet as pq

    memory = max(request.memory, _ARROW_BYTES)
    # Without read-ahead and with small buffers a column is read page by page, not whole.
    footer = read_footer(file, size, memory)
    limits = thrift_limits(footer, memory)
    parquet = pq.ParquetFile(
        file, buffer_size=_PAGE_BUFFER, pre_buffer=False, page_checksum_verification=True, **limits
    )
    places = choose_pair(request.path, parquet.schema_arrow, request.columns)
    texts = [place for place in places if is_text(parquet.schema_arrow.field(place).type)]
    first, names, row_bytes = first_leaves(footer), parquet.schema_arrow.names, 0
    leaves = [first[place] for place in places]
    needed = max(check_pages(file, size, footer, leaves, memory), _ARROW_BYTES)
    if texts:
        # As dictionaries, or a long text that is repeated would take its length for every row.
        options = {"metadata": parquet.metadata, "read_dictionary": [names[place] for place in texts]}
        coded = pq.ParquetFile(
            file, buffer_size=_PAGE_BUFFER, pre_buffer=False, page_checksum_verification=True, **options
        )
        of_texts = [first[place] for place in texts]
        groups = survey_texts(file, size, footer, of_texts)
        dictionary = _DICTIONARY_TIMES * max((written for written, _ in groups), default=0)
        if dictionary <= (memory - needed) // 2:
            parquet, needed = coded, needed + dictionary
        else:  # Arrow adds the texts of a whole row group to the dictionary of a batch, or cannot make one
            row_bytes = 2 * max(mean + _longest(coded, group, of_texts) for group, (_, mean) in enumerate(groups))
    return parquet, [names[place] for place in places], leaves, needed, bool(texts), row_bytes


def _longest(coded: Any, group: int, leaves: list[int]) -> int:
    """Return the bytes of the longest text of the first dictionary of each column in a row group, added up."""
    import pyarrow.compute as pc

    with suppress(OSError):  # Arrow cannot make dictionaries, or will raise the error again
        batches = islice(coded.reader.iter_batches(1, [group], leaves, use_threads=False), 1)
        texts = (column.dictionary for batch in batches for column in batch.columns)
        return sum(pc.max(pc.binary_length(one)).as_py() or 0 for one in texts)
    return 0


def _numbered(batches: Iterator[Any]) -> Generator[tuple[int, Any], None, None]:
    start = 0
    for batch in batches:
        yield start, batch
        start += batch.num_rows
