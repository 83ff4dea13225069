"""Sort any number of rows of Arrow columns in bounded memory.

Chunks of rows are sorted in memory and wait in files of the spill folder, as runs. Runs are merged block by block: the
smallest of the last rows of all blocks bounds what may go out; the rows up to there are cut off every block and sorted
together.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from contextlib import ExitStack
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Self

from longwall.storage.parquet_files import ParquetSink
from longwall.storage.tables.parquet_rows import parquet_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from longwall.storage.memory.resources import Resources

_SHARE, _MOST, _LEAST = 2, 1 << 30, 1 << 20  # of the free memory of the host, and bytes
_COPIES = 4  # of a chunk: as it comes, in one piece, its order, and its rows in order as they are written
_BLOCK, _MOST_BLOCK = 1 << 16, 1 << 22  # bytes of a run that are in memory while it is merged, at least and at most
_READER = 1 << 18  # bytes that an open run takes besides
_BLOCK_COPIES = 3  # of blocks: as they are read, cut and together, and in order
_PLAIN: dict[str, Any] = {"use_dictionary": False, "data_page_size": _BLOCK}
_LEVEL = 1  # of the compression
_WHAT = "sorting the results"  # as messages name it


class RowSorter:
    """Takes rows, batch by batch, and yields them in ascending order of all columns, the first column first.

    A context manager, which leaves neither memory nor files behind.

    Parameters
    ----------
    resources
        The budgets, and the spill folder.
    schema
        Of the rows; no column has nulls.

    Raises
    ------
    BudgetExceeded
        In any call: if the budget of the host has no room for a small chunk, or that of the disk none for the runs.
    RunError
        In any call: if a run cannot be written, or is damaged when it is read.

    Attributes
    ----------
    spilled
        Bytes of the runs that were written so far.
    """

    def __init__(self, resources: Resources, schema: pa.Schema):
        self.spilled = 0
        self._resources, self._schema = resources, schema
        self._keys = [(name, "ascending") for name in schema.names]
        free = resources.host.free // _SHARE
        self._memory = resources.host.reserve(min(max(free, _LEAST), _MOST), _WHAT)
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = self._made = 0
        self._runs: list[_Run] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows; a chunk that is full becomes a run."""
        most = self._memory.size // _COPIES
        rows = max(1, batch.num_rows * most // max(batch.nbytes, 1))
        for begin in range(0, batch.num_rows, rows):
            part = batch.slice(begin, rows)
            if self._held and self._held_bytes + part.nbytes > most:
                self._runs.append(self._written(self._sorted_chunk()))
            self._held.append(part)
            self._held_bytes += part.nbytes

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in order, once; none can be added then."""
        if not self._runs:
            yield from self._sorted_chunk()
            return
        if self._held:
            self._runs.append(self._written(self._sorted_chunk()))
        most = max(2, self._memory.size // (_READER + _BLOCK * _BLOCK_COPIES))
        while len(self._runs) > most:
            merged = self._written(self._merged(self._runs[:most]))
            self._runs = [*self._runs[most:], merged]
        yield from self._merged(self._runs)

    def _sorted_chunk(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are held in order, in small batches; none is held then."""
        import pyarrow as pa

        if not self._held:
            return
        chunk = pa.Table.from_batches(self._held, self._schema).combine_chunks()
        self._held, self._held_bytes = [], 0
        yield from self._in_order(chunk)

    def _in_order(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        order = pc.sort_indices(rows, sort_keys=self._keys)
        each = max(1, rows.num_rows * _MOST_BLOCK // max(rows.nbytes, 1))
        for begin in range(0, rows.num_rows, each):
            yield from rows.take(order.slice(begin, each)).combine_chunks().to_batches()

    def _written(self, batches: Iterator[pa.RecordBatch]) -> _Run:
        """Write rows that are in order to a file."""
        import pyarrow as pa

        disk, began = self._resources.disk, time.perf_counter()
        self._made += 1
        run = _Run(self._resources.spill.path / f"rows-{self._made}.parquet", disk.charge)
        try:
            with ParquetSink(run.path, self._schema, level=_LEVEL, encoding=_PLAIN) as sink:
                for batch in batches:
                    run.grow(batch)
                    sink.write(pa.Table.from_batches([batch]))
            run.settle()
        except BaseException:
            run.remove()
            raise
        self.spilled += run.bytes
        disk.add_writing(run.bytes, time.perf_counter() - began)
        return run

    def _merged(self, runs: Sequence[_Run]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of runs in order; the runs are removed."""
        import pyarrow as pa

        block = self._memory.size // (len(runs) * _BLOCK_COPIES) - _READER
        with ExitStack() as opened:
            heads = []
            for run in runs:
                source = opened.enter_context(run.path.open("rb"))
                batches = parquet_batches(source, str(run.path), run.rows_in(min(max(block, _BLOCK), _MOST_BLOCK)))
                if (first := next(batches, None)) is not None:
                    heads.append(_Head(first, batches))
            while heads:
                bound = min(head.last for head in heads)
                parts = [part for head in heads if (part := head.cut(bound)).num_rows]
                yield from self._in_order(pa.Table.from_batches(parts, self._schema)) if len(parts) > 1 else parts
                heads = [head for head in heads if head.refill()]
        for run in runs:
            run.remove()

    def close(self) -> None:
        """Free all memory and files; more than once does no harm."""
        for run in self._runs:
            run.remove()
        self._held, self._runs = [], []
        self._memory.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Run:
    """A file of rows in order, whose bytes are charged to the disk's budget."""

    def __init__(self, path: Path, charge: Callable[[int, str], None]):
        self.path, self.bytes = path, 0
        self._charge, self._rows, self._row_bytes = charge, 0, 0

    def grow(self, batch: pa.RecordBatch) -> None:
        """Charge rows that are about to be written, before they are compressed."""
        self._charge(batch.nbytes, _WHAT)
        self.bytes += batch.nbytes
        self._rows += batch.num_rows
        self._row_bytes += batch.nbytes

    def settle(self) -> None:
        """Charge what the file takes in place of what it was expected to take."""
        size = self.path.stat().st_size
        self._charge(size - self.bytes, _WHAT)
        self.bytes = size

    def rows_in(self, size: int) -> int:
        """Return how many rows take about a given number of bytes in memory."""
        return max(1, self._rows * size // max(self._row_bytes, 1))

    def remove(self) -> None:
        """Remove the file; more than once does no harm."""
        self.path.unlink(missing_ok=True)
        self._charge(-self.bytes, "")
        self.bytes = 0


class _Head:
    """The block of a run that is in memory, and what follows it."""

    def __init__(self, block: pa.RecordBatch, rest: Iterator[pa.RecordBatch]):
        self._rest = rest
        self._take(block)

    def _take(self, block: pa.RecordBatch) -> None:
        self._block, self._begin = block, 0
        self._columns = [_searchable(column) for column in block.columns]
        self.last = tuple(column[block.num_rows - 1].as_py() for column in block.columns)

    def cut(self, bound: tuple[Any, ...]) -> pa.RecordBatch:
        """Take the rows up to a given one, and those that equal it, off the block."""
        begin, end = self._begin, self._block.num_rows
        if self.last > bound:
            low = begin  # rows from `low` to `end` equal the bound in all columns so far
            for (values, key), value in zip(self._columns, bound, strict=True):
                low = bisect_left(values, value, low, end, key=key)
                end = bisect_right(values, value, low, end, key=key)
                if low == end:
                    break
        self._begin = end
        return self._block.slice(begin, end - begin)

    def refill(self) -> bool:
        """Read the next block if nothing is left of this one; return whether there are rows."""
        if self._begin == self._block.num_rows:
            following = next(self._rest, None)
            if following is None:
                return False
            self._take(following)
        return True


def _searchable(column: pa.Array) -> tuple[Any, Callable[[Any], Any] | None]:
    """Return a column for `bisect`, and the key of its values: integers as an array of NumPy, whose access is quick."""
    import pyarrow as pa

    return (column.to_numpy(), None) if pa.types.is_integer(column.type) else (column, methodcaller("as_py"))
