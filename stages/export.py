"""The export stage: embeddings as Parquet, one column per pattern vertex, in original vertex ids."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from longwall.storage.table import EmbeddingTable

ROWS_PER_FILE = 1 << 24


class RowLimit:
    """How many rows may still be written, shared by all writers."""

    def __init__(self, limit: int | None):
        self._left = limit
        self._lock = threading.Lock()

    def take(self, wanted: int) -> int:
        """Claim up to `wanted` rows; gives how many were granted."""
        with self._lock:
            if self._left is None:
                return wanted
            granted = min(wanted, self._left)
            self._left -= granted
            return granted

    @property
    def reached(self) -> bool:
        """Whether no further row may be written."""
        return self._left == 0


class EmbeddingWriter:
    """Writes the embeddings of one worker as a sequence of Parquet files.

    Parameters
    ----------
    folder
        Where the files go; they are called ``embeddings-<worker>-<number>.parquet``.
    worker
        Number of the worker.
    order
        Matching order: the pattern vertex of each level.
    original_ids : int64[n]
        Internal vertex id to id in the input.
    columns
        Names of the columns to write (``v0``, ``v1``, ...: one per pattern vertex), None for all.
    limit
        Shared row limit.
    metadata
        Written into the schema, as JSON.
    """

    def __init__(
        self,
        folder: Path,
        worker: int,
        order: Sequence[int],
        original_ids: NDArray[np.int64],
        *,
        columns: Sequence[str] | None,
        limit: RowLimit,
        metadata: dict[str, Any],
    ):
        names = {f"v{vertex}": level for level, vertex in enumerate(order)}
        self._levels = {name: names[name] for name in (columns or sorted(names, key=lambda name: int(name[1:])))}
        self._schema = pa.schema(
            [pa.field(name, pa.int64(), nullable=False) for name in self._levels],
            metadata={"longwall": json.dumps(metadata)},
        )
        self._folder, self._worker, self._ids, self._limit = folder, worker, original_ids, limit
        self._file: pq.ParquetWriter | None = None
        self._number = self._rows_in_file = 0
        self.rows = 0

    def write(self, table: EmbeddingTable) -> None:
        """Append the rows of a table of all levels."""
        granted = self._limit.take(len(table))
        if granted < len(table):
            table = table.sliced(0, granted)
        if not granted:
            return
        if self._file is None:
            path = self._folder / f"embeddings-{self._worker:03}-{self._number:05}.parquet"
            self._file = pq.ParquetWriter(path, self._schema, compression="zstd", compression_level=1)
        flat = table.columns()
        host = flat if isinstance(flat, np.ndarray) else flat.get()
        arrays = [pa.array(self._ids[host[level]]) for level in self._levels.values()]
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self.rows += granted
        self._rows_in_file += granted
        if self._rows_in_file >= ROWS_PER_FILE:
            self.close()

    def close(self) -> None:
        """Finish the file that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._number += 1
            self._rows_in_file = 0

    def ensure_file(self) -> None:
        """Write an empty file, so that a result without rows still has its columns."""
        path = self._folder / "embeddings-000-00000.parquet"
        pq.write_table(self._schema.empty_table(), path)
