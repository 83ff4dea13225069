"""A copy of the arcs to smaller neighbours, which threads make while others read what is there already."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from math import sqrt
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.graph import Graph
from longwall.storage.system.concurrency import core_count

_ARCS_AT_ONCE = 1 << 20
_PARTS_AT_ONCE = 4  # each takes the reader a moment to begin
_BUCKETS = 1 << 10  # of vertices, to which arcs are counted

Range = tuple[int, int]


class OrientedCopy:
    """Copies arcs, from the first one on, and counts to which vertices they lead.

    Parameters
    ----------
    graph
        The data graph.
    arrays
        What is filled: `indices`; `indptr` is there. See :func:`longwall.storage.pages.orientation.oriented_arrays`.
    """

    def __init__(self, graph: Graph, arrays: GraphArrays):
        self._graph, self._arrays = graph, arrays
        starts, number = arrays.indptr, arrays.num_vertices
        cuts = np.searchsorted(starts, range(0, arrays.num_arcs, _ARCS_AT_ONCE), side="left")
        self._rows = np.unique([0, *cuts, number])
        self._ends: NDArray[np.int64] = starts[self._rows[1:]]
        self._counts = np.zeros((self._ends.size, _BUCKETS), np.uint32)
        self._scale = _BUCKETS / sqrt(max(number, 1))
        self._firsts = _first_vertices(self._scale)
        self._copies: list[Future[None]] = []
        self._all_there = Event()  # threads: while the first ones copied, to start 31 took 0.1 to 0.3 s
        self._done = 0  # parts that are known to be there
        self._looked: tuple[Range, NDArray[np.int64]] = ((0, 0), np.zeros(_BUCKETS + 1, np.int64))

    @staticmethod
    def nbytes(num_arcs: int) -> int:
        """Return the bytes that the counts of a given number of arcs take."""
        return 4 * _BUCKETS * (num_arcs // _ARCS_AT_ONCE + 1)

    def begin(self) -> None:
        """Start the threads: one core is left to who reads."""
        firsts = range(0, self._ends.size, _PARTS_AT_ONCE)
        pool = ThreadPoolExecutor(max(min(core_count() - 1, len(firsts)), 1))
        try:
            self._copies = [pool.submit(self._copy, first) for first in firsts]
        except BaseException:  # no more threads can be started
            self._all_there.set()
            pool.shutdown(cancel_futures=True)
            raise
        self._all_there.set()
        pool.shutdown(wait=False)

    def wait(self, arcs: int | None = None) -> None:
        """Wait until a given number of arcs, from the first on, are there; None: all of them."""
        if self._done >= self._ends.size:
            return
        last = self._ends.size if arcs is None else int(np.searchsorted(self._ends, arcs)) + 1
        while self._done < min(last, self._ends.size):
            self._copies[self._done // _PARTS_AT_ONCE].result()
            self._done += _PARTS_AT_ONCE

    def close(self) -> None:
        """End the threads, whether all arcs are there or not."""
        for copy in self._copies:
            copy.cancel()
        wait(self._copies)

    def most_to(self, arcs: Range, vertices: Range) -> int:
        """Return a bound of how many arcs of a range, which is there, lead to a range of vertices."""
        if arcs[0] >= arcs[1] or vertices[0] >= vertices[1]:
            return 0
        sums = self._sums(arcs)
        most = sums[self._bucket(vertices[1] - 1) + 1] - sums[self._bucket(vertices[0])]
        return min(int(most), arcs[1] - arcs[0])

    def cut(self, arcs: Range, vertices: Range, most: int) -> Iterator[tuple[Range, Range]]:
        """Cut a range of arcs; see :class:`longwall.kernels.interface.pages.Pages`.

        Where no arc leads, there is no piece.
        """
        begin, high = vertices
        if arcs[0] >= arcs[1] or begin >= high:
            return
        sums, last = self._sums(arcs), self._bucket(high - 1) + 1
        while begin < high:
            bucket = self._bucket(begin)
            end = min(int(np.searchsorted(sums, sums[bucket] + most, side="right")) - 1, last)
            if end > bucket:
                beyond = high if end == last else int(self._firsts[end])
                if sums[end] > sums[bucket]:
                    yield arcs, (begin, beyond)
            else:
                beyond = min(int(self._firsts[bucket + 1]), high)
                for first in range(*arcs, most):
                    yield (first, min(first + most, arcs[1])), (begin, beyond)
            begin = beyond

    def _sums(self, arcs: Range) -> NDArray[np.int64]:
        """Return how many of a range of arcs, or of parts that it reaches into, lead to vertices before each bucket."""
        if self._looked[0] != arcs:
            low, high = np.searchsorted(self._ends, [arcs[0] + 1, arcs[1]]).tolist()
            sums = np.zeros(_BUCKETS + 1, np.int64)
            np.cumsum(self._counts[low : high + 1].sum(axis=0, dtype=np.int64), out=sums[1:])
            self._looked = arcs, sums
        return self._looked[1]

    def _bucket(self, vertex: int) -> int:
        return int(sqrt(vertex) * self._scale)

    def _copy(self, first: int) -> None:
        """Copy the parts from `first` on that a thread copies together."""
        self._all_there.wait()
        graph, (starts, arcs) = self._graph, (self._arrays.indptr, self._arrays.indices)
        for part in range(first, min(first + _PARTS_AT_ONCE, self._ends.size)):
            low, high = self._rows[part : part + 2].tolist()
            _copy_rows(graph.indptr, graph.indices, starts, low, high, arcs, self._counts[part], self._scale)


def _first_vertices(scale: float) -> NDArray[np.int64]:
    """Return the first vertex of each bucket, or of a later one, and of one beyond the last."""
    buckets = np.arange(_BUCKETS + 1)
    # The square may be off by a little.
    near = np.maximum((buckets / scale) ** 2 - 2, 0).astype(np.int64)[:, None] + np.arange(5)
    firsts: NDArray[np.int64] = near[
        buckets, np.argmax((np.sqrt(near) * scale).astype(int) >= buckets[:, None], axis=1)
    ]
    return firsts


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1], u4[::1], f8")
def _copy_rows(
    indptr: Any, indices: Any, starts: Any, first: int, last: int, out: Any, counts: Any, scale: float
) -> None:
    """Copy the beginnings of the rows first to last - 1, each as long as `starts` says; count arcs to each bucket."""
    for v in range(first, last):
        begin, shift = starts[v], indptr[v] - starts[v]
        for i in range(begin, starts[v + 1]):
            u = indices[i + shift]
            out[i] = u
            counts[int(np.sqrt(u) * scale)] += 1
