"""The one place where workers hand their rows over: result files or, if someone reads them meanwhile, a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longwall.stages.export import PartFiles, RowSink, WriterMemory
from longwall.stages.writing_threads import WritingThreads
from longwall.storage.system.concurrency import core_count

if TYPE_CHECKING:
    import pyarrow as pa

    from longwall.pipeline.execution.environment import Environment


def row_sink(env: Environment, schema: pa.Schema, memory: WriterMemory) -> RowSink:
    """Return what takes the rows of a worker."""
    if env.rows is not None:
        return env.rows.sink(schema, memory, env.cancel)

    def next_name() -> str:
        return f"embeddings-{env.files.next_number('results.partial/embeddings-'):05}.parquet"

    return WritingThreads(lambda: PartFiles(env.results, next_name, schema, memory), memory.threads)


def writer_memory(env: Environment, memory: int, columns: int, row_bytes: int) -> WriterMemory:
    """Make the most of a given number of bytes for a sink; see `WriterMemory.within`."""
    if env.rows is not None:
        return WriterMemory.handing_over(memory, row_bytes)
    # A device finds rows faster than one thread of the host encodes them.
    threads = core_count() // env.engine.workers if env.resources.on_device and env.spec.engine.threads != 1 else 0
    return WriterMemory.within(memory, columns, row_bytes, threads)
