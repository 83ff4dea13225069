"""Make a graph store: it appears whole or not at all; :mod:`longwall.storage.graph.graph_store` opens it."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from stat import S_ISDIR
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.array_reader import StoredArray
from longwall.storage.arrays.array_writer import ArrayWriter, WritingThreads
from longwall.storage.arrays.layout import Layout
from longwall.storage.durability import sync_folder
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.graph_sink import Array, Sink
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import DTYPES, write_header
from longwall.storage.memory.reservations import Reservation
from longwall.storage.memory.spill_folder import hold, release
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.stored_files import Damage
from longwall.storage.system.concurrency import map_ordered
from longwall.storage.system.signals import undisturbed

if TYPE_CHECKING:
    from longwall.storage.graph.graph_data import GraphData

_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_SHARE = 16  # of what is free of the host's budget, that writing an array may take
_CHUNK_SHARE = 32  # of the host's budget, that a chunk may take
_READ_BACK = 2  # memory of a block that is read back, over its size: encoded, decoded
_PIECES_A_THREAD = 2  # one that it encodes, one that waits for it
_CHUNKS_TOGETHER = 4  # of a piece, at most: many threads wait for turns to run Python


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
        # Zarr is needed last: it is imported while the edges are read and sorted, which takes 0.4 s. What both threads
        # use is imported first: modules that import each other fail where two threads begin with different ones.
        import_module("numcodecs.blosc")
        self._importing = Thread(target=import_module, args=("zarr",))
        self._importing.start()
        self._arrays: dict[str, ArrayWriter] = {}
        self._reservations: dict[str, Reservation] = {}
        self._left: dict[str, int] = {}
        self._open = ExitStack()
        self._threads = self._open.enter_context(WritingThreads())

    def _begin(self, name: str, dtype: np.dtype[Any], length: int, scratch: Scratch | None) -> None:
        layout, width, together = Layout.of(dtype, length), self._threads.width, _CHUNKS_TOGETHER
        waiting = _PIECES_A_THREAD * width
        if scratch is not None:
            # Where memory is short, fewer and shorter pieces are encoded at a time; each is there twice, once encoded.
            layout = Layout.of(dtype, length, scratch.host.limit // _CHUNK_SHARE)
            chunks = scratch.host.free // _SHARE // (2 * layout.chunk_bytes)
            while together > 1 and chunks < together * (width + 1):
                together //= 2
            waiting = max(1, min(waiting, chunks // together - 1))
            size = 2 * layout.chunk_bytes * min(together * (waiting + 1), layout.chunks)
            self._reservations[name] = scratch.reserve(size, f"writing the array {name}")
        array = ArrayWriter(self._folder, name, layout, self._threads, waiting, self.hashes[name], together)
        self._arrays[name] = self._open.enter_context(array)
        self._left[name] = length

    def append(self, name: str, values: Array, *, kept: bool = False) -> None:
        """Add items at the end of an array; if they are `kept` as they are, they are not copied."""
        self._arrays[name].append(values, kept=kept)
        self._left[name] -= len(values)
        if self._left[name] == 0:
            self._arrays.pop(name).finish()
            if name in self._reservations:
                self._reservations.pop(name).release()

    def read_back(self, name: str, memory: int) -> Iterator[Array]:
        """Yield an array from the store, read ahead by threads.

        Raises
        ------
        RunError
            It is not what was written.
        """
        written = self.hashes[name]
        try:
            stored = StoredArray(self._folder, name, written.dtype, written.length)
            read = ArrayHash(written.dtype, written.length)

            def block(bounds: tuple[int, int]) -> Array:
                items = np.empty(bounds[1] - bounds[0], written.dtype)
                stored.read(bounds[0], items, read)
                return items

            blocks = stored.blocks()
            each = _READ_BACK * stored.block_bytes()
            yield from map_ordered(block, blocks, max(1, min(self._threads.width, memory // max(each, 1) - 1)))
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
        self._threads.settle()
        id_type = self.hashes["original_ids"].dtype
        write_header(self._folder, stats, self.content_hash, self.label_names, id_type, self.notes)
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
                undo.callback(release, lock)
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


def write_graph(graph: "GraphData", path: str | Path) -> None:
    """Write a graph that is in memory as a store; see `create_store`."""

    def fill(sink: StoreSink) -> GraphStats:
        for name in DTYPES:
            array = getattr(graph, name)
            if array is not None:
                sink.begin(name, array.dtype, len(array), None)
                sink.append(name, array, kept=True)
        sink.label_names = {"vertices": graph.label_names, "edges": graph.edge_label_names}
        sink.notes = graph.notes
        return graph.stats

    create_store(path, fill)
