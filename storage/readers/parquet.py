"""Parquet files: edges or vertex labels in two integer columns."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.readers.raw import RawGraph
from longwall.storage.readers.source import Progress, input_errors
from longwall.storage.vertex_labels import LabelList

_EDGE_NAMES = (("src", "dst"), ("source", "target"), ("u", "v"), ("from", "to"))
_LABEL_NAMES = (("vertex", "label"), ("id", "label"), ("node", "label"), ("v", "label"))


def read_parquet(path: Path, progress: Progress | None = None) -> RawGraph:
    """Read edges from columns src/dst, source/target, u/v or from/to, else the first two integer columns.

    Raises
    ------
    InputError
        The file is not Parquet or lacks two integer columns, or a value (its row is named) is not an id.
    """
    src, dst = _read_columns(path, _EDGE_NAMES)
    if progress is not None:
        size = path.stat().st_size
        progress(size, size)
    return RawGraph(src, dst)


def read_parquet_labels(path: Path) -> LabelList:
    """Read labels from columns vertex (or id, node, v) and label, else the first two integer columns.

    Raises
    ------
    InputError
        As `read_parquet`.
    """
    ids, values = _read_columns(path, _LABEL_NAMES)
    return LabelList(ids, values, str(path), lambda row: f"row {row + 1}")


def _read_columns(
    path: Path, names: tuple[tuple[str, str], ...]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with input_errors(path), path.open("rb") as file:
        try:
            parquet = pq.ParquetFile(file)
            first, second = _choose(path, parquet.schema_arrow, names)
            table = parquet.read(columns=[first, second])
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{path}: this is not a complete Parquet file; write it again, or name it by its format"
            ) from error
    return _ids(path, first, table.column(first)), _ids(path, second, table.column(second))


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


def _ids(path: Path, name: str, column: Any) -> npt.NDArray[np.int64]:
    """Return a column as int64[rows] once it holds no nulls and only integers in [0, 2^63)."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{path}, row {row + 1}: column {name} is empty; fill or remove the row")
    values: npt.NDArray[np.int64] = column.to_numpy()
    bad = values < 0 if values.dtype.kind == "i" else values >= 2**63
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{path}, row {row + 1}: column {name} holds {values[row]}; use integers from 0 to 2^63 - 1")
    return values.astype(np.int64, copy=False)
