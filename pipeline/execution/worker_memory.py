"""What each worker may use of the budgets when it holds tables: its share, cut into workspace, chunks and a stack."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.rows.row_sink import writer_memory
from longwall.stages.export import WriterMemory, bytes_per_row
from longwall.storage.errors import InputError
from longwall.storage.memory.machine_budget import require
from longwall.storage.memory.sizes import round_size

LARGEST_CHUNK = 1 << 20  # rows that are extended at once; longer chunks gain nothing
_DEVICE_CHUNKS = 4  # times as many on a device, where an extension takes 1 to 3 ms whatever the number of its rows
_LEAST_CHUNK = 1 << 10  # rows
_ON_HOST = 2  # tables of a device that the host holds besides its stack: one that is moved, one that is read ahead
_SHARED_ROW = 12  # bytes of a table for each row: its last value and an offset, where prefixes are shared
# Bytes of a device for a row besides its columns, where prefixes are shared: in a table and in the one that is made of
# it, and what is known of it meanwhile (how many rows it extends to, where they begin and end).
_DEVICE_ROW = 64
# Rows of the last level are not extended: on a device each takes its value alone, in the table. So its extensions give
# this many times as many, in fewer and longer steps, which read fewer lists again.
_LAST_TIMES = 8
_LAST_ROW = 4  # bytes
_SOURCE_ROW_BYTES = 64  # of the source's edges, with the copies that filtering makes
_ACTIVE = 4  # tables that an extension holds: its input, its output, one that is sliced, and one that is read ahead


@dataclass(frozen=True)
class WorkerMemory:
    """What one worker may use.

    Attributes
    ----------
    workspace
        Bytes of the kernels' workspace.
    rows
        Most rows that one extension makes.
    last_rows
        Most rows that an extension to the last level makes.
    most_rows
        Most rows of a chunk that could be extended.
    stack
        Bytes of waiting chunks in the engine's memory.
    host_stack
        Bytes of waiting chunks on the host, where the engine has a memory of its own.
    writer
        What the writer of rows may use; None where none are written.
    host
        Bytes of the host's budget, for all but the workspace.
    """

    workspace: int
    rows: int
    last_rows: int
    most_rows: int
    stack: int
    host_stack: int
    writer: WriterMemory | None
    host: int

    @classmethod
    def for_edges(cls, env: Environment, memory: int) -> "WorkerMemory":
        """Share out the budgets where no rows but the source's edges are held.

        Parameters
        ----------
        env
            The run.
        memory
            Bytes where the engine works.
        """
        share = memory // env.engine.workers
        rows = max(share // 2 // _SOURCE_ROW_BYTES, 1)
        return cls(share // 2, rows, rows, rows, stack=0, host_stack=0, writer=None, host=0)

    @contextmanager
    def reserved(self, env: Environment, tasks: Sequence[Task]) -> Iterator[None]:
        """Reserve what all workers hold besides their workspace, while they do these tasks."""
        if self.host:
            with env.resources.host.reserve(self.host * env.engine.workers, "the workers' tables"):
                yield
        else:
            longest = max(task.last - task.first for task in tasks)
            sources = longest * _SOURCE_ROW_BYTES * env.engine.workers
            with env.resources.work.reserve(sources, "the edges of the workers' tasks"):
                yield

    @classmethod
    def within(cls, k: int, graph: GraphArrays, env: Environment, memory: int, *, exporting: bool) -> "WorkerMemory":
        """Share out the budgets: chunks shrink before the stack has to spill.

        Parameters
        ----------
        k
            Columns of the longest rows.
        graph
            The data graph.
        env
            The run.
        memory
            Bytes where the engine works.
        exporting
            Whether rows are written.

        Raises
        ------
        InputError
            If not even a short chunk fits.
        """
        on_host = not env.resources.on_device
        host = env.resources.host.free // env.engine.workers
        share = memory // env.engine.workers
        table_row = 12 * k  # a value and an offset for each level, where no prefix is shared
        last_times = 1 if on_host else _LAST_TIMES
        active_row = _ACTIVE * table_row + 4 * k + 48  # the flat rows, and what is compressed when it is spilled
        writer = _writer_memory(k, env, host) if exporting else None
        written = 0 if writer is None else writer.nbytes
        if on_host:  # a writer may take more than its quarter, where little memory is shared by many workers
            share = min(share, (host - written) * 4 // 3)
        least = min(graph.max_degree + 1, _LEAST_CHUNK)
        what = f"a chunk of {least:,} rows per worker"
        tables = share // 4 if on_host else share // 2
        require(what, share - tables + least * active_row, share, env.resources.work.option)
        if not on_host:
            # Most prefixes are shared by many rows; where they are not, memory runs short, and pieces become smaller.
            active_row = _DEVICE_ROW + 4 * k + (last_times - 1) * _LAST_ROW
        fitting = tables // (active_row + k * (table_row if on_host else _SHARED_ROW))
        if not on_host:  # chunks pass through the host: what is spilled, what is read ahead
            require(what, 4 * least * (_ON_HOST * table_row), host, "memory.host")
            fitting = min(fitting, host // 4 // (_ON_HOST * table_row))
        rows = max(min(fitting, LARGEST_CHUNK if on_host else _DEVICE_CHUNKS * LARGEST_CHUNK), least)
        stack = min(tables - rows * active_row, k * rows * table_row)
        host_stack = 0 if on_host else host // 4
        return cls(
            workspace=share // 2,
            rows=rows,
            last_rows=last_times * rows,
            most_rows=tables // active_row,
            stack=stack,
            host_stack=host_stack,
            writer=writer,
            host=written + (rows * active_row + stack if on_host else rows * _ON_HOST * table_row + host_stack),
        )


def _writer_memory(k: int, env: Environment, host: int) -> WriterMemory:
    """What a worker's writer may use of the worker's share of the host's memory: a quarter, half of it at most."""
    columns = len(env.spec.export.columns or range(k))
    # As many rows are held until they fill a group as are written to it at once.
    writer = writer_memory(env, host // 4, columns, 2 * (bytes_per_row(k, env.graph.id_bytes) + 4 * k))
    if 2 * writer.nbytes > host:
        raise InputError(
            f"each of {env.engine.workers} workers needs {round_size(2 * writer.nbytes)} to write rows, "
            f"memory.host leaves {round_size(host)} for each: raise memory.host, or lower engine.threads"
        )
    return writer
