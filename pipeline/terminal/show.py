"""Tables of results, a batch at a time."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from longwall.pipeline.result import opened_result, result_files
from longwall.pipeline.run_store.manifest import manifest_of, why_no_run
from longwall.pipeline.run_store.run_place import place_at
from longwall.storage.errors import InputError
from longwall.storage.system.plain_text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from longwall.pipeline.run_store.store import RunStore

_ROWS = 1 << 14  # of a batch
_FORMULA = r"^[=+\-@\t\r]"


def tables_of(address: str) -> tuple[RunStore, dict[str, list[str]]]:
    """Return the files of a finished run, and its tables with the names of their files.

    Raises
    ------
    InputError
        If it is no run, or not finished.
    """
    store = place_at(address).store
    try:
        status = manifest_of(store)["status"]
    except (OSError, ValueError) as error:
        raise why_no_run(address, error) from None
    if status != "done":
        raise InputError(f"{address}: this run is not finished, it has no results yet; resume it, or wait")
    tables: dict[str, list[str]] = {}
    for file in result_files(store):
        tables.setdefault(PurePosixPath(file).stem.partition("-")[0], []).append(file)
    return store, tables


def batches(store: RunStore, files: list[str], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table, at most `limit` (0: all).

    Raises
    ------
    RunError
        If a file is damaged.
    """
    from longwall.storage.tables.parquet_rows import parquet_batches

    left = limit or None
    for name in files:
        with opened_result(store, f"results/{name}") as source:
            where = f"{store.where}/results/{name}"
            for batch in parquet_batches(source, where, _ROWS if left is None else min(_ROWS, left)):
                some = batch if left is None else batch.slice(0, left)
                yield some
                left = None if left is None else left - some.num_rows
                if left == 0:
                    return


def rows_of(parts: Iterator[pa.RecordBatch]) -> tuple[list[str], list[list[Any]], frozenset[str]]:
    """Return names of columns, rows, and the columns of numbers."""
    import pyarrow as pa

    names: list[str] = []
    rows: list[list[Any]] = []
    right: frozenset[str] = frozenset()
    for part in parts:
        names = part.schema.names
        right = frozenset(one.name for one in part.schema if pa.types.is_integer(one.type))
        columns = [column.to_pylist() for column in part.columns]
        rows += [list(row) for row in islice(zip(*columns, strict=True), part.num_rows)]
    return names, rows, right


def write_csv(
    parts: Iterator[pa.RecordBatch], stream: Any, *, for_spreadsheets: bool = False, shown: bool = False
) -> None:
    """Write rows as CSV, a batch at a time; lists as JSON.

    Parameters
    ----------
    parts
        The rows.
    stream
        Takes bytes.
    for_spreadsheets
        Whether texts that a spreadsheet would take for a formula get an apostrophe before them.
    shown
        Whether texts must not drive a terminal.
    """
    import pyarrow as pa
    from pyarrow import csv

    writer = None
    for part in parts:
        columns = [pa.array(part.schema.names, pa.string()), *map(_flat, part.columns)]
        if for_spreadsheets:
            columns = [_no_formulas(column) for column in columns]
        if shown:
            columns = [_harmless(column) for column in columns]
        flat = pa.RecordBatch.from_arrays(columns[1:], columns[0].to_pylist())
        writer = writer or csv.CSVWriter(stream, flat.schema)
        writer.write_batch(flat)
    if writer is not None:
        writer.close()


def _flat(column: pa.Array) -> pa.Array:
    """Return a column that CSV can hold."""
    import pyarrow as pa

    if not pa.types.is_nested(column.type):
        return column
    return pa.array([None if one is None else json.dumps(one, default=str) for one in column.to_pylist()], pa.string())


def _no_formulas(column: pa.Array) -> pa.Array:
    """Return texts with an apostrophe before those that begin as formulas do; other columns as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_text(column):
        return column
    mark, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
    marked = pc.binary_join_element_wise(mark, column, nothing)
    return pc.if_else(pc.match_substring_regex(column, _FORMULA), marked, column)


def _harmless(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    if not _is_text(column):
        return column
    return pa.array([None if one is None else harmless(one) for one in column.to_pylist()], column.type)


def _is_text(column: pa.Array) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
