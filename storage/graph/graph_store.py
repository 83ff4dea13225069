"""Open a graph store, a graph as a Zarr v3 group, and check it; `store_writer` makes one.

A store may be anybody's. What its metadata say chooses no code; nothing is decoded before it is known to be what
Longwall writes; and arrays are used only if they are those of a graph, see :mod:`longwall.storage.graph.graph_checks`.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.engine import Put
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS
from longwall.storage.arrays import layout
from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.array_reader import StoredArray
from longwall.storage.errors import InputError, StillNeeded
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_checks import Facts, GraphChecks, check_distinct, check_names_distinct
from longwall.storage.graph.graph_data import Ahead, NewAdjacency, Puts, in_memory, no_copies
from longwall.storage.graph.graph_sink import HASHED, Array, content_hash
from longwall.storage.graph.info import id_facts, named_labels, note_facts
from longwall.storage.graph.row_checks import RowChecks, check_sum
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import DTYPES, StoreHeader, is_store, read_header
from longwall.storage.ingest.names.texts import Texts
from longwall.storage.ingest.text.input_file import input_errors
from longwall.storage.memory.allocator import keeping_freed_memory
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.stored_files import Damage
from longwall.storage.system.concurrency import core_count, map_all

if TYPE_CHECKING:
    from longwall.storage.mapping.mapped_arrays import MappedArrays

Check = Callable[[int, Array], int]
_OPTIONAL = ("labels", "edge_labels", "transactions", "transaction_ids", "name_starts", "name_bytes")
_ANY_LENGTH = ("transaction_ids", "name_starts", "name_bytes")
# Chunks of a block, at most: after each step of a block a thread waits for its turn to run Python, 1 ms among 16, so
# many threads take fewer, longer steps. And blocks that every thread has to read, at least, so that all end together.
_MOST_CHUNKS, _BLOCKS_EACH = 8, 4
_PLENTY = 2**63  # bytes
_DECODER_BYTES = 4 * layout.CHUNK_BYTES  # that a thread may have of Blosc at a time, and what lies between them
_READ_FACTOR = 2  # memory of a read, over its size: what is encoded, and what checks make of it


class GraphTooLarge(StillNeeded):
    """A budget has no room for the graph of a store.

    Attributes
    ----------
    path
        The store.
    refusal
        What does not fit.
    """

    def __init__(self, path: Path, refusal: BudgetExceeded) -> None:
        super().__init__(f"{path}: {refusal}")
        self.path, self.refusal = path, refusal


def open_store(
    path: str | Path,
    host: MemoryBudget | None = None,
    adjacency: NewAdjacency = in_memory,
    ahead: Ahead = no_copies,
    files: "MappedArrays | None" = None,
    most: int | None = None,
) -> Graph:
    """Read a graph store into memory and check that it is a graph, and the one that was written.

    All that kernels rely on is checked, and the statistics are computed, but for `closed_wedge_fraction`, which no
    more than estimates depend on.

    Parameters
    ----------
    path
        The store.
    host
        Pays for the graph, whose `nbytes` stay reserved, and for reading it.
    adjacency
        Makes the array of the neighbours.
    ahead
        Takes pieces of the arrays as soon as they are read.
    files
        Makes all arrays, if given: then `host` pays only for reading the graph.
    most
        Most bytes of the graph, if other processes have less memory than `host`; None: as many as `host` allows.

    Raises
    ------
    InputError
        There is no graph store, it may not be read, it is damaged, a newer version of Longwall made it, or it is too
        large for `host`.
    RunError
        If `files` has no room.
    """
    with opened_store(Path(path), host) as (header, stored), ExitStack() as undo:
        chunks = _chunks(stored.values(), _PLENTY if host is None else host.free)
        workers = core_count()
        size = sum(array.layout.nbytes for array in stored.values())
        if most is not None and size > most:
            assert host is not None
            MemoryBudget(host.option, most, host.advice).reserve(size, "the graph")
        if files is not None:
            files.require(size)
        if host is not None:
            if files is None:
                undo.enter_context(host.reserve(size, "the graph"))
            workers, reading = reading_workers(stored.values(), host.free, chunks=chunks)
            buffers = host.reserve(reading, "reading the graph")
            undo.enter_context(buffers)
        with keeping_freed_memory(workers * _DECODER_BYTES), StoreReader(header, stored, workers, chunks) as reader:
            graph = _load(reader, adjacency, ahead, files)
        undo.pop_all()
        if host is not None:
            buffers.release()
    return graph


def describe_store(path: str | Path) -> dict[str, Any]:
    """Describe the graph of a store as `info.info` does, and check it on the way, some blocks in memory at a time.

    All facts are computed, except for `closed_wedge_fraction`. Unlike `open_store`, this does not check that rows
    ascend, have the right `split` and hold both directions of each edge, nor that ids and names are distinct.

    Raises
    ------
    InputError
        As `open_store`.
    """
    with opened_store(Path(path), None) as (header, stored), StoreReader(header, stored, core_count()) as reader:
        for name in stored:
            reader.read(name)
        stats = reader.stats()
        smallest, largest = reader.checks.id_range
        return {
            **named_labels(stats.to_dict(), header.label_names.get("vertices")),
            **id_facts("name_bytes" in stored, smallest, largest),
            "vertex_labels": "labels" in stored,
            "edge_labels": "edge_labels" in stored,
            "transactions": num_transactions(stored),
            "bytes": sum(array.layout.nbytes for array in stored.values()),
            "content_hash": header.content_hash,
            **note_facts(header.notes),
        }


@contextmanager
def opened_store(path: Path, host: MemoryBudget | None) -> Iterator[tuple[StoreHeader, dict[str, StoredArray]]]:
    """Open a store: what it says of itself, and its arrays by name; what goes wrong meanwhile is said of the store."""
    with input_errors(path):
        path.stat()
        if not is_store(path):
            raise InputError(f"{path}: this is not a graph store; make one with 'longwall ingest'")
        try:
            with read_header(path, host) as header:
                yield header, _stored_arrays(path, header)
        except BudgetExceeded as error:
            raise GraphTooLarge(path, error) from error
        except Damage as error:
            raise InputError(
                f"{path}: the graph store is damaged or incomplete ({error}); ingest the graph again"
            ) from error


def _stored_arrays(path: Path, header: StoreHeader) -> dict[str, StoredArray]:
    """The arrays of a store, as long as they must be."""
    lengths = dict.fromkeys(DTYPES, header.vertices)
    lengths |= {"indptr": header.vertices + 1, "indices": 2 * header.edges, "edge_labels": 2 * header.edges}
    there = [name for name in DTYPES if name not in _OPTIONAL or os.path.lexists(path / name)]
    if ("transactions" in there) != ("transaction_ids" in there):
        raise Damage("transactions, or their ids, are missing")
    if ("name_starts" in there) != ("name_bytes" in there):
        raise Damage("names, or where they begin, are missing")
    types: dict[str, npt.DTypeLike] = {**DTYPES, "original_ids": header.id_type}
    return {
        name: StoredArray(path, name, types[name], None if name in _ANY_LENGTH else lengths[name]) for name in there
    }


def num_transactions(stored: dict[str, StoredArray]) -> int:
    """Return the number of transactions in a store, 0 where its graph has none."""
    return stored["transaction_ids"].layout.length if "transaction_ids" in stored else 0


def _require_label_names(graph: Graph) -> None:
    """Refuse labels without a name, where labels have names."""
    for labels, names in ((graph.labels, graph.label_names), (graph.edge_labels, graph.edge_label_names)):
        if names is not None and (labels is None or int(labels.max(initial=-1)) >= len(names)):
            raise Damage("zarr.json: there is a label without a name")


def _require_text(graph: Graph) -> None:
    """Refuse names that are not UTF-8."""
    if graph.names is not None:
        import pyarrow as pa

        try:
            graph.names.validate(full=True)
        except pa.ArrowInvalid:
            raise Damage("name_bytes: a name is not UTF-8") from None


def reading_workers(stored: Iterable[StoredArray], free: int, more: int = 0, chunks: int = 1) -> tuple[int, int]:
    """Return how many threads read arrays, at least one, and the bytes that all of them take.

    Parameters
    ----------
    stored
        The arrays.
    free
        Bytes that reading may take.
    more
        Bytes that a thread takes for a byte that is read, besides reading and checking it.
    chunks
        See `StoreReader`.
    """
    block = max(array.block_bytes(chunks) for array in stored) * (_READ_FACTOR + more)
    workers = max(1, min(core_count(), free // block))
    return workers, block * workers


def _chunks(stored: Collection[StoredArray], free: int) -> int:
    """Return how many chunks a block of a long array has; `free` bytes are there for the graph, too."""
    workers, size = core_count(), sum(array.layout.nbytes for array in stored)
    each, most = size // (layout.CHUNK_BYTES * workers), 1
    while 2 * most <= min(_MOST_CHUNKS, workers // 2, each // _BLOCKS_EACH):
        most *= 2
    while most > 1 and free - size < 2 * workers * _READ_FACTOR * most * layout.CHUNK_BYTES:
        most //= 2
    return most


class StoreReader:
    """Reads the arrays of a store: threads read, decode, hash and check blocks; a context manager.

    Parameters
    ----------
    header, stored
        The store.
    workers
        Blocks that are read at a time.
    chunks
        Of full length, that a block of a long array has: a power of two.

    Attributes
    ----------
    header, stored
        See above.
    checks
        What is known of the arrays that were read.
    hashes
        Of the arrays that were read, by name.
    """

    def __init__(self, header: StoreHeader, stored: dict[str, StoredArray], workers: int, chunks: int = 1) -> None:
        self.header, self.stored, self._workers, self._chunks = header, stored, workers, chunks
        names = stored["name_bytes"].layout.length if "name_bytes" in stored else None
        labels = len(header.stats["label_counts"])
        self.checks = GraphChecks(header.vertices, header.edges, num_transactions(stored), labels, names)
        self.hashes: dict[str, ArrayHash] = {}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="read-store")

    def read(
        self, name: str, array: Array | None = None, check: Check | None = None, put: Put | None = None
    ) -> list[int]:
        """Read an array, check it, and hash it.

        Parameters
        ----------
        name
            Which; arrays are read in the order of `DTYPES`.
        array
            Takes it; if None, it is not kept.
        check
            Is called by threads with each block, too; of neighbours in place of `GraphChecks.examine`.
        put
            As `check`, but returns nothing.

        Returns
        -------
        list of int
            The results of `check`.

        Raises
        ------
        Damage
            If it is no array of a graph.
        """
        stored = self.stored[name]
        hashed = self.hashes[name] = ArrayHash(stored.layout.dtype, stored.layout.length)

        def read(bounds: tuple[int, int]) -> tuple[Facts, int]:
            start, stop = bounds
            block = np.empty(stop - start, stored.layout.dtype) if array is None else array[start:stop]
            stored.read(start, block, hashed if name in HASHED else None)
            if put is not None:  # first: then it is copied while it is checked
                put(start, block)
            if name == "indices" and check is not None:
                return Facts(), check(start, block)
            return self.checks.examine(name, start, block), check(start, block) if check else 0

        blocks = self.blocks(name)
        with stored:
            found = map_all(self._pool, self._workers, read, blocks)
        for (start, _), (facts, _) in zip(blocks, found, strict=True):
            self.checks.join(name, start, facts)
        return [result for _, result in found]

    def check_distinct(self, ids: Array, names: Texts | None, space: Array) -> None:
        """Refuse repeated ids, or repeated names with these numbers; `space`, of the same length, is overwritten."""
        (low, high), numbers = self.checks.id_range, ids.view(np.int64)
        check_distinct(numbers, high if low >= 0 else 2**63, space, self._pool, self._workers)
        if names is not None:
            check_names_distinct(names, numbers, space, self._pool, self._workers)

    def blocks(self, name: str) -> list[tuple[int, int]]:
        """The blocks of an array: the first item, and the one behind the last one."""
        stored, chunks = self.stored[name], self._chunks
        while chunks > 1 and stored.layout.nbytes < _BLOCKS_EACH * self._workers * stored.block_bytes(chunks):
            chunks //= 2
        return stored.blocks(chunks)

    def stats(self) -> GraphStats:
        """Return the statistics of all that was read.

        Raises
        ------
        Damage
            If the store says otherwise, or has another hash.
        """
        self.check_hash()
        return self.stats_without_rows()

    def check_hash(self) -> None:
        """Refuse arrays that have another hash than the store says (Damage)."""
        if content_hash(self.hashes, self.header.label_names) != self.header.content_hash:
            raise Damage("the arrays are not those that were written")

    def stats_without_rows(self) -> GraphStats:
        """Return the statistics, for which neighbours and labels of edges need not be read; errors as of `stats`."""
        stats = self.checks.stats(self.header.stats["closed_wedge_fraction"])
        if stats.to_dict() != self.header.stats:
            raise Damage("zarr.json: the statistics are not those of the graph")
        return stats

    def __enter__(self) -> "StoreReader":
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.shutdown(cancel_futures=True)


def _load(reader: StoreReader, adjacency: NewAdjacency, ahead: Ahead, files: "MappedArrays | None") -> Graph:
    """Read all arrays of a store, each block decoded where it will stay; parameters as of `open_store`.

    Raises
    ------
    Damage
        If they are no graph, or another one than the store says.
    """
    arrays: dict[str, Any] = dict.fromkeys(DTYPES)
    beside = sum(reader.stored[name].layout.nbytes for name in VERTEX_ARRAYS if name in reader.stored)
    for name, stored in reader.stored.items():
        shape = stored.layout.length, np.dtype(stored.layout.dtype)
        if files is not None:
            arrays[name] = files.array(*shape)
        else:
            arrays[name] = adjacency(*shape, beside) if name == "indices" else np.empty(*shape)
    with ahead(arrays) as puts:
        for name in reader.stored:
            if name == "split":
                # The array is not filled yet: telling ids apart takes no memory of its own.
                texts = Texts(arrays["name_bytes"], arrays["name_starts"]) if "name_bytes" in reader.stored else None
                reader.check_distinct(arrays["original_ids"], texts, arrays["split"])
            if name not in ("indices", "edge_labels"):
                reader.read(name, arrays[name], put=puts.get(name))
        _load_rows(reader, arrays, puts)
    labels = reader.header.label_names
    graph = Graph(
        **arrays,
        stats=reader.stats(),
        content_hash=reader.header.content_hash,
        label_names=labels.get("vertices"),
        edge_label_names=labels.get("edges"),
        notes=reader.header.notes,
        files=files,
    )
    _require_text(graph)
    _require_label_names(graph)
    return graph


def _load_rows(reader: StoreReader, arrays: dict[str, Any], puts: Puts) -> None:
    indices, put = arrays["indices"], puts.get("indices")
    rows = RowChecks(arrays["indptr"], arrays["split"], arrays["transactions"])
    if puts.check_rows is not None and arrays["transactions"] is None:
        reader.read("indices", indices, lambda start, block: 0, put)  # noqa: ARG005
        rows.check_whole(puts.check_rows)
    else:
        check_sum(reader.read("indices", indices, rows.check, put), "indices")
        rows.check_seams(np.array([start for start, _ in reader.blocks("indices")], np.int64), indices)
    if "edge_labels" in reader.stored:
        labels = arrays["edge_labels"]
        sums = reader.read("edge_labels", labels, lambda start, block: rows.check_labels(start, block, indices))
        check_sum(sums, "edge_labels")
