"""Columns of Arrow's that hold pairs of integers: which these are, and their values."""

from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.columns import ColumnRequest, choose_columns, describe_choice

Int64s = npt.NDArray[np.int64]


def choose_pair(where: object, schema: Any, request: ColumnRequest) -> tuple[int, int]:
    """Return the places of the columns to read among the fields of a schema.

    Parameters
    ----------
    where
        What is read, for messages.
    schema : pyarrow.Schema
        Its columns.
    request
        What to look for.

    Raises
    ------
    InputError
        If it is not clear which columns are meant, or a name stands twice.
    """
    import pyarrow as pa

    def error(what: str) -> InputError:
        return InputError(f"{where}: {what}")

    names = list(schema.names)
    types = ["" if pa.types.is_integer(field.type) else str(field.type) for field in schema]
    first, second = choose_columns(names, request, error, types)
    for name in (names[first], names[second]):
        if names.count(name) > 1:
            raise error(f"more than one column is named {name!r}; write the file with other names")
    request.note(describe_choice(where, (names[first], names[second]), len(names) - 2))
    return first, second


def ids_of(where: object, name: str, column: Any, start: int) -> Int64s:
    """Return a column as int64[rows], an array of its own.

    Parameters
    ----------
    where, name
        What is read, and the column, for messages.
    column : pyarrow.Array
        Integers.
    start
        Rows ahead of these.

    Raises
    ------
    InputError
        If one is null or not in [0, 2^63).
    """
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{where}, {place_of(start, row)}: column {name} is empty; fill or remove the row")
    values: npt.NDArray[np.integer[Any]] = column.to_numpy()
    bad = values < 0 if values.dtype.kind == "i" else values >= 2**63
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{where}, {place_of(start, row)}: column {name} holds {values[row]}; use integers from 0 to 2^63 - 1"
        )
    return np.array(values, np.int64)


def place_of(start: int, row: int) -> str:
    """Say where a row stands, with `start` rows ahead of its block."""
    return f"row {start + row + 1}"
