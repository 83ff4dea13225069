"""The result tables of cliques: by size, and by vertex; numbers of any size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longwall.kernels.interface.kcliques import exact_sum, exact_values
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.result_tables import number_array, number_type
from longwall.stages.cliques.leaves import CountCliquesOfVertices
from longwall.storage.parquet_files import ParquetSink, write_parquet

_AT_ONCE, _LEAST = 1 << 16, 1 << 8  # vertices whose rows are put together
_SHARE = 1 / 4  # of what is free of the host, for them
_ROW_BYTES = 512  # of each of them: as a number, as digits, and as a row


def write_sizes(counts: Sequence[tuple[int, int]], env: Coordinator) -> None:
    """Write (size, count) to ``sizes.parquet``."""
    kind = number_type(max((count for _, count in counts), default=0))
    schema = pa.schema([("size", pa.int32()), ("count", kind)])
    columns = [pa.array([size for size, _ in counts], pa.int32()), number_array([count for _, count in counts], kind)]
    write_parquet(pa.table(columns, schema=schema), env.results / "sizes.parquet")


class VertexTable:
    """``vertices.parquet``: in how many cliques each vertex is; a context manager.

    Parameters
    ----------
    env
        The run.
    most
        No number is larger; None: the type of the column follows from the first counts.
    sizes
        Whether there is a row for each vertex and size that it is in a clique of; else each vertex has a row.
    """

    def __init__(self, env: Coordinator, *, most: int | None, sizes: bool):
        self._env, self._sizes = env, sizes
        host = env.resources.host
        fitting = max(int(host.free * _SHARE) // _ROW_BYTES, _LEAST)
        self._at_once = max(1, min(_AT_ONCE, env.graph.num_vertices, fitting))
        self._memory = host.reserve(self._at_once * _ROW_BYTES, "a part of the table of vertices")
        self._sink: ParquetSink | None = None
        if most is not None:
            self._open(most)

    def __enter__(self) -> VertexTable:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._sink is not None:
            (self._sink.close if error is None else self._sink.abandon)()
        self._memory.release()

    def write(self, k: int, limbs: NDArray[np.int64]) -> int:
        """Write how many k-cliques each vertex is in, int64[limbs, num_vertices]; returns how many there are."""
        began = time.perf_counter()
        sink = self._sink or self._open(_largest(limbs, self._at_once))
        ids = self._env.graph.all_ids()
        kind = self._schema.field("cliques").type
        for first in range(0, limbs.shape[1], self._at_once):
            rows = slice(first, first + self._at_once)
            part = limbs[:, rows]
            columns = [ids[rows], _numbers(part, kind)]
            if self._sizes:
                columns.insert(1, pa.array(np.full(part.shape[1], k, np.int32)))
            table = pa.table(columns, schema=self._schema)
            if self._sizes:
                table = table.filter(pa.array(part.any(axis=0)))
            sink.write(table)
        found = exact_sum(limbs) // k
        stage = CountCliquesOfVertices.method
        self._env.metrics.record(stage, 0, limbs.shape[1], found, time.perf_counter() - began)
        return found

    def write_nothing(self) -> int:
        """Write that no vertex is in a clique."""
        return self.write(1, np.zeros((1, self._env.graph.num_vertices), np.int64))

    def _open(self, most: int) -> ParquetSink:
        sizes = [("size", pa.int32())] if self._sizes else []
        self._schema = pa.schema([("vertex", self._env.graph.id_type), *sizes, ("cliques", number_type(most))])
        self._sink = ParquetSink(self._env.results / "vertices.parquet", self._schema)
        return self._sink


def _largest(limbs: NDArray[np.int64], at_once: int) -> int:
    """Return a number that is as large as the largest one, or at least of the same type."""
    words = limbs.view(np.uint64)
    if not words[1:].any():
        return int(words[0].max(initial=0))
    return max(int(exact_values(limbs[:, at : at + at_once]).max()) for at in range(0, limbs.shape[1], at_once))


def _numbers(limbs: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Return numbers as a column of a type that holds them."""
    if pa.types.is_int64(kind):
        return pa.array(limbs[0])
    if pa.types.is_decimal(kind):
        words = np.zeros((limbs.shape[1], 2), np.int64)
        words[:, : min(len(limbs), 2)] = limbs[:2].T
        return pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words)])
    return pa.array(exact_values(limbs).astype(str))
