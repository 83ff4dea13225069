"""The graph store: a graph as a Zarr v3 group, written whole or not at all, checked when opened.

A store may be anybody's. What its metadata say chooses no code; nothing is decoded before it is known to be what
Longwall writes; and arrays are used only if they are those of a graph, see :mod:`longwall.storage.graph.graph_checks`.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from stat import S_ISDIR
from threading import Thread
from typing import Any

import numpy as np

from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph import sharded_array
from longwall.storage.graph.graph import ArrayHash, Graph, NewArray, content_hash
from longwall.storage.graph.graph_checks import GraphChecks, RowChecks, check_distinct, check_sum
from longwall.storage.graph.graph_sink import Array, Sink
from longwall.storage.graph.sharded_array import StoredArray
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import FORMAT, VERSION, StoreHeader, is_store, read_header, write_header
from longwall.storage.ingest.text.input_file import input_errors
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget, Reservation
from longwall.storage.memory.spill_folder import hold, sync_folder
from longwall.storage.signals import undisturbed
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.stored_files import Damage

__all__ = ["FORMAT", "VERSION", "StoreSink", "create_store", "describe_store", "is_store", "open_store", "write_graph"]

# In the order in which they are read: each is checked against those before.
_DTYPES = {
    "indptr": np.int64,
    "original_ids": np.int64,
    "split": np.int64,
    "labels": np.int32,
    "transaction_ids": np.int64,
    "transactions": np.int32,
    "indices": np.uint32,
    "edge_labels": np.int32,
}
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_OPTIONAL = ("labels", "edge_labels", "transactions", "transaction_ids")
_CHUNKS_A_READ = 8
_READ_FACTOR = 4  # memory of a read, over its size: encoded, decoded, and what checks make of it


class StoreSink(Sink):
    """Writes the arrays of a graph to a Zarr group; a context manager.

    Parameters
    ----------
    folder
        Where the group is made; it must be empty.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        # Zarr is needed last: it is imported while the edges are read and sorted, which takes 0.4 s.
        self._importing = Thread(target=import_module, args=("zarr",))
        self._importing.start()
        self._arrays: dict[str, sharded_array.ShardedArray] = {}
        self._reservations: dict[str, Reservation] = {}
        self._left: dict[str, int] = {}
        self._open = ExitStack()

    def _begin(self, name: str, dtype: np.dtype[Any], length: int, scratch: Scratch | None) -> None:
        if scratch is not None:
            # The chunk that is being filled, and its encoded form.
            self._reservations[name] = scratch.reserve(2 * sharded_array.CHUNK_BYTES, f"writing the array {name}")
        array = sharded_array.ShardedArray(self._folder, name, dtype, length)
        self._arrays[name] = self._open.enter_context(array)
        self._left[name] = length

    def _append(self, name: str, values: Array) -> None:
        self._arrays[name].append(values)
        self._left[name] -= len(values)
        if self._left[name] == 0:
            self._arrays.pop(name).finish()
            if name in self._reservations:
                self._reservations.pop(name).release()

    def read_back(self, name: str) -> Iterator[Array]:
        """Yield an array from the store.

        Raises
        ------
        RunError
            It is not what was written.
        """
        written = self.hashes[name]
        try:
            stored = StoredArray(self._folder, name, written.dtype, written.length)
            read = ArrayHash(written.dtype, written.length)
            for _, block in _blocks(stored, workers=1):
                read.update(block)
                yield block
            if read.line(name) != written.line(name):
                raise Damage(name)
        except Damage as error:
            what = f"the array {name} reads differently than it was written"
            raise RunError(f"{self._folder}: {what}; check the disk") from error

    def describe(self, stats: GraphStats) -> None:
        """Complete the store; last, so that a group that lacks something is never taken for a store.

        Raises
        ------
        RunError
            If Zarr does not find there what was written.
        """
        write_header(self._folder, stats, self.content_hash)
        self._importing.join()
        import zarr

        group = zarr.open_group(self._folder, mode="r", zarr_format=3)
        found = {name: (array.shape, array.dtype) for name, array in group.arrays()}
        if found != {name: ((written.length,), written.dtype) for name, written in self.hashes.items()}:
            raise RunError(
                f"{self._folder}: Zarr {zarr.__version__} finds other arrays than were written; check the disk"
            )

    def __enter__(self) -> "StoreSink":
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()
        self._importing.join()


def create_store(path: str | Path, fill: Callable[[StoreSink], GraphStats]) -> GraphStats:
    """Make a graph store; it appears under `path` complete or not at all.

    Parameters
    ----------
    path
        Where.
    fill
        Appends all arrays to the sink, and returns the statistics.

    Raises
    ------
    InputError
        The path exists, or another process is making it, or its parent folder does not exist or cannot be written, or
        takes no folders.
    RunError
        Writing failed, for example on a full disk.
    """
    path = Path(path)
    try:
        _require_free(path)
        if not path.parent.is_dir():
            raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")
        with _partial(path) as partial:
            with StoreSink(partial) as sink:
                stats = fill(sink)
                sink.describe(stats)
            for written in (partial, *partial.rglob("*")):
                sync_folder(written)
            _give_name(partial, path)
    except OSError as error:
        if error.errno in _NOT_ALLOWED:
            raise InputError(f"{path}: no permission to write to {path.parent}; choose another path") from error
        raise RunError(f"{path}: the store could not be written ({error.strerror or error})") from error
    return stats


