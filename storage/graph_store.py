"""The graph store: a graph as a Zarr v3 group, written whole or not at all, checked when opened."""

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from longwall.storage import shards
from longwall.storage.account import Account, Booking, OverBudget
from longwall.storage.building.scratch import Scratch
from longwall.storage.building.sink import Array, Sink
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph import ArrayHash, Graph, NewArray, content_hash
from longwall.storage.parallel import core_count, map_ordered
from longwall.storage.readers.source import input_errors
from longwall.storage.spill import hold, remove_abandoned, sync_folder
from longwall.storage.stats import GraphStats

FORMAT = "longwall-graph"
VERSION = 2

_DTYPES = {
    "indptr": np.int64,
    "indices": np.uint32,
    "split": np.int64,
    "original_ids": np.int64,
    "labels": np.int32,
    "edge_labels": np.int32,
    "transactions": np.int32,
    "transaction_ids": np.int64,
}
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_OPTIONAL = ("labels", "edge_labels", "transactions", "transaction_ids")
_CHUNKS_A_READ = 8
_READ_FACTOR = 4  # memory of a read, over its size: encoded, decoded, put together, and one more to be safe
_ROWS_A_CHECK = 2**18

Answer = TypeVar("Answer")


def is_store(path: str | Path) -> bool:
    """Say whether a path looks like a graph store, readable by this version or not."""
    try:
        metadata = json.loads((Path(path) / "zarr.json").read_bytes())
        return bool(metadata["attributes"]["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


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
        # Zarr is first needed when the edges are read and sorted: it is imported meanwhile, which takes 0.4 s.
        self._importing = Thread(target=import_module, args=("zarr",))
        self._importing.start()
        self._arrays: dict[str, shards.ShardedArray] = {}
        self._bookings: dict[str, Booking] = {}
        self._left: dict[str, int] = {}
        self._open = ExitStack()

    @cached_property
    def _group(self) -> Any:
        self._importing.join()
        import zarr

        return zarr.create_group(self._folder, zarr_format=3)

    def _begin(self, name: str, dtype: np.dtype[Any], length: int, scratch: Scratch | None) -> None:
        if scratch is not None:
            # The chunk that is being filled, and its encoded form.
            self._bookings[name] = scratch.book(2 * shards.CHUNK_BYTES, f"writing the array {name}")
        array = shards.ShardedArray(self._group, self._folder, name, dtype, length)
        self._arrays[name] = self._open.enter_context(array)
        self._left[name] = length

    def _append(self, name: str, values: Array) -> None:
        self._arrays[name].append(values)
        self._left[name] -= len(values)
        if self._left[name] == 0:
            self._arrays.pop(name).finish()
            if name in self._bookings:
                self._bookings.pop(name).release()

    def read_back(self, name: str) -> Iterator[Array]:
        """Yield an array from the store.

        Raises
        ------
        RunError
            It is not what was written.
        """
        stored = self._group[name]
        read = ArrayHash(stored.dtype, stored.shape[0])
        for block in _blocks(stored, workers=1):
            read.update(block)
            yield block
        if read.line(name) != self.hashes[name].line(name):
            raise RunError(f"{self._folder}: the array {name} reads differently than it was written; check the disk")

    def describe(self, stats: GraphStats) -> None:
        """Complete the store; last, so that a group that lacks something is never taken for a store."""
        attributes = {
            "format": FORMAT,
            "version": VERSION,
            "counts": {"vertices": stats.num_vertices, "edges": stats.num_edges},
            "stats": stats.to_dict(),
            "content_hash": self.content_hash,
            "created_by": f"longwall {version('longwall')}",
        }
        self._group.update_attributes({**attributes, "checksum": _checksum(attributes)})

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
        Gives all arrays to the sink, and returns the statistics.

    Raises
    ------
    InputError
        The path exists, or its parent folder does not or cannot be written, or takes no folders.
    RunError
        Writing failed, for example on a full disk.
    """
    path = Path(path)
    try:
        if path.exists() or path.is_symlink():
            raise InputError(f"{path}: exists already; choose another path, or remove it first")
        if not path.parent.is_dir():
            raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")
        with _partial(path) as partial:
            with StoreSink(partial) as sink:
                stats = fill(sink)
                sink.describe(stats)
            for written in (partial, *partial.rglob("*")):
                sync_folder(written)
            partial.rename(path)
    except OSError as error:
        if error.errno in _NOT_ALLOWED:
            raise InputError(f"{path}: no permission to write to {path.parent}; choose another path") from error
        raise RunError(f"{path}: the store could not be written ({error.strerror or error})") from error
    return stats


@contextmanager
def _partial(path: Path) -> Iterator[Path]:
    """Give a folder to make a store in, which is gone afterwards; what killed processes left of `path` goes, too.

    A lock on the folder says that it is in use. Where there are no locks, nothing is taken for abandoned.
    """
    prefix = f".{path.name}.tmp-"
    with ExitStack() as undo:
        locked = False
        while not locked:
            partial = path.with_name(f"{prefix}{uuid.uuid4().hex[:8]}")
            try:
                partial.mkdir()
            except OSError as error:
                if error.errno in (*_NOT_ALLOWED, *_NO_ROOM):
                    raise
                what = f"a store cannot be made there ({error.strerror or error})"
                raise InputError(f"{path}: {what}; choose another path") from error
            try:
                undo.callback(os.close, hold(partial, wait=True))
            except FileNotFoundError:
                continue
            except OSError:
                break
            # Another process may have taken it for abandoned before it was locked.
            locked = partial.exists()
        undo.callback(shutil.rmtree, partial, ignore_errors=True)
        remove_abandoned(path.parent, re.compile(re.escape(prefix) + "[0-9a-f]{8}"))
        yield partial


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


def _checksum(attributes: dict[str, Any]) -> int:
    """Return the CRC-32C of a store's attributes, whatever their order."""
    from google_crc32c import value

    content = {name: item for name, item in attributes.items() if name != "checksum"}
    checksum: int = value(json.dumps(content, sort_keys=True).encode())
    return checksum


def _blocks(stored: Any, workers: int, chunks: int = _CHUNKS_A_READ) -> Iterator[Array]:
    """Yield a Zarr array in blocks of whole chunks, read ahead by threads."""
    size = stored.chunks[0] * chunks
    starts = range(0, stored.shape[0], size)
    blocks: Iterator[Array] = map_ordered(lambda start: stored[start : start + size], starts, workers)
    return blocks


def open_store(path: str | Path, host: Account | None = None, adjacency: NewArray = np.empty) -> Graph:
    """Read a graph store into memory and check it against its own counts and hash.

    Parameters
    ----------
    path
        The store.
    host
        Pays for the graph, whose `nbytes` stay booked, and for reading it.
    adjacency
        Makes the array of the neighbours.

    Raises
    ------
    InputError
        There is no graph store, it may not be read, it is damaged, a newer version of Longwall made it, or it is too
        large for `host`.
    """
    return _with_store(Path(path), lambda attributes, stored: _read(Path(path), attributes, stored, host, adjacency))


def describe_store(path: str | Path) -> dict[str, Any]:
    """Say what a store holds, as `info.info` of a graph, and check it on the way, some blocks in memory at a time.

    Raises
    ------
    InputError
        As `open_store`. Of `split`, which the hash does not cover, only the rows' bounds are checked.
    """

    def describe(attributes: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
        ends: list[tuple[int, int]] = []
        hashes = {name: ArrayHash(array.dtype, array.size) for name, array in stored.items()}
        for name, array in stored.items():
            start = 0
            for block in _blocks(array, core_count()):
                hashes[name].update(block)
                if name == "original_ids":
                    ends.append((int(block.min()), int(block.max())))
                if name == "split":
                    bounds = stored["indptr"][start : start + len(block) + 1]
                    if ((block < bounds[:-1]) | (block > bounds[1:])).any():
                        raise _damaged(Path(path))
                start += len(block)
        if content_hash(hashes) != attributes["content_hash"]:
            raise _damaged(Path(path))
        return {
            **GraphStats.from_dict(attributes["stats"]).to_dict(),
            "smallest_id": min(low for low, _ in ends),
            "largest_id": max(high for _, high in ends),
            "vertex_labels": "labels" in stored,
            "edge_labels": "edge_labels" in stored,
            "transactions": stored["transaction_ids"].size if "transaction_ids" in stored else 0,
            "bytes": sum(array.nbytes for array in stored.values()),
            "content_hash": attributes["content_hash"],
        }

    return _with_store(Path(path), describe)


def _with_store(path: Path, use: Callable[[dict[str, Any], dict[str, Any]], Answer]) -> Answer:
    """Open a store, check what its metadata says, and call `use` with the attributes and the arrays by name."""
    with input_errors(path):
        path.stat()
        if not is_store(path):
            raise InputError(f"{path}: this is not a graph store; make one with 'longwall ingest'")
        try:
            import zarr

            group = zarr.open_group(path, mode="r", zarr_format=3)
            attributes: dict[str, Any] = group.attrs.asdict()
            found = attributes["version"]
            if isinstance(found, int) and found > VERSION:
                raise InputError(
                    f"{path}: made by a newer version of Longwall (store version {found}, this one reads {VERSION}); "
                    "upgrade Longwall"
                )
            if isinstance(found, int) and 0 < found < VERSION:
                raise InputError(
                    f"{path}: made by an older version of Longwall (store version {found}, this one reads {VERSION}); "
                    "ingest the graph again"
                )
            if found != VERSION or attributes["checksum"] != _checksum(attributes):
                raise _damaged(path)
            stored = {name: array for name, array in group.arrays() if name in _DTYPES}
            _check_shapes(path, attributes["counts"], stored)
            return use(attributes, stored)
        except PermissionError:
            raise
        except OverBudget as error:
            raise InputError(f"{path}: {error}") from error
        except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
            raise _damaged(path) from error


def _read(
    path: Path, attributes: dict[str, Any], stored: dict[str, Any], host: Account | None, adjacency: NewArray
) -> Graph:
    workers, chunks = core_count(), _CHUNKS_A_READ
    with ExitStack() as undo:
        if host is not None:
            undo.enter_context(host.book(sum(array.nbytes for array in stored.values()), "the graph"))
            # With little room, fewer and then smaller reads at a time; one block more is in this thread's hands.
            chunk = max(array.chunks[0] * array.dtype.itemsize for array in stored.values()) * _READ_FACTOR
            workers = max(1, min(workers, host.free // (chunk * chunks) - 1))
            chunks = max(1, min(chunks, host.free // (chunk * (workers + 1))))
            buffers = host.book(chunk * chunks * (workers + 1), "reading the graph")
            undo.enter_context(buffers)
        arrays: dict[str, Any] = dict.fromkeys(_DTYPES)
        hashes = {}
        for name, array in stored.items():
            empty = adjacency if name == "indices" else np.empty
            arrays[name], hashes[name] = _load(array, workers, chunks, empty)
        if content_hash(hashes) != attributes["content_hash"] or not _split_is_right(**arrays):
            raise _damaged(path)
        stats = GraphStats.from_dict(attributes["stats"])
        graph = Graph(**arrays, stats=stats, content_hash=attributes["content_hash"])
        undo.pop_all()
        if host is not None:
            buffers.release()
    return graph


def _check_shapes(path: Path, counts: dict[str, int], stored: dict[str, Any]) -> None:
    """Refuse arrays whose types or lengths are not those of a graph with these counts."""
    vertices, slots = counts["vertices"], 2 * counts["edges"]
    if ("transactions" in stored) != ("transaction_ids" in stored):
        raise _damaged(path)
    transactions = stored["transaction_ids"].size if "transaction_ids" in stored else 0
    expected = (vertices + 1, slots, vertices, vertices, vertices, slots, vertices, transactions)
    for name, length in zip(_DTYPES, expected, strict=True):
        if name not in stored and name in _OPTIONAL:
            continue
        if stored[name].shape != (length,) or stored[name].dtype != _DTYPES[name]:
            raise _damaged(path)


def _load(stored: Any, workers: int, chunks: int, empty: NewArray) -> tuple[Array, ArrayHash]:
    """Read an array and hash it on the way."""
    array = empty(stored.size, stored.dtype)
    digest = ArrayHash(array.dtype, len(array))
    start = 0
    for block in _blocks(stored, workers, chunks):
        array[start : start + len(block)] = block
        digest.update(block)
        start += len(block)
    return array, digest


def _split_is_right(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.uint32], split: npt.NDArray[np.int64], **_: Any
) -> bool:
    """Check that each row's split stands between its last smaller and its first larger neighbour."""
    for low in range(0, len(split), _ROWS_A_CHECK):
        high = min(low + _ROWS_A_CHECK, len(split))
        start, end, at = indptr[low:high], indptr[low + 1 : high + 1], split[low:high]
        if ((at < start) | (at > end)).any():
            return False
        vertices = np.arange(low, high)
        before = (at == start) | (indices[np.maximum(at - 1, 0)] < vertices)
        after = (at == end) | (indices[np.minimum(at, len(indices) - 1)] > vertices)
        if not (before & after).all():
            return False
    return True


def _damaged(path: Path) -> InputError:
    return InputError(f"{path}: the graph store is damaged or incomplete; ingest the graph again")
