"""A graph that stays in its store: of its arrays, only where the list of each vertex begins comes to memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.compile import compiled
from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.array_reader import StoredArray
from longwall.storage.errors import InputError
from longwall.storage.graph.degree_histogram import DegreeHistogram
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import (
    GraphTooLarge,
    StoreReader,
    num_transactions,
    opened_store,
    reading_workers,
)
from longwall.storage.graph.row_checks import Rows
from longwall.storage.graph.store_header import StoreHeader
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.stored_files import Damage

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = npt.NDArray[np.int64]

ROW_ARRAYS = ("indices", "edge_labels")
"""The arrays with an item for each arc."""
_VERTICES_AT_ONCE = 1 << 20
_MORE = 6  # bytes for a byte that is read: where the rows of a block begin, and what that is computed with


@dataclass(frozen=True)
class Stored:
    """What is known of a store that stays closed.

    Attributes
    ----------
    path, header
        The store, and what it says of its graph.
    sizes
        Bytes of each array in memory.
    transactions
        Their number.
    hashes
        Of the arrays, but for those with an item for each arc.
    host
        Pays for what is read.
    refusal
        Why the graph is not in memory, for the user.
    """

    path: Path
    header: StoreHeader
    sizes: dict[str, int]
    transactions: int
    hashes: dict[str, ArrayHash]
    host: MemoryBudget
    refusal: str


class StaysInStore(InputError):
    """An array is asked for that stays in its store."""


class StoredGraph(Graph):
    """A graph that stays in its store. What asks for its arrays is refused: `StaysInStore`.

    Parameters
    ----------
    reader
        The open store; all arrays were read but `ROW_ARRAYS`.
    stored
        What is known of it.
    starts
        See below.

    Attributes
    ----------
    stored
        See above.
    starts : int64[n + 1]
        How many arcs to smaller neighbours come before those of each vertex, and how many there are.
    histogram
        Its degrees.
    """

    stored: Stored
    starts: Int64s
    histogram: DegreeHistogram

    def __init__(self, reader: StoreReader, stored: Stored, starts: Int64s) -> None:
        texts = stored.header.label_names
        known: dict[str, Any] = {
            "stored": stored,
            "starts": starts,
            "histogram": reader.checks.histogram,
            "stats": reader.stats_without_rows(),
            "content_hash": stored.header.content_hash,
            "label_names": texts.get("vertices"),
            "edge_label_names": texts.get("edges"),
            "notes": stored.header.notes,
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    if not TYPE_CHECKING:

        def _absent(self) -> NoReturn:
            raise StaysInStore(self.stored.refusal)

        indptr = indices = split = original_ids = labels = edge_labels = property(_absent)
        transactions = transaction_ids = name_starts = name_bytes = property(_absent)

    def close(self) -> None:
        """Release what stays reserved; the graph is of no further use."""
        self.stored.host.charge(-self.starts.nbytes, "")

    @property
    def num_vertices(self) -> int:
        """See `Graph`."""
        return self.stored.header.vertices

    @property
    def num_edges(self) -> int:
        """See `Graph`."""
        return self.stored.header.edges

    @property
    def nbytes(self) -> int:
        """See `Graph`."""
        return sum(self.stored.sizes.values())

    @property
    def has_labels(self) -> bool:
        """See `Graph`."""
        return "labels" in self.stored.sizes

    @property
    def num_transactions(self) -> int:
        """See `Graph`."""
        return self.stored.transactions

    @property
    def has_names(self) -> bool:
        """See `Graph`."""
        return "name_bytes" in self.stored.sizes

    @property
    def id_type(self) -> "pa.DataType":
        """See `Graph`."""
        import pyarrow as pa

        return pa.large_string() if self.has_names else pa.from_numpy_dtype(np.dtype(self.stored.header.id_type))

    @property
    def id_bytes(self) -> int:
        """See `Graph`."""
        sizes = self.stored.sizes
        return 16 + 2 * sizes["name_bytes"] // max(1, sizes["name_starts"] // 8 - 1) if self.has_names else 8

    def degree_powers(self) -> list[tuple[int, int]]:
        """See `Graph`."""
        degrees, counts = self.histogram.degrees, self.histogram.counts
        powers = [1 << bit for bit in range(int(self.stats.max_degree).bit_length())]
        return [(power, int(counts[(degrees >= power) & (degrees < 2 * power)].sum())) for power in powers]

    def degrees_of(self, vertices: Int64s) -> Int64s:
        """See `Graph`."""
        return self.histogram.degrees[self.histogram.groups(vertices)]

    def out_degrees(self) -> tuple[list[int], list[int]]:
        """See `Graph`."""
        counts = np.zeros(self.stats.max_out_degree + 1, np.int64)
        for first in range(0, self.num_vertices, _VERTICES_AT_ONCE):
            counts += np.bincount(np.diff(self.starts[first : first + _VERTICES_AT_ONCE + 1]), minlength=len(counts))
        degrees = np.flatnonzero(counts)
        return degrees.tolist(), counts[degrees].tolist()

    def all_ids(self) -> "pa.Array":
        """See `Graph`; they are read from the store, and stay in memory, reserved.

        Raises
        ------
        InputError
            If the store was changed meanwhile.
        BudgetExceeded
            If they do not fit.
        """
        return self._ids

    @cached_property
    def _ids(self) -> "pa.Array":
        import pyarrow as pa

        from longwall.storage.tables.arrow_columns import of_array

        names = ("original_ids", "name_starts", "name_bytes") if self.has_names else ("original_ids",)
        copies = 3 if self.has_names else 1  # what is there, and what is picked of it
        self.stored.host.charge(copies * sum(self.stored.sizes[name] for name in names), "the ids of the vertices")
        with opened_store(self.stored.path, None) as (_, arrays):
            numbers, *texts = (self._read_again(name, arrays[name]) for name in names)
        if not texts:
            return of_array(numbers)
        buffers = [None, *map(pa.py_buffer, texts)]
        return pa.Array.from_buffers(pa.large_string(), len(texts[0]) - 1, buffers).take(of_array(numbers))

    def _read_again(self, name: str, array: StoredArray) -> npt.NDArray[Any]:
        hashed = ArrayHash(array.layout.dtype, array.layout.length)
        items = np.empty(array.layout.length, array.layout.dtype)
        for start, stop in array.blocks():
            array.read(start, items[start:stop], hashed)
        if hashed.line(name) != self.stored.hashes[name].line(name):
            raise Damage(f"{name}: it was changed")
        return items

    def begins(self, rows: Int64s) -> Int64s:
        """Return int64[k]: the arcs of the data graph that the rows int64[k] begin with; row n begins at the end."""
        return self.histogram.row_starts(rows)

    def row_of(self, arc: int) -> int:
        """Return the row of an arc of the data graph."""
        return int(self.histogram.rows_of(np.array([arc]))[0])

    def oriented_arc(self, at: int) -> int:
        """Return how many of the first `at` arcs of the data graph lead to smaller neighbours."""
        if at >= 2 * self.num_edges:
            return self.num_edges
        row = self.row_of(at)
        return min(int(self.starts[row]) + at - int(self.begins(np.array([row]))[0]), int(self.starts[row + 1]))

    def rows_between(self, start: int, stop: int) -> Rows:
        """Return the rows that have the arcs `start` to `stop` - 1 of the data graph; 16 bytes for each."""
        first, last = self.row_of(start), self.row_of(stop - 1)
        rows = Rows(first, np.empty(last + 2 - first, np.int64), np.empty(last + 1 - first, np.int64))
        histogram = self.histogram
        begin = int(self.begins(np.array([first]))[0])
        _fill_rows(first, begin, self.starts, histogram.first_ranks, histogram.degrees, rows.indptr, rows.split)
        return rows


def open_stored(path: Path, host: MemoryBudget, refusal: str) -> StoredGraph:
    """Open a graph that stays in its store: all arrays are read and checked, but `ROW_ARRAYS`.

    Whether ids are distinct is not checked: nothing that is mined of such a graph depends on it.

    Parameters
    ----------
    path
        The store.
    host
        Pays for `StoredGraph.starts`, which stay reserved, and for reading.
    refusal
        See `Stored`.

    Raises
    ------
    InputError
        The store is damaged, or too large for `host` even so.
    """
    try:
        with opened_store(path, host) as (header, arrays), _starts_reserved(header, host) as starts:
            few = [array for name, array in arrays.items() if name not in ROW_ARRAYS]
            workers, size = reading_workers(few, host.free // 2, _MORE)
            with host.reserve(size, "reading the graph"), StoreReader(header, arrays, workers) as reader:
                _read(reader, starts)
                stored = Stored(
                    path,
                    header,
                    {name: array.layout.nbytes for name, array in arrays.items()},
                    num_transactions(arrays),
                    reader.hashes,
                    host,
                    refusal,
                )
                return StoredGraph(reader, stored, starts)
    except GraphTooLarge as error:
        raise InputError(f"{refusal}; streaming it from its store takes more, too ({error.refusal})") from error


@contextmanager
def _starts_reserved(header: StoreHeader, host: MemoryBudget) -> Iterator[Int64s]:
    """Make room for an item per vertex; the reservation stays, unless the block fails."""
    reserved = host.reserve(8 * (header.vertices + 1), "where the lists of its vertices begin")
    try:
        yield np.zeros(header.vertices + 1, np.int64)
    except BaseException:
        reserved.release()
        raise


def _read(reader: StoreReader, starts: Int64s) -> None:
    """Read the arrays without an item per arc; find how many smaller neighbours come before those of each vertex."""

    def note(start: int, block: Int64s) -> int:
        ranks = np.arange(start, start + len(block))
        np.subtract(block, reader.checks.histogram.row_starts(ranks), out=starts[start + 1 : start + len(block) + 1])
        return 0

    for name in reader.stored:
        if name not in ROW_ARRAYS:
            reader.read(name, check=note if name == "split" else None)
    np.cumsum(starts, out=starts)
    if int(starts[-1]) != reader.header.edges:
        raise Damage("split: rows are not split into as many smaller neighbours as there are edges")


@compiled("i8, i8, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1]")
def _fill_rows(
    first: int, begin: int, starts: Int64s, first_ranks: Int64s, degrees: Int64s, indptr: Int64s, split: Int64s
) -> None:
    """Write where rows begin, from row `first` on, which begins at arc `begin`, and where they are split."""
    group = first_above(first_ranks, first) - 1
    indptr[0] = begin
    for i in range(split.size):
        if group + 1 < first_ranks.size and first_ranks[group + 1] == first + i:
            group += 1
        split[i] = indptr[i] + starts[first + i + 1] - starts[first + i]
        indptr[i + 1] = indptr[i] + degrees[group]
