"""Arrays of a graph that is built in memory."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import NewArray
from longwall.storage.graph.graph_sink import HASHED, Sink
from longwall.storage.graph.stats import GraphStats
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.reservations import BudgetExceeded, Reservation
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.system.concurrency import core_count, map_all

Array = npt.NDArray[Any]

_SEGMENTS = 16  # that a thread hashes at a time


class MemorySink(Sink):
    """Keeps the arrays; what it has reserved for them stays reserved when it succeeds.

    Parameters
    ----------
    adjacency
        Makes the array of the neighbours.
    files
        Makes the arrays that the host's budget has no room for; None: there must be room.
    """

    def __init__(self, adjacency: NewArray = np.empty, files: MappedArrays | None = None) -> None:
        super().__init__()
        self._adjacency, self._files, self._in_files = adjacency, files, False
        self._arrays: dict[str, Array] = {}
        self._filled: dict[str, int] = {}
        self._reservations: list[Reservation] = []

    def expect(self, size: int, scratch: Scratch) -> None:
        """Choose files for all arrays, if there may be some, and memory will not hold the graph."""
        self._in_files = self._files is not None and size > scratch.most_capacity

    def _begin(self, name: str, dtype: np.dtype[Any], length: int, scratch: Scratch | None) -> None:
        new: NewArray = self._adjacency if name == "indices" else np.empty
        if scratch is not None and (self._in_files or not self._reserve(length * dtype.itemsize, name, scratch)):
            assert self._files is not None
            new = self._files.array
        self._arrays[name] = new(length, dtype)
        self._filled[name] = 0

    def _reserve(self, size: int, name: str, scratch: Scratch) -> bool:
        """Reserve memory for an array; return whether there is room, if there need not be."""
        scratch.make_room(size)
        try:
            # Not with the scratch: it outlives the build.
            self._reservations.append(scratch.host.reserve(size, f"the graph's array {name}"))
        except BudgetExceeded:
            if self._files is None:
                raise
            return False
        return True

    def append(self, name: str, values: Array) -> None:
        """Copy items to the end of an array; they are hashed when it is complete."""
        start = self._filled[name]
        self._filled[name] = start + len(values)
        self._arrays[name][start : start + len(values)] = values

    def read_back(self, name: str, _: int) -> Iterator[Array]:
        """Yield the array."""
        yield self._arrays[name]

    def release(self) -> None:
        """Release the memory."""
        for reserved in self._reservations:
            reserved.release()

    def graph(self, stats: GraphStats) -> Graph:
        """Make the graph of the complete arrays."""
        self._hash()
        get = self._arrays.get
        return Graph(
            indptr=self._arrays["indptr"],
            indices=self._arrays["indices"],
            split=self._arrays["split"],
            original_ids=self._arrays["original_ids"],
            labels=get("labels"),
            edge_labels=get("edge_labels"),
            stats=stats,
            content_hash=self.content_hash,
            transactions=get("transactions"),
            transaction_ids=get("transaction_ids"),
            name_starts=get("name_starts"),
            name_bytes=get("name_bytes"),
            label_names=self.label_names.get("vertices"),
            edge_label_names=self.label_names.get("edges"),
            notes=self.notes,
            files=self._files if self._files is not None and self._files.nbytes else None,
        )

    def _hash(self) -> None:
        """Hash the arrays, on all cores."""
        segments = [
            (name, start)
            for name in HASHED
            if name in self._arrays
            for start in range(0, len(self._arrays[name]), _SEGMENTS * self.hashes[name].segment)
        ]

        def work(part: tuple[str, int]) -> None:
            (name, start), hashed = part, self.hashes[part[0]]
            hashed.put(start, self._arrays[name][start : start + _SEGMENTS * hashed.segment])

        with ThreadPoolExecutor(core_count()) as pool:
            map_all(pool, core_count(), work, segments)
