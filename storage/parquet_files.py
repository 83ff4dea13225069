"""Write Parquet files: pages carry checksums, files are opened here, a writer knows the sum of its file."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.storage.errors import InputError, RunError
from longwall.storage.hashed_file import HashedFile
from longwall.storage.system.paths import require_path, user_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

_BUFFER = 1 << 14  # bytes


class ParquetSink:
    """A Parquet file that is written, row group by row group; as a context manager it is closed, or abandoned.

    Parameters
    ----------
    path
        The file.
    schema
        Of its rows.
    level
        Of the compression (Zstandard).
    encoding
        How values are encoded, as `pyarrow.parquet.ParquetWriter` takes it.
    buffer
        Bytes that are put together before they are written. Each write takes Python's lock, which threads wait for.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        *,
        level: int | None = None,
        encoding: Mapping[str, Any] | None = None,
        buffer: int = _BUFFER,
    ):
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._file = HashedFile(path)
        try:
            self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._file, "w"), buffer)
            self._writer: pq.ParquetWriter | None = pq.ParquetWriter(
                self._buffered,
                schema,
                compression="zstd",
                compression_level=level,
                write_page_checksum=True,
                **(encoding or {}),
            )
        except BaseException:
            self._file.abandon()
            raise
        self._rows = 0

    def write(self, table: pa.Table, group_rows: int | None = None) -> None:
        """Append rows, in row groups of limited length."""
        assert self._writer is not None, "the file has ended"
        self._writer.write_table(table, row_group_size=group_rows)
        self._rows += table.num_rows

    def close(self) -> None:
        """End the file; nothing happens where it has ended."""
        if self._writer is None:
            return
        try:
            self._writer.close()
            self._buffered.flush()
            self._file.close()
        finally:
            self.abandon()

    def finish(self) -> dict[str, Any]:
        """End the file, sync it to the disk, and return its rows, bytes and checksum, as a commit names them."""
        assert self._writer is not None, "the file has ended"
        try:
            self._writer.close()
            self._buffered.flush()
            return {"rows": self._rows} | self._file.finish()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Abandon the file as it is; nothing happens where it has ended."""
        if self._writer is not None:
            self._writer.is_open = False  # or it would write its end when it is collected, where the disk may be full
        self._file.abandon()
        self._writer = None  # Arrow lets go of the file here: at the end of Python that would be a crash

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class RowGroups:
    """Puts small batches together, to no more rows than the largest batch so far has; a context manager.

    Parameters
    ----------
    write
        Takes the rows of a row group.
    """

    def __init__(self, write: Callable[[pa.Table], None]):
        self._write = write
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._most = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        self._most = max(self._most, batch.num_rows)
        if self._rows + batch.num_rows > self._most:
            self._flush()
        self._waiting.append(batch)
        self._rows += batch.num_rows

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._write(pa.Table.from_batches(self._waiting))
        self._waiting, self._rows = [], 0

    def __enter__(self) -> RowGroups:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self._flush()


def new_file(path: str | Path) -> Path:
    """Return the path of a file that a user names, after a check that it does not exist yet (InputError)."""
    require_path("path", path, "the path of a Parquet file")
    target = user_path(path)
    if target.exists():
        raise InputError(f"{target} exists: choose another name or remove it")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} does not exist: create it first")
    return target


@contextmanager
def whole_file(target: Path, schema: pa.Schema) -> Iterator[ParquetSink]:
    """Write a file that appears whole, when the block ends, or not at all."""
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.partial")
    try:
        with ParquetSink(partial, schema) as sink:
            yield sink
        partial.rename(target)
    except OSError as error:
        raise RunError(f"{target}: the file could not be written ({error.strerror or error})") from error
    finally:
        partial.unlink(missing_ok=True)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table as a file."""
    with ParquetSink(path, table.schema) as sink:
        sink.write(table)
