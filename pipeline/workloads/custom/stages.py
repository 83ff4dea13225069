"""The stages of an algorithm of users' own: they call its methods for chunks, and check what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from longwall.pipeline.workloads.custom.algorithm import Algorithm, Array, Found
from longwall.stages.base import Stage, WorkerContext
from longwall.stages.stage_timer import StageTimer
from longwall.storage.errors import InputError
from longwall.storage.memory.sizes import round_size
from longwall.storage.tables.embedding_table import Columns, EmbeddingTable, from_columns

Made = TypeVar("Made")

_LEVEL_BYTES = 24  # of a candidate that becomes a row, for each column: flat, and in the table
_LEAST_WINDOW = 1 << 10  # rows whose candidates are looked at together
_CHUNK = 1 << 20  # candidates; an interrupt waits until those of a chunk have been looked at


class AlgorithmContext(WorkerContext, Protocol):
    """What the stages of an algorithm work with."""

    algorithm: Algorithm
    xp: Any
    timer: StageTimer
    indptr: Any
    """int64[n + 1]: of the graph, on the host."""
    work: int
    """Bytes for the candidates of a chunk."""
    option: str
    """The option of the config that sets them."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the algorithm with these arguments, the graph and the module for arrays."""
        ...

    def fit(self, stage: Stage, most: int, work: Callable[[int], Made]) -> Made:
        """Do a piece of work that is as large as memory allows, `most` at most."""
        ...

    def push(self, rows: EmbeddingTable) -> None:
        """Keep rows for later."""
        ...

    def pop(self) -> EmbeddingTable | None:
        """Return the rows that were kept last; None where there are none."""
        ...

    def note(self, value: Any) -> None:
        """Keep a value that was found."""
        ...

    def write(self, rows: Mapping[str, Array]) -> int:
        """Write rows of the result table; return their number."""
        ...