@undisturbed()
def _give_name(partial: Path, path: Path) -> None:
    """Let the store appear under its name, for good: where that is not certain it does not appear."""
    partial.rename(path)
    try:
        with suppress(PermissionError):  # a folder may be one to write in and not to read
            sync_folder(path.parent)
    except OSError:
        path.rename(partial)
        raise


@contextmanager
def _partial(path: Path) -> Iterator[Path]:
    """Yield an empty folder to make a store in, and remove it afterwards, with what a killed process left there.

    A lock on the folder says that it is in use. Where there are no locks, nothing is taken for abandoned.

    Raises
    ------
    InputError
        Another process makes this store, or there can be none.
    """
    partial = path.with_name(f".{path.name}.tmp")
    with ExitStack() as undo:
        with undisturbed():
            held = False
            while not held:
                made = _make_partial(path, partial)
                try:
                    lock = hold(partial)
                except FileNotFoundError:
                    continue  # the other process has finished
                except BlockingIOError:
                    raise InputError(
                        f"{path}: another process is making this store: wait for it, or choose another path"
                    ) from None
                except OSError as error:
                    if made:
                        break
                    raise _in_the_way(path, partial) from error
                undo.callback(os.close, lock)
                held = os.path.samestat(os.fstat(lock), partial.lstat()) if partial.exists() else False
            undo.callback(_remove, partial)
        for left in partial.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        _require_free(path)
        yield partial


@undisturbed()
def _remove(partial: Path) -> None:
    shutil.rmtree(partial, ignore_errors=True)


def _make_partial(path: Path, partial: Path) -> bool:
    """Make the folder of `_partial`; returns False if it is there, left by a killed process or in use."""
    try:
        partial.mkdir()
        return True
    except FileExistsError:
        with suppress(FileNotFoundError):
            facts = partial.lstat()
            if not S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
                raise _in_the_way(path, partial) from None
        return False
    except OSError as error:
        if error.errno in (*_NOT_ALLOWED, *_NO_ROOM):
            raise
        what = f"a store cannot be made there ({error.strerror or error})"
        raise InputError(f"{path}: {what}; choose another path") from error


def _in_the_way(path: Path, partial: Path) -> InputError:
    return InputError(f"{path}: {partial} is in the way: if no process is making this store, remove it")


def _require_free(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: exists already; choose another path, or remove it first")


def write_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph that is in memory as a store; see `create_store`."""

    def fill(sink: StoreSink) -> GraphStats:
        for name in _DTYPES:
            array = getattr(graph, name)
            if array is not None:
                sink.begin(name, array.dtype, len(array), None)
                sink.append(name, array)
        return graph.stats

    create_store(path, fill)


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
        workers, chunks = core_count(), _CHUNKS_A_READ
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
            for start, block in _blocks(array, core_count()):
                checks.look(name, start, block)
                hashes[name].update(block)
        stats = _compared(header, checks, hashes)
        smallest, largest = checks.id_range
        return {
            **stats.to_dict(),
            "smallest_id": smallest,
            "largest_id": largest,
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
    lengths = dict.fromkeys(_DTYPES, header.vertices)
    lengths |= {"indptr": header.vertices + 1, "indices": 2 * header.edges, "edge_labels": 2 * header.edges}
    there = [name for name in _DTYPES if name not in _OPTIONAL or os.path.lexists(path / name)]
    if ("transactions" in there) != ("transaction_ids" in there):
        raise Damage("transactions, or their ids, are missing")
    return {
        name: StoredArray(path, name, _DTYPES[name], None if name == "transaction_ids" else lengths[name])
        for name in there
    }


def _blocks(stored: StoredArray, workers: int) -> Iterator[tuple[int, Array]]:
    """Yield an array in blocks of whole chunks, with the first item's number, read ahead by threads."""

    def read(bounds: tuple[int, int]) -> tuple[int, Array]:
        block = np.empty(bounds[1] - bounds[0], stored.layout.dtype)
        stored.read(bounds[0], block)
        return bounds[0], block

    return map_ordered(read, stored.blocks(_CHUNKS_A_READ), workers)


def _transactions(stored: dict[str, StoredArray]) -> int:
    return stored["transaction_ids"].layout.length if "transaction_ids" in stored else 0


def _checks(header: StoreHeader, stored: dict[str, StoredArray]) -> GraphChecks:
    return GraphChecks(header.vertices, header.edges, _transactions(stored), len(header.stats["label_counts"]))


def _compared(header: StoreHeader, checks: GraphChecks, hashes: dict[str, ArrayHash]) -> GraphStats:
    """Return the statistics of what was read.

    Raises
    ------
    Damage
        If the store says otherwise.
    """
    if content_hash(hashes) != header.content_hash:
        raise Damage("the arrays are not those that were written")
    stats = checks.stats(header.stats["closed_wedge_fraction"])
    if stats.to_dict() != header.stats:
        raise Damage("zarr.json: the statistics are not those of the graph")
    return stats


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
        self._arrays: dict[str, Any] = dict.fromkeys(_DTYPES)
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
        return Graph(**arrays, stats=stats, content_hash=self._header.content_hash)

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
