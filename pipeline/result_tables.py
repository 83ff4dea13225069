"""The tables that every run writes: ``counts.parquet``, and ``metrics.parquet`` beside the results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from longwall.pipeline.run_store.store import changed
from longwall.storage.durability import sync_file
from longwall.storage.errors import RunError
from longwall.storage.hashed_file import file_sha256
from longwall.storage.parquet_files import ParquetSink, write_parquet
from longwall.storage.tables.arrow_columns import column

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from longwall.pipeline.execution.environment import Metrics, PatternCount

TOO_LARGE = 1 << 63  # for a column of 64-bit integers
_DIGITS = 38  # of the widest decimals that Parquet's readers know
_AT_ONCE = 1 << 13  # rows of a table that are put together


def number_type(most: int) -> pa.DataType:
    """Return the type of a column for numbers up to `most`: int64, decimal128(38, 0) or, where that is short, texts."""
    import pyarrow as pa

    if most < TOO_LARGE:
        return pa.int64()
    return pa.decimal128(_DIGITS, 0) if most < 10**_DIGITS else pa.string()


def number_array(numbers: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Return numbers as a column of a type that `number_type` chose for them."""
    import pyarrow as pa

    if pa.types.is_string(kind):
        return column([None if number is None else str(number) for number in numbers], kind)
    return column(numbers, kind)


def write_counts(counts: Sequence[PatternCount], path: Path) -> None:
    """Write ``counts.parquet``: columns as in `PatternCount`, a row per pattern."""
    import pyarrow as pa

    def labels(name: str) -> pa.DataType:
        texts = any(isinstance(label, str) for one in counts for label in getattr(one, name) or ())
        return pa.list_(pa.string() if texts else pa.int32())

    schema = pa.schema(
        [
            ("pattern", pa.string()),
            ("labels", labels("labels")),
            ("count", number_type(max((one.count or 0 for one in counts), default=0))),
            ("support", pa.int64()),
            ("edge_labels", labels("edge_labels")),
            ("lower_bound", pa.bool_()),
            ("name", pa.string()),
            ("seconds", pa.float64()),
            ("method", pa.string()),
        ]
    )
    with ParquetSink(path, schema) as sink:
        for begin in range(0, max(len(counts), 1), _AT_ONCE):
            some = counts[begin : begin + _AT_ONCE]
            lists = {name: [getattr(one, name) for one in some] for name in schema.names}
            columns = [
                (number_array if field.name == "count" else column)(lists[field.name], field.type) for field in schema
            ]
            sink.write(pa.Table.from_arrays(columns, schema=schema))


def write_metrics(metrics: Metrics, path: Path) -> None:
    """Write ``metrics.parquet``: one row per stage event, columns as in `MetricsRow`; null what does not fit them."""
    import pyarrow as pa

    from longwall.pipeline.execution.environment import MetricsRow

    types = {"stage": pa.string(), "seconds": pa.float64(), "predicted": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in MetricsRow._fields])
    rows = list(metrics.rows())
    columns = [column([_fitting(getattr(row, field.name)) for row in rows], field.type) for field in schema]
    write_parquet(pa.Table.from_arrays(columns, schema=schema), path)


def _fitting(figure: Any) -> Any:
    """Return a figure of the metrics, or None where its column cannot hold it: a run is not lost for it."""
    return None if isinstance(figure, int) and figure >= TOO_LARGE else figure


def describe_table(file: Path) -> dict[str, Any]:
    """Return rows, bytes and checksum of a result file, as commits name them, once it is on the disk.

    Raises
    ------
    FinalError
        If it is damaged.
    """
    from longwall.storage.tables.parquet_rows import parquet_rows

    with file.open("rb") as stream:
        sync_file(stream.fileno(), file)
        try:
            rows = parquet_rows(stream, str(file))
        except RunError:
            raise changed(str(file)) from None
        return {"rows": rows, "bytes": os.fstat(stream.fileno()).st_size, "sha256": file_sha256(stream)}
