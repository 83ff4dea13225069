"""A graph in memory that the processes of one machine share: one of them reads it, the others map it.

The memory is that of anonymous files, which others of the same user open by the process that made them. It is freed
when the last process that has it ends, however it ends.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.reservations import MemoryBudget

_UNIT = 64  # bytes, at multiples of which arrays begin
_NAME = "longwall-graph"


class SharedGraph(NamedTuple):
    """Where a graph is; plain values, for another process of the machine."""

    path: str
    """The file that begins with the pickled graph, less its arrays."""
    pickled: int
    """Bytes of the pickle."""
    arrays: list[tuple[str, int, int]]
    """Path, offset and size of each array, in the order of the pickle."""


class _Memory:
    """An anonymous file, mapped; it stays open as long as an array over it."""

    def __init__(self, nbytes: int):
        self.nbytes = nbytes
        self._file = os.memfd_create(_NAME, os.MFD_CLOEXEC)
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        os.ftruncate(self._file, max(nbytes, 1))
        self._map = mmap.mmap(self._file, max(nbytes, 1))
        with suppress(AttributeError, OSError):  # not every system has huge pages, or lends them for this
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self.address = np.frombuffer(self._map, np.uint8).ctypes.data
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self._file)


class GraphSharer:
    """Makes arrays that others can map, and says where a graph is; keeps its memory until it is dropped."""

    def __init__(self) -> None:
        self._made: list[_Memory] = []

    def array(self, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Make an empty array in shared memory; see :data:`longwall.storage.graph.graph.NewArray`."""
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
        import distributed  # noqa: F401 - whole, before its parts: another thread may be importing it, too
        from distributed.protocol.pickle import dumps

        buffers: list[Any] = []
        pickled = dumps(replace(graph, files=None), buffer_callback=buffers.append)
        arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        places = [self._place(array, graph.files) for array in arrays]
        missing = [i for i, place in enumerate(places) if place is None]
        sizes = [len(pickled), *(arrays[i].nbytes for i in missing)]
        ends = np.cumsum([-(-size // _UNIT) * _UNIT for size in sizes]).tolist()
        host.charge(ends[-1], "what the workers share of the graph")
        memory = self._new(ends[-1])
        content: NDArray[np.uint8] = np.asarray(memory)
        content[: len(pickled)] = np.frombuffer(pickled, np.uint8)
        for i, start in zip(missing, ends, strict=False):
            content[start : start + arrays[i].nbytes] = arrays[i]
            places[i] = (memory.path, start, arrays[i].nbytes)
        return SharedGraph(memory.path, len(pickled), [place for place in places if place is not None])

    def _new(self, nbytes: int) -> _Memory:
        self._made.append(_Memory(nbytes))
        return self._made[-1]

    def _place(self, array: NDArray[np.uint8], files: MappedArrays | None) -> tuple[str, int, int] | None:
        for memory in self._made:
            offset = array.ctypes.data - memory.address
            if array.nbytes and 0 <= offset <= memory.nbytes - array.nbytes:
                return memory.path, offset, array.nbytes
        return None if files is None else files.place(array)


def map_graph(shared: SharedGraph) -> Graph:
    """Return a graph that the coordinator shares, which the requests come from, too; nothing is checked again.

    Nothing is copied either; what is written to its arrays stays in this process.

    Raises
    ------
    RunError
        If the other process is gone, or belongs to another user.
    """
    from distributed.protocol.pickle import loads

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
    graph = loads(pickled, buffers=arrays)
    assert isinstance(graph, Graph)
    return graph
