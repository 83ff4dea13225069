"""A set of vertices as bits, with the rank of each in the set; and what is done with the lists of its members.

A graph that stays in its store is counted part by part. A part has the vertices of such a set, numbered anew by their
ranks, which keep the order of ids; what rank a vertex has is found by a population count (rank directory: Jacobson,
FOCS 1989, section 2).
"""

import numpy as np
import numpy.typing as npt

from longwall.storage.streaming import vertex_kernels

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]

_BITS = 64  # of a word


def set_bytes(vertices: int) -> int:
    """Return the bytes of a `VertexSet` over a number of vertices."""
    return (8 + 4) * (vertices // _BITS + 2)


class VertexSet:
    """A set of vertices of a graph.

    Parameters
    ----------
    starts : int64[n + 1]
        Where the list of each vertex begins; see `StoredGraph.starts`.

    Attributes
    ----------
    size
        Number of members; once `number` was called.
    """

    def __init__(self, starts: Int64s) -> None:
        self._starts = starts
        self._words = np.zeros((starts.size - 1) // _BITS + 1, np.uint64)
        self._ranks = np.zeros(self._words.size + 1, np.uint32)
        self.size = 0

    def clear(self) -> None:
        """Take all members away."""
        self._words[:] = 0

    def number(self) -> None:
        """Number the members; before ranks are asked for."""
        vertex_kernels.rank_words(self._words, self._ranks)
        self.size = int(self._ranks[-1])

    def rank(self, vertex: int) -> int:
        """Return how many members are smaller than a vertex."""
        return (
            int(vertex_kernels.rank(self._words, self._ranks, vertex)) if vertex < self._starts.size - 1 else self.size
        )

    def members(self, first: int, last: int) -> Int64s:
        """Return int64[k]: the members from rank `first` to rank `last` - 1."""
        members = np.empty(last - first, np.int64)
        vertex_kernels.list_members(self._words, self._ranks, first, members)
        return members

    def add_roots(
        self,
        lists: UInt32s,
        at: int,
        first: int,
        last: int,
        least: int,
        loaded: int,
        limit: int,
        costs: tuple[int, int],
        state: Int64s,
    ) -> int:
        """Add roots, and the neighbours in their lists, while there is room for them.

        Parameters
        ----------
        lists, at
            Neighbours, from arc `at` of the graph on; roots may begin before them or end behind them.
        first, last
            The next root, and one past the last one.
        least
            Vertices with fewer neighbours are no roots.
        loaded
            Only the lists of members from this vertex on take memory.
        limit
            Bytes that the members may take.
        costs
            Bytes of a member, and of a neighbour in its list.
        state : int64[1]
            Bytes that members take so far; is added to.

        Returns
        -------
        int
            The first root whose list does not end here, or for which there is no room: `state` exceeds `limit` then.
        """
        return int(
            vertex_kernels.add_roots(
                lists, at, self._starts, first, last, least, loaded, limit, *costs, self._words, state
            )
        )

    def lists_end(self, first: int, last: int, arcs: int) -> int:
        """Return the vertex up to which the lists of the members from `first` on have at most `arcs` neighbours."""
        return int(vertex_kernels.lists_end(self._words, self._starts, first, last, arcs))

    def count_needed(self, first: int, last: int, bounds: Int64s, needed: Int64s) -> None:
        """Add to `needed` (int64[k]) how many arcs of members `first` to `last` - 1 lie in each of k segments."""
        vertex_kernels.count_needed(self._words, self._starts, first, last, bounds, needed)

    def pick(self, values: UInt32s, at: int, first: int, last: int, out: UInt32s, lengths: UInt32s) -> tuple[int, int]:
        """Copy what neighbours of members `first` to `last` - 1 are members, by their ranks.

        Parameters
        ----------
        values, at
            Neighbours, from arc `at` of the graph on.
        first, last
            Vertices.
        out
            Takes the ranks.
        lengths : uint32[size]
            For each member whose list begins in `values`, how many were copied of it.

        Returns
        -------
        copied : int
            How many ranks.
        leading : int
            How many of them are of a list that begins before `values`.
        """
        found = np.zeros(2, np.int64)
        vertex_kernels.pick(values, at, self._starts, self._words, self._ranks, first, last, out, lengths, found)
        return int(found[0]), int(found[1])
