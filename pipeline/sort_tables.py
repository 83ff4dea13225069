"""Sort the rows of a listing that is done: ``export.sort``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.run_store.run_names import RESULTS
from longwall.pipeline.run_store.store import fetched
from longwall.storage.errors import FinalError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa

    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.run_store.commit_log import PhaseRecord

_TABLE = "embeddings"
_WRITER_SHARE, _MOST_WRITER = 4, 256 << 20  # of the free memory of the host, and bytes


def sort_embeddings(env: Coordinator) -> None:
    """Replace the files of each listing by files whose rows are in order, if ``export.sort`` asks for that.

    One commit replaces all files of a listing: a run that is interrupted before sorts again, and loses nothing. What an
    earlier attempt sorted stays as it is.

    Raises
    ------
    BudgetExceeded
        If the budgets have no room for a chunk of rows, or for the runs that wait on the disk.
    RunError
        If a file is damaged.
    """
    for record in env.log.records(_TABLE) if env.spec.export.sort else ():
        files = record.files()
        if not all(file.get("sorted") for file in files):
            _sort(record, files, env)


def _sort(record: PhaseRecord, files: list[dict[str, Any]], env: Coordinator) -> None:
    from longwall.stages.export import PartFiles, WriterMemory, bytes_per_row
    from longwall.storage.tables.row_sorter import RowSorter

    began, host, rows = time.perf_counter(), env.resources.host, sum(file["rows"] for file in files)
    env.observer.phase("sorting", 2 * rows, "rows")  # they are taken, and then written
    schema, size = _measured(files[0], env)
    row_bytes = bytes_per_row(1, size)
    memory = WriterMemory.within(min(host.free // _WRITER_SHARE, _MOST_WRITER), len(schema.names), row_bytes)
    number = env.files.next_number(f"{RESULTS}{_TABLE}-")
    names = (f"{_TABLE}-{number:05}-{part:08}.parquet" for part in range(10**8))
    with host.reserve(memory.nbytes, "writing the results in order"), RowSorter(env.resources, schema) as sorter:
        written = PartFiles(env.results, lambda: next(names), schema, memory)
        try:
            for file in files:
                _read(file, sorter.add, env)
            for batch in sorter.rows():
                written.write(batch)
                env.observer.advance(batch.num_rows)
            made = written.take()
        finally:
            written.abandon()
        spilled = sorter.spilled
    if sum(file["rows"] for file in made) != rows:
        raise FinalError(f"{env.log.store.where}: rows were lost in sorting: start a new run")
    named = tuple(file | {"name": f"{RESULTS}{file['name']}", "sorted": True} for file in made)
    record.commit([], PartialResult(0, named, replaces=tuple(file["name"] for file in files)))
    env.metrics.record("sort", 0, rows, rows, time.perf_counter() - began, spilled)


def _measured(file: dict[str, Any], env: Coordinator) -> tuple[pa.Schema, int]:
    """Return the columns of a file, and the bytes that one of its first rows takes in memory on average."""
    from longwall.storage.tables.parquet_rows import parquet_batches, parquet_schema

    name = f"{env.log.store.where}/{file['name']}"
    with _opened(file, env) as path, path.open("rb") as source:
        schema = parquet_schema(source, name)
        first = next(parquet_batches(source, name))
    return schema, -(-first.nbytes // first.num_rows)


def _read(file: dict[str, Any], add: Callable[[pa.RecordBatch], None], env: Coordinator) -> None:
    from longwall.storage.tables.parquet_rows import parquet_batches

    with _opened(file, env) as path, path.open("rb") as source:
        for batch in parquet_batches(source, f"{env.log.store.where}/{file['name']}"):
            add(batch)
            env.observer.advance(batch.num_rows)


def _opened(file: dict[str, Any], env: Coordinator) -> AbstractContextManager[Path]:
    return fetched(env.log.store, file["name"], file["bytes"], env.resources.disk)
