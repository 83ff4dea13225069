"""Parquet files: edges or vertex labels in two integer columns."""

from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.readers.in_order import blocks_in_flight, in_order
from longwall.storage.readers.raw import EdgeBlock, RawGraph
from longwall.storage.readers.source import Progress, input_errors, open_input
from longwall.storage.vertex_labels import Int64s, LabelBlock, LabelSource

LARGEST_BATCH = 2**17
_LEAST_BATCH = 2**12
_BYTES_A_ROW = 64  # two columns as Arrow decodes them (levels, values, validity), as int64, and masks over them
_PAGE_BUFFER = 2**18
_ARROW_BYTES = 8 * 2**20  # pages and dictionaries of both columns, compressed and decoded
_EDGE_NAMES = (("src", "dst"), ("source", "target"), ("u", "v"), ("from", "to"))
_LABEL_NAMES = (("vertex", "label"), ("id", "label"), ("node", "label"), ("v", "label"))


def open_parquet(path: Path, memory: int, workers: int, progress: Progress | None = None) -> RawGraph:
    """Read edges from columns src/dst, source/target, u/v or from/to, else the first two integer columns.

    See `raw` for the parameters. Columns are decoded page by page, so row groups may be of any size. Pages and
    dictionaries are taken to have the usual 1 MiB; a file with larger ones needs their size besides `memory`, and
    every file that of its footer, some hundred bytes per row group and column. A batch has 4096 rows at least.

    Raises
    ------
    InputError
        From the iteration: the file is not Parquet or lacks two integer columns, or a value (its row is named) is
        not an id.
    """
    return RawGraph(str(path), _edges(path, memory, workers, progress))


def open_parquet_labels(path: Path, memory: int, workers: int) -> LabelSource:
    """Read labels from columns vertex (or id, node, v) and label, else the first two integer columns.

    Parameters and errors are those of `open_parquet`.
    """
    return _ParquetLabels(path, memory, workers)


class _ParquetLabels(LabelSource):
    def __init__(self, path: Path, memory: int, workers: int) -> None:
        self.source = str(path)
        self._opening = path, memory, workers

    def blocks(self) -> Generator[LabelBlock, None, None]:
        path, memory, workers = self._opening
        for start, ids, values in _pairs(path, _LABEL_NAMES, memory, workers, None):
            yield LabelBlock(ids, values, partial(_place, start))


def _edges(path: Path, memory: int, workers: int, progress: Progress | None) -> Generator[EdgeBlock, None, None]:
    for _, src, dst in _pairs(path, _EDGE_NAMES, memory, workers, progress):
        yield EdgeBlock(src, dst)


def _place(start: int, row: int) -> str:
    return f"row {start + row + 1}"


def _pairs(
    path: Path, names: tuple[tuple[str, str], ...], memory: int, workers: int, progress: Progress | None
) -> Generator[tuple[int, Int64s, Int64s], None, None]:
    """Yield consecutive rows of two columns: the number of rows ahead of them, and int64[rows] twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    workers = min(workers, 2)  # they check and copy, which is faster than decoding, on one thread
    most = (memory - _ARROW_BYTES) // (_BYTES_A_ROW * (blocks_in_flight(workers) + 1))
    batch_size = max(_LEAST_BATCH, min(LARGEST_BATCH, most))
    with input_errors(path), open_input(path) as file:
        size = path.stat().st_size
        try:
            # Without read-ahead and with small buffers a column is read page by page, not whole.
            parquet = pq.ParquetFile(file, buffer_size=_PAGE_BUFFER, pre_buffer=False, page_checksum_verification=True)
            columns = _choose(path, parquet.schema_arrow, names)
            batches = _numbered(parquet.iter_batches(batch_size, columns=list(columns), use_threads=False))
            total = parquet.metadata.num_rows
            for (start, batch), (first, second) in in_order(
                lambda: next(batches, None), lambda item: _convert(path, columns, *item), workers
            ):
                yield start, first, second
                if progress is not None:
                    progress(size * (start + batch.num_rows) // total, size)
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{path}: this is not a complete Parquet file; write it again, or name it by its format"
            ) from error


def _numbered(batches: Iterator[Any]) -> Generator[tuple[int, Any], None, None]:
    start = 0
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def _choose(path: Path, schema: Any, names: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    import pyarrow as pa

    integers = {field.name.lower(): field.name for field in schema if pa.types.is_integer(field.type)}
    for first, second in names:
        if first in integers and second in integers:
            return integers[first], integers[second]
    if len(integers) < 2:
        columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
        raise InputError(
            f"{path}: two integer columns are needed, the file has {columns}; "
            f"store integers in columns {names[0][0]} and {names[0][1]}"
        )
    first, second, *_ = integers.values()
    return first, second


def _convert(path: Path, columns: tuple[str, str], start: int, batch: Any) -> tuple[Int64s, Int64s]:
    first, second = (_ids(path, name, batch.column(name), start) for name in columns)
    return first, second


def _ids(path: Path, name: str, column: Any, start: int) -> Int64s:
    """Return a column as int64[rows] once it holds no nulls and only integers in [0, 2^63)."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{path}, {_place(start, row)}: column {name} is empty; fill or remove the row")
    values: npt.NDArray[np.integer[Any]] = column.to_numpy()
    bad = values < 0 if values.dtype.kind == "i" else values >= 2**63
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{path}, {_place(start, row)}: column {name} holds {values[row]}; use integers from 0 to 2^63 - 1"
        )
    return np.array(values, np.int64)
