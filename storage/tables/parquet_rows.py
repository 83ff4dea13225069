"""Read Parquet files of results, which may be forged: the memory that their pages take is checked beforehand."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from longwall.storage.errors import RunError
from longwall.storage.ingest.tables.parquet_pages import (
    Damaged,
    Pages,
    TooLarge,
    read_footer,
    survey_pages,
    thrift_limits,
)
from longwall.storage.memory.sizes import round_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS = 1 << 16  # of a batch
_MEMORY = 256 << 20  # bytes for pages, and for the texts of a batch
_BUFFER = 1 << 18


def parquet_batches(source: Any, name: str, rows: int = _ROWS) -> Iterator[pa.RecordBatch]:
    """Read a file in parts.

    Parameters
    ----------
    source
        The open file.
    name
        The name of the file in messages.
    rows
        The most rows of a part.

    Raises
    ------
    RunError
        If the file is damaged, or its pages or the texts of a row take more memory than those of any file of Longwall.
    """
    with _errors(name):
        file, schema, pages = _surveyed(source)
        for group in range(file.metadata.num_row_groups):  # one by one: their dictionaries differ
            for batch in file.iter_batches(min(rows, pages.rows_at_once), [group], use_threads=False):
                yield from _written_out(batch, schema)


def parquet_schema(source: Any, name: str) -> pa.Schema:
    """Return the columns of a file, whose pages are not looked at; parameters and errors as of `parquet_batches`."""
    with _errors(name):
        return _opened(source)[0].schema_arrow


def parquet_rows(source: Any, name: str) -> int:
    """Return the number of rows of a file, whose pages are not looked at; see `parquet_schema`."""
    with _errors(name):
        return int(_opened(source)[0].metadata.num_rows)


def read_parquet(source: Any, name: str) -> pa.Table:
    """Read a file whole, and check its pages; parameters and errors as of `parquet_batches`."""
    import pyarrow as pa

    batches = list(parquet_batches(source, name))
    return pa.Table.from_batches(batches, batches[0].schema if batches else parquet_schema(source, name))


@contextmanager
def _errors(name: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except TooLarge as error:
        raise RunError(
            f"{name}: {error} takes {round_size(error.size)}, more than in files of Longwall: run again, or restore it"
        ) from None
    except (OSError, pa.ArrowException, Damaged, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split()) or "its parts contradict each other"
        raise RunError(f"{name}: the file is damaged ({reason}): run again, or restore it") from None


def _opened(source: Any) -> tuple[pq.ParquetFile, bytes, int]:
    """Return the file, its footer, and its size."""
    import pyarrow.parquet as pq

    size = source.seek(0, 2)
    footer = read_footer(source, size, _MEMORY)
    limits = thrift_limits(footer, _MEMORY)
    file = pq.ParquetFile(source, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True, **limits)
    return file, footer, size


def _surveyed(source: Any) -> tuple[pq.ParquetFile, pa.Schema, Pages]:
    """Return the file, its columns, and facts about its pages."""
    import pyarrow.parquet as pq

    file, footer, size = _opened(source)
    pages = survey_pages(source, size, footer, _MEMORY)
    schema = file.schema_arrow
    if pages.dictionaries:
        # A long repeated text would take its length for every row.
        paths = [file.schema.column(leaf).path for leaf in pages.dictionaries]
        options = {"metadata": file.metadata, "read_dictionary": paths, "buffer_size": _BUFFER, "pre_buffer": False}
        file = pq.ParquetFile(source, page_checksum_verification=True, **options)
    return file, schema, pages


def _written_out(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows with texts in place of dictionaries, in parts whose texts fit the memory."""
    import pyarrow as pa

    size = sum(map(_text_bytes, batch.columns))
    if size > _MEMORY:
        if batch.num_rows == 1:
            raise TooLarge("a row", size)
        half = batch.num_rows // 2
        yield from _written_out(batch.slice(0, half), schema)
        yield from _written_out(batch.slice(half), schema)
        return
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _text_bytes(column: pa.Array) -> int:
    """Return the bytes of the texts of a column, after decoding its dictionaries."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return int(pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(_text_bytes, column.flatten()))
    if pa.types.is_map(kind):
        return _text_bytes(column.keys) + _text_bytes(column.items)
    return _text_bytes(column.flatten()) if pa.types.is_nested(kind) else 0
