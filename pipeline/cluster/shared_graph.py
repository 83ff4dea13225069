"""A graph in memory that the processes of one machine share: one of them reads it, the others map it.

The memory is that of anonymous files, which others of the same user open by the process that made them. It is freed
when the last process that has it ends, however it ends.

Where the coordinator is on another machine, the first worker process of a machine reads the graph: that one binds a
socket whose name is in no folder, and hands the files to others that connect. The kernel frees the name with the
process, whatever ends it, and one of those that wait for an answer binds it anew.
"""

from __future__ import annotations

import json
import mmap
import os
import pickle  # not Dask's: another thread may be importing that
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.mapping.mapped_arrays import MappedFile, place_in
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.system.concurrency import core_count, map_all

_UNIT = 64  # bytes, at multiples of which arrays begin
_PIECE = 1 << 23  # bytes that one thread copies at a time
_NAME = "longwall-graph"
_WAIT_SECONDS = 0.2
_MOST_BYTES, _MOST_FILES = 1 << 16, 250  # of an answer


class SharedGraph(NamedTuple):
    """Where a graph is; plain values, for another process of the machine."""

    path: str
    """The file that begins with the pickled graph, less its arrays."""
    pickled: int
    """Bytes of the pickle."""
    arrays: list[tuple[str, int, int]]
    """Path, offset and size of each array, in the order of the pickle."""
    resident: int = 0
    """Bytes of the graph that are in memory, not in mapped files."""


