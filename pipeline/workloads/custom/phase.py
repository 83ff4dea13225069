"""The phase of an algorithm of users' own, and its workers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, shrink_page_cache
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task, Worker
from longwall.pipeline.execution.task_ranges import root_tasks
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.custom.algorithm import Algorithm, Array, GraphView
from longwall.pipeline.workloads.custom.loading import AlgorithmClass
from longwall.pipeline.workloads.custom.stages import AlgorithmScan, Grow, WriteRows
from longwall.pipeline.workloads.custom.user_code import call
from longwall.stages.base import Aggregation, Stage, stream
from longwall.stages.export import PartFiles, WriterMemory, bytes_per_row
from longwall.stages.source import Scan
from longwall.stages.stage_timer import StageTimer
from longwall.storage.errors import FinalError, InputError
from longwall.storage.system.arguments import type_name
from longwall.storage.tables.chunk_stack import ChunkStack, trimmed
from longwall.storage.tables.embedding_table import EmbeddingTable

if TYPE_CHECKING:
    import pyarrow as pa

Made = TypeVar("Made")

Value = dict[str, Any]
"""The value of a partial result: ``rows``, the number that was written, and ``found``."""
VERTEX = "vertex"
"""In a schema: internal ids, which are written as ids of the input."""
_STACK_SHARE = 2  # of a worker's memory: its stack; the rest is for candidates
_WRITER_SHARE = 4  # of the host's memory
_numbers = itertools.count()  # of the workers of this process: their spilled chunks have names of their own


@dataclass(frozen=True)
class RunAlgorithm(Phase):
    """Run an algorithm; the value of a partial result has the number of rows written, and what was found.

    Attributes
    ----------
    algorithm
        Its class.
    parameters
        Of the object, as JSON.
    cost
        Estimated number of elementary steps.
    stages
        What the roots go through.
    """

    algorithm: AlgorithmClass
    parameters: str
    cost: float
    stages: tuple[Stage, ...]

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"algorithm {self.algorithm.name.rpartition(':')[2]}"

    def make(self) -> Algorithm:
        """Make the algorithm's object."""
        return self.algorithm.make(json.loads(self.parameters))

    @property
    def aggregation(self) -> Aggregation[Value, Any]:
        """See `Phase`: from what `process` found to the algorithm's answer."""
        return Aggregation(_AlgorithmWorker.take_value, self._combined, self._finalized)

    def _combined(self, values: Sequence[Value]) -> Value:
        """Add up the rows, and combine what was found."""
        found = [value["found"] for value in values if value["found"] is not None]
        combined = json_value(call(self.make(), "combine", found), f"{self.name}: combine") if found else None
        return {"rows": sum(value["rows"] for value in values), "found": combined}

    def _finalized(self, value: Value) -> Any:
        return json_value(call(self.make(), "finalize", value["found"]), f"{self.name}: finalize")

    def prepare(self, env: Environment) -> None:
        """Bring the graph to the engine."""
        load_graph(env)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the vertices."""
        return root_tasks(env, Scan("vertices"), self.cost)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' rows, and have the algorithm and the graph."""
        algorithm = self.make()
        arrays, memory = load_graph(env)
        resources, workers = env.resources, env.engine.workers
        labels = env.graph.edge_labels if algorithm.needs_edge_labels else None
        reserved = labels.nbytes if labels is not None and resources.on_device else 0
        with resources.work.reserve(reserved, "the labels of edges on the device"):
            moved = None if labels is None else env.engine.bring(labels, mapped=False)
            schema = arrow_schema(algorithm, env.graph.id_type)
            host = resources.host.free // workers
            columns = max(len(schema), 1)
            row_bytes = bytes_per_row(columns, env.graph.id_bytes)
            writer = WriterMemory.within(host // _WRITER_SHARE, columns, row_bytes)
            share = (memory - reserved) // workers
            share = min(share, host - 2 * writer.nbytes) if not resources.on_device else share
            if min(share, host - 2 * writer.nbytes) <= 0:
                what = f"{self.name}: memory.host has no room for {workers} workers"
                raise InputError(f"{what}: raise it, or lower engine.threads")
            host_stack = host // _WRITER_SHARE if resources.on_device else 0
            held = writer.nbytes + (host_stack if resources.on_device else share)
            graph = GraphView(arrays, moved, env.graph.original_ids, env.engine.xp)
            batches = {stage.verb: AdaptiveBatch(env.engine) for stage in self.stages}
            with resources.host.reserve(held * workers, "the workers' rows"):
                yield lambda: _AlgorithmWorker(env, self, algorithm, graph, schema, share, host_stack, writer, batches)


class _AlgorithmWorker(Worker):
    def __init__(
        self,
        env: Environment,
        phase: RunAlgorithm,
        algorithm: Algorithm,
        graph: GraphView,
        schema: pa.Schema,
        share: int,
        host_stack: int,
        writer: WriterMemory,
        batches: dict[Any, AdaptiveBatch],
    ):
        resources = env.resources
        self._env, self._phase, self._schema, self._batches = env, phase, schema, batches
        self.algorithm, self._graph, self.xp, self.indptr = algorithm, graph, env.engine.xp, env.graph.indptr
        self.timer, self.option = StageTimer(), resources.work.option
        stack = share // _STACK_SHARE
        self.work = share - stack
        name = f"rows-{next(_numbers)}"
        self._stack = ChunkStack(self.xp, stack, host_stack, resources.spill, resources.disk, name)
        self._files = PartFiles(env.results, self._next_name, schema, writer)
        self._values: list[Any] = []
        self._rows = 0

    def _next_name(self) -> str:
        return f"rows-{self._env.files.next_number('results.partial/rows-'):05}.parquet"

    @property
    def done(self) -> bool:
        """Whether the run is to end."""
        return self._env.cancel.is_set()

    def run(self, first: int, last: int) -> None:
        stream((first, last), self._phase.stages, self)

    def call(self, method: str, *arguments: Any) -> Any:
        return call(self.algorithm, method, *arguments, self._graph, self.xp, faults=self._env.engine.faults)

    def fit(self, stage: Stage, most: int, work: Callable[[int], Made]) -> Made:
        return self._batches[stage.verb].run(most, work, self._make_room)

    def _make_room(self, short: ShortOfMemory) -> bool:
        loaded = self._env.device_graph
        return self._stack.leave_engine() or shrink_page_cache(None if loaded is None else loaded.graph.pages, short)

    def push(self, rows: EmbeddingTable) -> None:
        try:
            with self._env.engine.faults():
                rows = trimmed(rows)
        except ShortOfMemory:
            rows = rows.to(np)
        self._stack.push(rows)

    def pop(self) -> EmbeddingTable | None:
        return self._stack.pop()

    def note(self, value: Any) -> None:
        self._values.append(json_value(value, f"{self._phase.name}: process"))
        if len(self._values) > 1:  # one at a time, so that they do not pile up
            combined = call(self.algorithm, "combine", self._values)
            self._values = [json_value(combined, f"{self._phase.name}: combine")]

    def write(self, rows: Mapping[str, Array]) -> int:
        batch = self._batch(rows)
        self._files.write(batch)
        self._rows += batch.num_rows
        return int(batch.num_rows)

    def _batch(self, rows: Mapping[str, Array]) -> pa.RecordBatch:
        import pyarrow as pa

        what, schema = f"{self._phase.name}: process", self.algorithm.schema
        if not isinstance(rows, Mapping):
            raise InputError(f"{what} must return rows as a dictionary from names to columns, not {type_name(rows)}")
        if set(rows) != set(schema):
            names, given = ", ".join(schema) or "none", ", ".join(rows)
            raise InputError(f"{what} must return the columns of the schema ({names}), not {given}")
        columns = []
        for name, kind in schema.items():
            array = rows[name] if isinstance(rows[name], np.ndarray) else self._on_host(rows[name])
            try:
                if kind == VERTEX and array.dtype.kind == "i" and array.size and array.min() < 0:
                    raise IndexError(f"there is no vertex {array.min()}")
                columns.append(
                    self._env.graph.ids_of(array) if kind == VERTEX else pa.array(array, self._schema.field(name).type)
                )
            except (pa.ArrowException, IndexError) as error:
                raise InputError(f"{what}: the column {name} is not what the schema says ({kind}): {error}") from None
        if len({len(column) for column in columns}) > 1:
            raise InputError(f"{what} must return columns of one length")
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _on_host(self, array: Any) -> Any:
        return np.asarray(array.get() if hasattr(array, "get") else array)

    def take_partial(self) -> PartialResult:
        files = tuple(file | {"name": f"results.partial/{file['name']}"} for file in self._files.take())
        return PartialResult(self.take_value(), files, self.timer.take())

    def take_value(self) -> Value:
        rows, self._rows = self._rows, 0
        found, self._values = (self._values or [None])[0], []
        return {"rows": rows, "found": found}

    def close(self) -> None:
        self._files.abandon()
        self._stack.clear()


def arrow_schema(algorithm: Algorithm, id_type: pa.DataType | None = None) -> pa.Schema:
    """Return the schema of the table ``rows``, with vertices of the type of the graph's ids; integers if not given.

    Raises
    ------
    InputError
        If a type is not known.
    """
    import pyarrow as pa

    fields, vertex = [], id_type or pa.int64()
    for name, kind in algorithm.schema.items():
        try:
            fields.append(pa.field(name, vertex if kind == VERTEX else pa.type_for_alias(kind), nullable=False))
        except (ValueError, TypeError):
            title = f"{type(algorithm).__name__}.schema: {name}: {kind!r} is no type"
            raise InputError(f'{title}: use "vertex", or a type of Arrow such as "int64"') from None
    return pa.schema(fields)


def json_value(value: Any, what: str) -> Any:
    """Return a value as JSON holds it exactly; scalars and arrays of NumPy and CuPy become Python's.

    Raises
    ------
    FinalError
        If JSON cannot hold it.
    """

    def plain(other: Any) -> Any:
        if hasattr(other, "tolist"):
            return other.tolist()
        raise TypeError(f"{type(other).__name__} is not a number, a text, a list or a dict")

    try:
        return json.loads(json.dumps(value, default=plain, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise FinalError(f"{what} returned what JSON cannot hold: {error}") from None


def stages_of(algorithm: type[Algorithm]) -> tuple[Stage, ...]:
    """Return the stages of an algorithm."""
    title = algorithm.__name__
    return AlgorithmScan(title), Grow(title), WriteRows(tuple(algorithm.schema))
