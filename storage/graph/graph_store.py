"""Open a graph store, a graph as a Zarr v3 group, and check it; `store_writer` makes one.

A store may be anybody's. What its metadata say chooses no code; nothing is decoded before it is known to be what
Longwall writes; and arrays are used only if they are those of a graph, see :mod:`longwall.storage.graph.graph_checks`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.errors import InputError
from longwall.storage.graph import sharded_array
from longwall.storage.graph.graph import Graph, NewArray
from longwall.storage.graph.graph_checks import GraphChecks, RowChecks, check_distinct, check_sum
from longwall.storage.graph.graph_sink import Array, ArrayHash, content_hash
from longwall.storage.graph.info import id_facts
from longwall.storage.graph.sharded_array import StoredArray, read_blocks
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import DTYPES, StoreHeader, is_store, read_header
from longwall.storage.ingest.text.input_file import input_errors
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.stored_files import Damage

_OPTIONAL = ("labels", "edge_labels", "transactions", "transaction_ids", "name_starts", "name_bytes")
_ANY_LENGTH = ("transaction_ids", "name_starts", "name_bytes")
_READ_FACTOR = 4  # memory of a read, over its size: encoded, decoded, and what checks make of it


def open_store(path: str | Path, host: MemoryBudget | None = None, adjacency: NewArray = np.empty) -> Graph:
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

    Raises
    ------
    InputError
        There is no graph store, it may not be read, it is damaged, a newer version of Longwall made it, or it is too
        large for `host`.
    """
    with _opened(Path(path), host) as (header, stored), ExitStack() as undo:
        workers, chunks = core_count(), sharded_array.CHUNKS_A_READ
        if host is not None:
            undo.enter_context(host.reserve(sum(array.nbytes for array in stored.values()), "the graph"))
            # With little room, fewer and then smaller reads at a time; one block more is in this thread's hands.
            chunk = max(array.chunk_bytes for array in stored.values()) * _READ_FACTOR
            workers = max(1, min(workers, host.free // (chunk * chunks) - 1))
            chunks = max(1, min(chunks, host.free // (chunk * (workers + 1))))
            buffers = host.reserve(chunk * chunks * (workers + 1), "reading the graph")
            undo.enter_context(buffers)
        graph = _Loader(header, stored, workers, chunks, adjacency).graph()
        undo.pop_all()
        if host is not None:
            buffers.release()
    return graph


def describe_store(path: str | Path) -> dict[str, Any]:
    """Say what a store holds, as `info.info` of a graph, and check it on the way, some blocks in memory at a time.

    All that is said is computed, but for `closed_wedge_fraction`. Less is checked than by `open_store`: not that rows
    ascend, are split where they should be, and hold both directions of each edge, nor that all ids are distinct.

    Raises
    ------
    InputError
        As `open_store`.
    """
    with _opened(Path(path), None) as (header, stored):
        checks, hashes = _checks(header, stored), {}
        for name, array in stored.items():
            hashes[name] = ArrayHash(array.layout.dtype, array.layout.length)
            for start, block in read_blocks(array, core_count()):
                checks.look(name, start, block)
                hashes[name].update(block)
        stats = _compared(header, checks, hashes)
        smallest, largest = checks.id_range
        return {
            **stats.to_dict(),
            **id_facts("name_bytes" in stored, smallest, largest),
            "vertex_labels": "labels" in stored,
            "edge_labels": "edge_labels" in stored,
            "transactions": _transactions(stored),
            "bytes": sum(array.nbytes for array in stored.values()),
            "content_hash": header.content_hash,
        }


@contextmanager
def _opened(path: Path, host: MemoryBudget | None) -> Iterator[tuple[StoreHeader, dict[str, StoredArray]]]:
    """Open a store: what it says of itself, and its arrays by name; what goes wrong meanwhile is said of the store."""
    with input_errors(path):
        path.stat()
        if not is_store(path):
            raise InputError(f"{path}: this is not a graph store; make one with 'longwall ingest'")
        try:
            with read_header(path, host) as header:
                yield header, _stored_arrays(path, header)
        except BudgetExceeded as error:
            raise InputError(f"{path}: {error}") from error
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
    return {
        name: StoredArray(path, name, DTYPES[name], None if name in _ANY_LENGTH else lengths[name]) for name in there
    }


def _transactions(stored: dict[str, StoredArray]) -> int:
    return stored["transaction_ids"].layout.length if "transaction_ids" in stored else 0


def _checks(header: StoreHeader, stored: dict[str, StoredArray]) -> GraphChecks:
    names = stored["name_bytes"].layout.length if "name_bytes" in stored else None
    return GraphChecks(header.vertices, header.edges, _transactions(stored), len(header.stats["label_counts"]), names)


def _compared(header: StoreHeader, checks: GraphChecks, hashes: dict[str, ArrayHash]) -> GraphStats:
    """Return the statistics of what was read.

    Raises
    ------
    Damage
        If the store says otherwise.
    """
    if content_hash(hashes, header.label_names) != header.content_hash:
        raise Damage("the arrays are not those that were written")
    stats = checks.stats(header.stats["closed_wedge_fraction"])
    if stats.to_dict() != header.stats:
        raise Damage("zarr.json: the statistics are not those of the graph")
    return stats


def _require_label_names(graph: Graph) -> None:
    """Refuse labels without a name, where labels have names."""
    for labels, names in ((graph.labels, graph.label_names), (graph.edge_labels, graph.edge_label_names)):
        if names is not None and (labels is None or int(labels.max()) >= len(names)):
            raise Damage("zarr.json: there is a label without a name")


def _require_text(graph: Graph) -> None:
    """Refuse names that are not UTF-8."""
    if graph.names is not None:
        import pyarrow as pa

        try:
            graph.names.validate(full=True)
        except pa.ArrowInvalid:
            raise Damage("name_bytes: a name is not UTF-8") from None


class _Loader:
    """Reads all arrays of a store, each block decoded where it will stay, and checks them.

    Parameters
    ----------
    header, stored
        The store.
    workers, chunks
        Blocks that are read at a time, and chunks of a block.
    adjacency
        Makes the array of the neighbours.
    """

    def __init__(
        self, header: StoreHeader, stored: dict[str, StoredArray], workers: int, chunks: int, adjacency: NewArray
    ) -> None:
        self._header, self._stored, self._workers, self._chunks = header, stored, workers, chunks
        self._checks = _checks(header, stored)
        self._hashes: dict[str, ArrayHash] = {}
        self._arrays: dict[str, Any] = dict.fromkeys(DTYPES)
        for name, array in stored.items():
            new = adjacency if name == "indices" else np.empty
            self._arrays[name] = new(array.layout.length, array.layout.dtype)

    def graph(self) -> Graph:
        """Read the graph.

        Raises
        ------
        Damage
            If it is none, or another one than the store says.
        """
        arrays = self._arrays
        for name in self._stored:
            if name == "split":
                # The array is not filled yet: what must be sorted takes no memory of its own.
                arrays["split"][:] = arrays["original_ids"]
                check_distinct(arrays["split"])
            if name not in ("indices", "edge_labels"):
                self._load(name)
        self._load_rows()
        stats = _compared(self._header, self._checks, self._hashes)
        texts = self._header.label_names
        graph = Graph(
            **arrays,
            stats=stats,
            content_hash=self._header.content_hash,
            label_names=texts.get("vertices"),
            edge_label_names=texts.get("edges"),
        )
        _require_text(graph)
        _require_label_names(graph)
        return graph

    def _load_rows(self) -> None:
        arrays = self._arrays
        rows = RowChecks(arrays["indptr"], arrays["split"], arrays["transactions"])
        check_sum(self._load("indices", rows.check), "indices")
        starts = [start for start, _ in self._stored["indices"].blocks(self._chunks)]
        rows.check_seams(np.array(starts), arrays["indices"])
        if "edge_labels" in self._stored:
            indices = arrays["indices"]
            sums = self._load("edge_labels", lambda start, block: rows.check_labels(start, block, indices))
            check_sum(sums, "edge_labels")

    def _load(self, name: str, check: Callable[[int, Array], int] | None = None) -> list[int]:
        """Read an array and hash it on the way; `check` is called by threads; return its results."""
        stored, array = self._stored[name], self._arrays[name]
        self._hashes[name] = ArrayHash(array.dtype, len(array))

        def read(bounds: tuple[int, int]) -> tuple[int, Array, int]:
            block = array[slice(*bounds)]
            stored.read(bounds[0], block)
            return bounds[0], block, check(bounds[0], block) if check else 0

        results = []
        for start, block, result in map_ordered(read, stored.blocks(self._chunks), self._workers):
            if check is None:
                self._checks.look(name, start, block)
            self._hashes[name].update(block)
            results.append(result)
        return results
