"""The one place that chooses who takes the rows of workers: result files or, for a reader, a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longwall.pipeline.execution.phase import host_threads
from longwall.stages.export import PartFiles, RowSink, WriterMemory
from longwall.stages.writing_threads import WritingThreads

if TYPE_CHECKING:
    import pyarrow as pa

    from longwall.pipeline.execution.environment import Environment


def row_sink(env: Environment, schema: pa.Schema, memory: WriterMemory) -> RowSink:
    """Return the sink for the rows of a worker."""
    if env.rows is not None:
        return env.rows.sink(schema, memory, env.cancel)

    def next_name() -> str:
        return f"embeddings-{env.files.next_number('results.partial/embeddings-'):05}.parquet"

    return WritingThreads(lambda: PartFiles(env.results, next_name, schema, memory), memory.threads)


def writer_memory(env: Environment, memory: int, columns: int, row_bytes: int) -> WriterMemory:
    """Make the most of a given number of bytes for a sink; see `WriterMemory.within`."""
    if env.rows is not None:
        return WriterMemory.handing_over(memory, row_bytes)
    return WriterMemory.within(memory, columns, row_bytes, writing_threads(env))


def writing_threads(env: Environment) -> int:
    """Return how many threads of the host write what a worker of a device finds; 0: the worker itself, on a host."""
    return host_threads(env) // env.engine.workers if env.resources.on_device else 0
