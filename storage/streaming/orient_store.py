"""Copy the arcs to smaller neighbours from a store to a file, while the store is checked: once for a run."""

import threading

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.arrays.array_reader import StoredArray
from longwall.storage.graph.graph_checks import require
from longwall.storage.graph.graph_store import StoreReader, opened_store, reading_workers
from longwall.storage.graph.row_checks import PartialRowChecks, check_sum
from longwall.storage.memory.resources import Resources
from longwall.storage.observer import Observer
from longwall.storage.stored_files import Damage
from longwall.storage.streaming.list_file import ListFile
from longwall.storage.streaming.stored_graph import ROW_ARRAYS, StoredGraph
from longwall.storage.system.concurrency import core_count

UInt32s = npt.NDArray[np.uint32]
_MORE = 6  # bytes for a byte that is read: the rows of a block, the block, and what is copied of it
# Chunks of a block, where the budget has room for blocks and, of an eighth of it, for as many segments of the lists:
# after each step of a block a thread waits for its turn to run Python.
_CORES_PER_CHUNK, _SEGMENTS_SHARE = 8, 8


def orient_store(graph: StoredGraph, resources: Resources, observer: Observer, cancel: threading.Event) -> ListFile:
    """Copy the neighbours with a smaller id, row by row, to a file of the spill folder.

    All of the store that `open_stored` did not read is read and checked, as when it is opened into memory.

    Parameters
    ----------
    graph
        The graph.
    resources
        Budgets, and the spill folder.
    observer
        Receives the progress, in arcs.
    cancel
        Set when the work is to end.

    Returns
    -------
    ListFile
        The caller closes it.

    Raises
    ------
    InputError
        If the store is damaged, or was changed since it was opened.
    RunError
        If a budget or the disk is too small.
    KeyboardInterrupt
        If it was cancelled.
    """
    stored = graph.stored
    observer.phase("reading the graph from its store", 2 * graph.num_edges, "arcs")
    with opened_store(stored.path, None) as (header, arrays):
        if header != stored.header:
            raise Damage("it was changed")
        rows = [array for name, array in arrays.items() if name in ROW_ARRAYS]
        chunks = _chunks(rows, resources.host.free)
        workers, size = reading_workers(rows, resources.host.free, _MORE, chunks)
        with (
            resources.host.reserve(size, "reading the graph"),
            StoreReader(header, arrays, workers, chunks) as reader,
        ):
            reader.hashes.update(stored.hashes)
            bounds = reader.blocks("indices")
            begins = [graph.oriented_arc(start) for start, _ in bounds]
            lists = ListFile(resources, np.array([*begins, graph.num_edges]))
            try:
                _Copy(graph, lists, bounds, observer, cancel).run(reader)
            except BaseException:
                lists.close()
                raise
    return lists


def orienting_bytes(graph: StoredGraph) -> int:
    """Return the bytes of the host that `orient_store` takes at least."""
    with opened_store(graph.stored.path, None) as (_, arrays):
        return reading_workers([array for name, array in arrays.items() if name in ROW_ARRAYS], 0, _MORE)[1]


def _chunks(rows: list[StoredArray], free: int) -> int:
    """Return how many chunks a block has, a power of two; `free` bytes are there."""
    workers, chunks = core_count(), 1
    while 2 * chunks * _CORES_PER_CHUNK <= workers:
        segment = max(array.block_bytes(2 * chunks) for array in rows)
        few = reading_workers(rows, free, _MORE, 2 * chunks)[0] < workers
        if few or (workers + 1) * segment > free // _SEGMENTS_SHARE:
            break
        chunks *= 2
    return chunks


class _Copy:
    """The way of the neighbours, block by block, from the store to the file."""

    def __init__(
        self,
        graph: StoredGraph,
        lists: ListFile,
        blocks: list[tuple[int, int]],
        observer: Observer,
        cancel: threading.Event,
    ) -> None:
        self._graph, self._lists, self._observer, self._cancel = graph, lists, observer, cancel
        self._numbers = {start: number for number, (start, _) in enumerate(blocks)}
        self._ends = np.zeros((len(blocks), 2), np.uint32)
        self._within = np.zeros(len(blocks), np.bool_)
        self._checks = PartialRowChecks(graph.num_vertices)

    def run(self, reader: StoreReader) -> None:
        """Copy all; raises `Damage` if it is no graph, or another one than the store says."""
        check_sum(reader.read("indices", check=self._block), "indices")
        seams = self._ends[:-1, 1] < self._ends[1:, 0]
        require(bool(seams[self._within[1:]].all()), "indices: a row does not ascend")
        if "edge_labels" in reader.stored:
            reader.read("edge_labels")
        reader.check_hash()

    def _block(self, start: int, block: UInt32s) -> int:
        if self._cancel.is_set():
            raise KeyboardInterrupt
        number, rows = self._numbers[start], self._graph.rows_between(start, start + len(block))
        hashed = self._checks.check_rows(start, block, rows)
        self._ends[number] = block[0], block[-1]
        self._within[number] = rows.indptr[0] < start
        first, last = self._lists.bounds[number : number + 2].tolist()
        smaller = np.empty(last - first, np.uint32)
        _copy_smaller(start, block, rows.indptr, rows.split, smaller)
        self._lists.write(number, smaller)
        self._observer.advance(len(block))
        return hashed


@compiled("i8, u4[::1], i8[::1], i8[::1], u4[::1]")
def _copy_smaller(
    start: int, block: UInt32s, indptr: npt.NDArray[np.int64], split: npt.NDArray[np.int64], out: UInt32s
) -> None:
    """Copy what lies in a block, from arc `start` on, of the beginnings of its rows, up to where they are split."""
    at = 0
    for row in range(split.size):
        for arc in range(max(indptr[row] - start, 0), min(split[row] - start, block.size)):
            out[at] = block[arc]
            at += 1