class GraphSharer:
    """Makes arrays that others can map, and says where a graph is; keeps its memory until it is dropped."""

    def __init__(self) -> None:
        self._made: list[MappedFile] = []
        self._mapped: dict[str, int] = {}

    def array(self, length: int, dtype: np.dtype[Any], _beside: int | None = None, /) -> NDArray[Any]:
        """Make an empty array in shared memory; see :class:`longwall.storage.graph.graph_data.NewAdjacency`."""
        return np.asarray(self._new(length * dtype.itemsize)).view(dtype)

    def share(self, graph: Graph, host: MemoryBudget) -> SharedGraph:
        """Say where a graph is; what is not in shared memory yet is copied there.

        Parameters
        ----------
        graph
            Stays as it is, in files perhaps.
        host
            Has the graph, and pays for copies.

        Raises
        ------
        BudgetExceeded
            If there is no room for them.
        """
        buffers: list[Any] = []
        pickled = pickle.dumps(replace(graph, files=None), protocol=5, buffer_callback=buffers.append)
        arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        files = [] if graph.files is None else graph.files.files
        places: list[tuple[str, int, int] | None] = [place_in([*self._made, *files], array) for array in arrays]
        missing = [i for i, place in enumerate(places) if place is None]
        sizes = [len(pickled), *(arrays[i].nbytes for i in missing)]
        ends = np.cumsum([-(-size // _UNIT) * _UNIT for size in sizes]).tolist()
        host.charge(ends[-1], "what the workers share of the graph")
        self._mapped = {file.path: file.descriptor for file in files}
        memory = self._new(ends[-1])
        content: NDArray[np.uint8] = np.asarray(memory)
        copied = [np.frombuffer(pickled, np.uint8)]
        for i, start in zip(missing, ends, strict=False):
            copied.append(arrays[i])
            places[i] = (memory.path, start, arrays[i].nbytes)
        _copy(copied, [0, *ends], content)
        found = [place for place in places if place is not None]
        resident = len(pickled) + sum(size for path, _, size in found if path not in self._mapped)
        return SharedGraph(memory.path, len(pickled), found, resident)

    def files(self) -> dict[str, int]:
        """Return the descriptor of each file that the shared graph is in, by its path."""
        return {memory.path: memory.descriptor for memory in self._made} | self._mapped

    def _new(self, nbytes: int) -> MappedFile:
        memory = MappedFile(os.memfd_create(_NAME, os.MFD_CLOEXEC), nbytes, os.ftruncate)
        with suppress(AttributeError, OSError):  # not every system has huge pages, or lends them for this
            memory.map.madvise(mmap.MADV_HUGEPAGE)
        self._made.append(memory)
        return memory


def _copy(arrays: Sequence[NDArray[np.uint8]], starts: Sequence[int], content: NDArray[np.uint8]) -> None:
    """Copy arrays to where they begin in `content`, in pieces and by all cores: the system makes room page by page."""
    pieces = [
        (array[at : at + _PIECE], start + at)
        for array, start in zip(arrays, starts, strict=False)
        for at in range(0, array.nbytes, _PIECE)
    ]

    def copy(piece: tuple[NDArray[np.uint8], int]) -> None:
        source, start = piece
        np.copyto(content[start : start + source.nbytes], source)

    workers = min(core_count(), len(pieces))
    with ThreadPoolExecutor(workers, thread_name_prefix="share-graph") as pool:
        map_all(pool, workers, copy, pieces)


def map_graph(shared: SharedGraph) -> Graph:
    """Return a graph that the coordinator shares, which the requests come from, too; nothing is checked again.

    Nothing is copied either; what is written to its arrays stays in this process.

    Raises
    ------
    RunError
        If the other process is gone, or belongs to another user.
    """
    maps: dict[str, mmap.mmap] = {}

    def mapped(path: str) -> mmap.mmap:
        if path not in maps:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                maps[path] = mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE)
            finally:
                os.close(file)
        return maps[path]

    try:
        pickled = bytes(mapped(shared.path)[: shared.pickled])
        arrays = [memoryview(mapped(path))[start : start + size] for path, start, size in shared.arrays]
    except OSError as error:
        raise RunError(f"the graph of the coordinator cannot be mapped: {error}") from error
    graph = pickle.loads(pickled, buffers=arrays)
    assert isinstance(graph, Graph)
    return graph


@contextmanager
def graph_of_machine(
    name: str, read: Callable[[GraphSharer], tuple[Graph, SharedGraph]], cancel: threading.Event
) -> Iterator[tuple[Graph, SharedGraph]]:
    """Have a graph that processes of this machine share: the first of them reads it, the others wait and map it.

    Parameters
    ----------
    name
        Of the graph: the same in all of these processes, and in no others.
    read
        Reads the graph, and shares it.
    cancel
        Ends waiting.

    Yields
    ------
    Graph
        Its arrays are only read.
    SharedGraph
        Where the graph is.

    Raises
    ------
    RunError
        If waiting was cancelled.
    Exception
        What `read` raises. Others that wait then try it themselves.
    """
    address, sharer = f"\0{_NAME}-{os.getuid()}-{name}", GraphSharer()
    while (listener := _bound(address)) is None:
        found, foreign = _received(address, cancel)
        if found is not None:
            yield found
            return
        if foreign:  # another user has taken the name: there is no one to share with
            yield read(sharer)
            return
    with closing(listener):
        graph, shared = read(sharer)
        thread = threading.Thread(target=_answer, args=(listener, shared, sharer.files()), daemon=True)
        thread.start()
        try:
            yield graph, shared
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # ends the thread's wait
            thread.join()


def _bound(address: str) -> socket.socket | None:
    """Return a socket that listens at an address; None where another process has it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
    except OSError:
        listener.close()
        return None
    return listener


def _answer(listener: socket.socket, shared: SharedGraph, files: dict[str, int]) -> None:
    """Send the graph to every process of this user that connects, until the socket is shut down."""
    paths = list(files)
    arrays = [(paths.index(path), start, size) for path, start, size in shared.arrays]
    answer = json.dumps((paths.index(shared.path), shared.pickled, arrays, shared.resident)).encode()
    with suppress(OSError):
        while True:
            peer, _ = listener.accept()
            with peer, suppress(OSError):
                if _same_user(peer):
                    socket.send_fds(peer, [answer], list(files.values()))


def _received(address: str, cancel: threading.Event) -> tuple[tuple[Graph, SharedGraph] | None, bool]:
    """Wait for the graph of the process that listens; None where it ended. Also return whether it is another user's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(_WAIT_SECONDS)
        try:
            peer.connect(address)
            if not _same_user(peer):
                return None, True
        except (BlockingIOError, TimeoutError):  # it has as many that wait as it can have
            time.sleep(_WAIT_SECONDS)
            return None, False
        except OSError:
            return None, False
        while not cancel.is_set():
            try:
                answer, files, _, _ = socket.recv_fds(peer, _MOST_BYTES, _MOST_FILES)
            except TimeoutError:
                continue
            except OSError:
                return None, False
            try:
                return (_mapped(answer, files) if answer else None), False
            finally:
                for file in files:
                    os.close(file)
    raise RunError("the run was cancelled")


def _mapped(answer: bytes, files: list[int]) -> tuple[Graph, SharedGraph]:
    first, pickled, arrays, resident = json.loads(answer)
    paths = [f"/proc/self/fd/{file}" for file in files]
    places = [(paths[at], start, size) for at, start, size in arrays]
    shared = SharedGraph(paths[first], pickled, places, resident)
    return map_graph(shared), shared


def _same_user(peer: socket.socket) -> bool:
    """Whether a process of this user is at the other end."""
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(user == os.getuid())
