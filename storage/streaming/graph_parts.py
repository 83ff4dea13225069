"""Parts of a graph that stays in its store: what is counted at some roots needs no more than such a part.

Of roots that are numbered one behind the other, the lists of smaller neighbours are needed, and the lists of these
neighbours. A part has both, with vertices numbered anew, so that kernels read it as they read a whole graph. Where a
kernel can count the arcs to some vertices alone, roots are joined with block after block of the neighbours' lists (as
blocks of arrays in external memory: Pagh and Silvestri, PODS 2014, section 3); else there are as many roots in a part
as all lists of their neighbours have room.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Targets
from longwall.storage.errors import RunError
from longwall.storage.memory.sizes import round_size
from longwall.storage.streaming.list_file import ListFile
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.streaming.vertex_set import VertexSet
from longwall.storage.system.concurrency import map_all

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]

MEMBER_BYTES, ARC_BYTES = 12, 4  # of a part: where a list begins, and how long it is; a neighbour
_SLACK, _LEAST_BYTES = 64, 128  # of a part: what it has besides; without which nothing has room
ROOTS_SHARE = 0.75
"""Of a part, for the roots, where they are joined with blocks of lists: the more roots, the fewer passes over these."""


@dataclass(frozen=True)
class GraphPart:
    """A part of a graph; valid until the next one is made.

    Attributes
    ----------
    graph
        Its arrays on the host, oriented.
    first, last
        The roots' arcs in it.
    targets
        Only arcs to these of its vertices count; None: all.
    members : VertexSet
        Its vertices.
    roots
        Arcs at its end, of the lists of the window's roots and of the members between them.
    """

    graph: GraphArrays
    first: int
    last: int
    targets: Targets | None
    members: VertexSet
    roots: int


@dataclass(frozen=True)
class Window:
    """Roots whose parts are made one after the other.

    Attributes
    ----------
    first, last
        The first root, and one past the last one.
    arcs
        What is counted: a range of arcs to smaller neighbours, of which each root has some.
    """

    first: int
    last: int
    arcs: tuple[int, int]


class GraphParts:
    """Makes the parts of a graph, in memory that all of them use.

    Parameters
    ----------
    graph, lists
        The graph, and the lists of its smaller neighbours.
    size
        Bytes of a part, which the caller has reserved; besides `set_bytes`, and `ListFile.longest` neighbours for each
        thread and one more.
    threads
        The number of threads that read lists.
    cancel
        Set when the run is cancelled: reading raises KeyboardInterrupt then, before the next segment.
    option
        The option that limits `size`, for messages.

    Attributes
    ----------
    size
        Bytes of a part.
    bytes_read
        Bytes of the lists that were read so far.

    Raises
    ------
    RunError
        If a part is too small for any list.
    """

    def __init__(
        self,
        graph: StoredGraph,
        lists: ListFile,
        size: int,
        threads: int,
        cancel: threading.Event,
        option: str = "memory.host",
    ) -> None:
        self._starts, self._lists, self._threads, self._cancel = graph.starts, lists, threads, cancel
        self._option = option
        if size < _LEAST_BYTES:
            raise RunError(
                f"{option} leaves {round_size(max(size, 0))} for the adjacency lists, which is too little: raise it"
            )
        self.resize(size)
        self._set, self._buffers = VertexSet(graph.starts), threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="read-lists")
        self.bytes_read = 0

    def close(self) -> None:
        """End the threads, and note what was read."""
        self._lists.bytes_read += self.bytes_read
        self._pool.shutdown(cancel_futures=True)

    def resize(self, size: int) -> None:
        """Make parts of another size; no part may be in use."""
        self.size = size
        self._arena = np.empty(0, np.int64)  # it must be gone before there is another one
        self._arena = np.empty(size // 8, np.int64)

    def window(self, first: int, arcs: tuple[int, int], least: int, *, split: bool) -> Window:
        """Choose the roots of the next parts: as many as there is room for.

        Parameters
        ----------
        first
            The first of them.
        arcs
            What is counted, to its end.
        least
            Vertices with fewer smaller neighbours are no roots.
        split
            Whether arcs can be counted by what they lead to.

        Raises
        ------
        RunError
            If there is no room for a single one.
        """
        starts, bounds = self._starts, self._lists.bounds
        last = int(np.searchsorted(starts, arcs[1], side="left"))
        limit = int((self.size - _SLACK) * (ROOTS_SHARE if split else 1))
        self._set.clear()
        state, root = np.zeros(1, np.int64), first
        costs = MEMBER_BYTES, ARC_BYTES
        segment = int(np.searchsorted(bounds, starts[first], side="right")) - 1
        while root < last and segment < self._lists.segments and bounds[segment] < starts[last]:
            values = self._read(segment)
            self.bytes_read += values.nbytes
            loaded = first if split else 0
            root = self._set.add_roots(values, int(bounds[segment]), root, last, least, loaded, limit, costs, state)
            if state[0] > limit:
                if root == first:
                    raise RunError(
                        f"the adjacency lists around one vertex need more than {round_size(limit)}, which is what "
                        f"{self._option} leaves for them: raise {self._option}"
                    )
                return Window(first, root, arcs)
            segment += 1
        return Window(first, last, arcs)

    def parts(self, window: Window, *, split: bool) -> Iterator[GraphPart]:
        """Yield the parts that hold what is counted at the roots of a window, which was chosen last.

        Raises
        ------
        RunError
            If a list has no room.
        """
        members = self._set
        members.number()
        head = members.size + 1 + -(-members.size // 2)
        indptr = self._arena[: members.size + 1]
        lengths = self._arena[members.size + 1 : head].view(np.uint32)[: members.size]
        lists = self._arena[head : self.size // 8].view(np.uint32)
        lengths[:] = 0
        inside = members.rank(window.first)
        roots = self._gather(window.first, window.last, lists, lengths)
        below, at = lists[: lists.size - roots], 0 if split else window.first
        if not split:
            gathered = self._gather(0, window.first, below, lengths)
            yield self._part(window, indptr, lists[below.size - gathered :], lengths, None)
            return
        while True:
            end = members.lists_end(at, window.first, below.size) if window.first else 0
            if end == at < window.first:
                raise RunError(f"a single adjacency list has no room in {round_size(self.size)}: raise {self._option}")
            lengths[:inside] = 0
            gathered = self._gather(at, end, below, lengths)
            high = members.size if end == window.first else members.rank(end)
            targets = None if at == 0 and high == members.size else (members.rank(at), high)
            yield self._part(window, indptr, lists[below.size - gathered :], lengths, targets)
            at = end
            if at == window.first:
                return

    def _read(self, segment: int) -> UInt32s:
        """Read a segment into memory of this thread."""
        if self._cancel.is_set():
            raise KeyboardInterrupt
        buffer: UInt32s | None = getattr(self._buffers, "items", None)
        if buffer is None:
            buffer = self._buffers.items = np.empty(self._lists.longest, np.uint32)
        return self._lists.read(segment, buffer)

    def _part(
        self, window: Window, indptr: Int64s, lists: UInt32s, lengths: UInt32s, targets: Targets | None
    ) -> GraphPart:
        indptr[0] = 0
        np.cumsum(lengths, out=indptr[1:])
        longest = int(lengths.max(initial=0))
        graph = GraphArrays(indptr, lists, indptr[1:], np.zeros(1, np.int32), longest, longest, oriented=True)
        first, last = (self._place(at, window, indptr) for at in window.arcs)
        roots = graph.num_arcs - int(indptr[self._set.rank(window.first)])
        return GraphPart(graph, first, last, targets, self._set, roots)

    def _place(self, arc: int, window: Window, indptr: Int64s) -> int:
        """Return where an arc is in a part, or the end of a range of arcs."""
        vertex = int(np.searchsorted(self._starts, arc, side="right")) - 1
        if vertex < window.first:
            return int(indptr[self._set.rank(window.first)])
        if vertex >= window.last:
            return int(indptr[-1])
        rank = self._set.rank(vertex)
        end = int(indptr[self._set.rank(vertex + 1)])
        return min(int(indptr[rank]) + arc - int(self._starts[vertex]), end)

    def _gather(self, first: int, last: int, out: UInt32s, lengths: UInt32s) -> int:
        """Read the lists of the members `first` to `last` - 1 to the end of `out`; return how many arcs they have."""
        starts, bounds, members = self._starts, self._lists.bounds, self._set
        if starts[first] == starts[last]:
            return 0
        low = int(np.searchsorted(bounds, starts[first], side="right")) - 1
        high = int(np.searchsorted(bounds, starts[last], side="left"))
        needed = np.zeros(high - low, np.int64)
        members.count_needed(first, last, bounds[low : high + 1], needed)
        begins = out.size - int(needed.sum()) + np.cumsum(needed) - needed

        def pick(i: int) -> tuple[int, int]:
            values, begin = self._read(low + i), int(begins[i])
            place = out[begin : begin + int(needed[i])]
            return members.pick(values, int(bounds[low + i]), first, last, place, lengths)

        wanted = np.flatnonzero(needed).tolist()
        found = map_all(self._pool, self._threads, pick, wanted)
        end = out.size
        for i, (copied, leading) in zip(reversed(wanted), reversed(found), strict=True):
            begin = int(begins[i])
            end -= copied
            if end != begin:
                out[end : end + copied] = out[begin : begin + copied]
            if leading:
                owner = int(np.searchsorted(starts, bounds[low + i], side="right")) - 1
                lengths[members.rank(owner)] += leading
        self.bytes_read += ARC_BYTES * int(np.diff(bounds)[low:high][needed > 0].sum())
        return out.size - end