def capacity(context: AlgorithmContext, levels: int) -> int:
    """Return how many candidates of rows of a given number of columns there is memory for."""
    return max(context.work // (context.algorithm.candidate_bytes + _LEVEL_BYTES * (levels + 1)), 1)


@dataclass(frozen=True)
class AlgorithmScan(Stage):
    """The first rows of an algorithm."""

    algorithm: str

    verb = "source"

    def describe(self) -> str:
        """See `Stage`."""
        return f"source       {self.algorithm}.roots of every vertex"

    def run(self, chunk: tuple[int, int], context: AlgorithmContext) -> Iterator[EmbeddingTable]:
        """Yield the rows of the vertices ``chunk[0]`` to ``chunk[1]`` - 1, as many at a time as there is room for."""
        first, last = chunk
        while first < last:
            fitting = int(context.indptr[first]) + min(capacity(context, 1), _CHUNK)
            end = min(max(int(np.searchsorted(context.indptr, fitting, side="right")) - 1, first + 1), last)
            with context.timer.time(1) as sample:
                rows, size = context.fit(self, end - first, partial(self._rows, context, first))
                sample.rows_in, sample.rows_out, sample.size = size, len(rows), rows.nbytes
            if len(rows):
                yield rows
            del rows
            first += size

    def _rows(self, context: AlgorithmContext, first: int, size: int) -> tuple[EmbeddingTable, int]:
        xp, what = context.xp, f"{self.algorithm}.roots"
        columns = context.call("roots", first, first + size)
        columns = [_integers(column, xp, f"{what}: a column") for column in columns]
        if not columns or len({column.size for column in columns}) > 1:
            raise InputError(f"{what} must return at least one column, all of one length")
        return from_columns(xp.stack(columns), xp), size


@dataclass(frozen=True)
class Grow(Stage):
    """Process rows and extend them, until none is extended; rows wait on a stack (G-thinkerCG, section III)."""

    algorithm: str

    verb = "extend"

    def describe(self) -> str:
        """See `Stage`."""
        return f"extend       {self.algorithm}.process and {self.algorithm}.extend, until no row is extended"

    def run(self, chunk: EmbeddingTable, context: AlgorithmContext) -> Iterator[Mapping[str, Array]]:
        """Yield what is found for the result table."""
        windows: dict[int, int] = {}
        yield from self._processed(chunk, context)
        context.push(chunk)
        del chunk
        while not context.done and (rows := context.pop()) is not None:
            levels, window = rows.num_levels, windows.get(rows.num_levels, len(rows))
            with context.timer.time(levels + 1) as sample:
                most = self._fitting(rows.sliced(0, min(window, len(rows))), context)
                grown, size = context.fit(self, most, partial(self._extended, rows, context))
                sample.rows_in = size
                if grown is not None:
                    sample.rows_out, sample.size = len(grown), grown.nbytes
            windows[levels] = max(2 * size, _LEAST_WINDOW)
            if size < len(rows):
                context.push(rows.sliced(size, len(rows)))
            del rows
            if grown is not None and len(grown):
                yield from self._processed(grown, context)
                context.push(grown)
            del grown

    def _fitting(self, rows: EmbeddingTable, context: AlgorithmContext) -> int:
        """Return how many of the rows have candidates that fit the memory, one at least.

        Raises
        ------
        InputError
            If there is no room for those of one row.
        """
        xp, what = context.xp, f"{self.algorithm}.candidates"

        def ends_of(size: int) -> Any:
            part = rows.sliced(0, size).to(xp)
            sizes = _integers(context.call("candidates", Columns(part)), xp, f"{what}: the result")
            if sizes.size != size:
                raise InputError(f"{what} must return a number for each of {size:,} rows, not {sizes.size:,}")
            ends = xp.cumsum(sizes)
            return ends if isinstance(ends, np.ndarray) else ends.get()

        ends = context.fit(self, len(rows), ends_of)
        fitting = capacity(context, rows.num_levels)
        if int(ends[0]) > fitting:
            raise InputError(
                f"{self.algorithm} looks at {int(ends[0]):,} candidates of one row, and {round_size(context.work)} for "
                f"each worker have room for {fitting:,}: raise {context.option}, or lower engine.threads"
            )
        return max(int(np.searchsorted(ends, min(fitting, _CHUNK), side="right")), 1)

    def _extended(
        self, rows: EmbeddingTable, context: AlgorithmContext, size: int
    ) -> tuple[EmbeddingTable | None, int]:
        xp, what = context.xp, f"{self.algorithm}.extend"
        part = rows.sliced(0, size).to(xp)
        found = context.call("extend", Columns(part))
        if found is None:
            return None, size
        try:
            parents, values = found
        except (TypeError, ValueError):
            raise InputError(f"{what} must return (parents, values), or None") from None
        parents, values = _integers(parents, xp, f"{what}: parents"), _integers(values, xp, f"{what}: values")
        if parents.size != values.size:
            raise InputError(f"{what}: there are {parents.size:,} parents and {values.size:,} values")
        if parents.size and (int(parents[-1]) >= size or bool((parents[1:] < parents[:-1]).any())):
            raise InputError(f"{what}: parents must ascend and be below the number of rows, {size:,}")
        return part.extended(xp.bincount(parents, minlength=size).astype(xp.int64), values), size

    def _processed(self, rows: EmbeddingTable, context: AlgorithmContext) -> Iterator[Mapping[str, Array]]:
        begin = 0
        while begin < len(rows) and not context.done:
            found, size = context.fit(self, len(rows) - begin, partial(self._looked_at, rows, context, begin))
            begin += size
            if found is None:
                continue
            if not isinstance(found, Found):
                kind = type(found).__name__
                raise InputError(f"{self.algorithm}.process must return longwall.Found, or None, not {kind}")
            if found.value is not None:
                context.note(found.value)
            if found.rows is not None:
                yield found.rows

    def _looked_at(self, rows: EmbeddingTable, context: AlgorithmContext, begin: int, size: int) -> tuple[Any, int]:
        part = rows.sliced(begin, begin + size).to(context.xp)
        return context.call("process", Columns(part)), size


@dataclass(frozen=True)
class WriteRows(Stage):
    """Write the rows that an algorithm found as Parquet, with its own schema."""

    columns: tuple[str, ...]

    verb = "export"

    def describe(self) -> str:
        """See `Stage`."""
        return f"export       rows: {', '.join(self.columns)}" if self.columns else "export       no rows, a value only"

    def run(self, chunk: Mapping[str, Array], context: AlgorithmContext) -> Iterable[Any]:
        """Hand the rows to the context's writer."""
        with context.timer.time(0) as sample:
            sample.rows_in = sample.rows_out = context.write(chunk)
        return ()


def _integers(array: Any, xp: Any, what: str) -> Array:
    """Check that an array has one dimension of integers from 0 on; return it as uint32 where it is, else as int64."""
    array = xp.asarray(array)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == xp.uint64:
        if array.size or array.ndim != 1:
            raise InputError(f"{what} must be an array of integers with one dimension, not {array.dtype}{array.shape}")
        array = array.astype(xp.int64)
    if array.dtype.kind == "i" and array.size and int(array.min()) < 0:
        raise InputError(f"{what} must be 0 or more, not {int(array.min())}")
    return array if array.dtype == xp.uint32 else array.astype(xp.int64, copy=False)
