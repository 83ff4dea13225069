"""The candidates of a query graph, and for every edge of the query the candidates that are joined by an edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.queries.filter_kernel import first_candidates, refine
from longwall.kernels.host.queries.lists_kernel import count_lists, fill_lists, hang
from longwall.kernels.host.queries.order import Split, hanging_vertices, split_query
from longwall.kernels.interface.graph_arrays import GraphArrays

_PASSES = 12  # of refinement; where they change something for longer, the search does without
_VERTEX_BYTES = 32  # of a vertex while candidates are looked for
_CANDIDATE_BYTES = 40
ANY_LABEL = -1


@dataclass(frozen=True)
class QueryGraph:
    """A query of 2 to 64 vertices.

    Attributes
    ----------
    adjacent
        Bit set of the neighbours of each vertex.
    labels
        The label of each, -1 where any will do.
    induced
        Whether non-edges of the query must be non-edges of the graph.
    """

    adjacent: tuple[int, ...]
    labels: tuple[int, ...]
    induced: bool = False

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.adjacent)


class Released(Protocol):
    """A part of a budget."""

    def release(self) -> None:
        """Give it back."""


Reserve = Callable[[int, str], Released]
"""Takes bytes for a purpose from a budget, and raises an error where it has no room."""


class Lists(NamedTuple):
    """Candidate lists; see `count_lists` for what the arrays mean."""

    vertices: NDArray[np.int64]
    first_of: NDArray[np.int64]
    row_base: NDArray[np.int64]
    starts: NDArray[np.int64]
    lists: NDArray[np.int32]
    """The lists, and behind them the candidates of the root."""
    longest: NDArray[np.int64]
    """int64[k, k]: the longest list of each edge of the query, in each direction."""
    kinds: NDArray[np.uint64]
    """The query vertices that each position may be."""
    numbers: Sequence[int]
    """Number of positions with the label of each query vertex: the rows of each edge that begins there."""


class CandidateSpace:
    """What a search for a query reads; the same in all workers.

    Parameters
    ----------
    graph
        On the host.
    query
        The query.
    reserve
        Takes bytes of the host's budget.

    Attributes
    ----------
    graph, query
        See above.
    adjacent : uint64[k]
        The neighbours of each query vertex.
    sizes
        The number of candidates of each query vertex.
    split
        What is matched and what is counted; None where there is no match.
    roots
        Number of candidates of the vertex that is matched first; 0 where there is no match.
    lists
        The candidate lists; None where there is no match.
    near : uint64[k]
        The neighbours of each query vertex that are matched or counted in the search.
    below, below_base : int64[size], int64[k]
        The ways to match what hangs from query vertex u matched to position x:
        ``below[below_base[u] + x - first_of[u]]``; nothing hangs from it where the base is -1.
    """

    def __init__(self, graph: GraphArrays, query: QueryGraph, reserve: Reserve):
        self.graph, self.query = graph, query
        self.adjacent = np.array(query.adjacent, np.uint64)
        self._held: list[Released] = []
        self.lists: Lists | None = None
        self.split: Split | None = None
        self.roots = 0
        self.near = self.adjacent
        self.below_base, self.below = np.full(query.size, -1, np.int64), np.ones(1, np.int64)
        working = reserve(_VERTEX_BYTES * graph.num_vertices, "what each vertex may be in a query")
        try:
            masks, active = self._filtered()
            self.sizes = _bit_counts(masks[active], query.size)
            if min(self.sizes):
                self._make_lists(masks, active, reserve)
        except BaseException:
            self.close()
            raise
        finally:
            working.release()

    @property
    def arena_size(self) -> int:
        """Elements of candidates that one worker may keep at a time."""
        assert self.lists is not None
        longest = self.lists.longest
        return int(np.maximum(longest, longest.T).sum()) // 2

    def close(self) -> None:
        """Give the memory back."""
        self.lists = None
        while self._held:
            self._held.pop().release()

    def _filtered(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return what each vertex may be, and the vertices that may be something."""
        graph, query = self.graph, self.query
        masks = np.empty(graph.num_vertices, np.uint64)
        members = _members(query.labels)
        any_label = np.uint64(members.pop(ANY_LABEL, 0))
        labels = sorted(members)
        of_label = np.array([members[label] for label in labels], np.uint64)
        of_degree = np.zeros(64, np.uint64)
        for v, near in enumerate(query.adjacent):
            of_degree[near.bit_count()] |= np.uint64(1 << v)
        of_degree = np.bitwise_or.accumulate(of_degree)
        first_candidates(graph.indptr, graph.labels, np.array(labels, np.int64), of_label, any_label, of_degree, masks)
        active = np.flatnonzero(masks)
        first, groups, needs = _groups(query.adjacent, members.values())
        for _ in range(_PASSES):
            removed = refine(graph.indptr, graph.indices, active, self.adjacent, first, groups, needs, masks)
            if not removed:
                break
            active = active[masks[active] != 0]
        return masks, active

    def _make_lists(self, masks: NDArray[np.uint64], active: NDArray[np.int64], reserve: Reserve) -> None:
        graph, query, size = self.graph, self.query, self.query.size
        vertices, first_of, number_of = self._by_label(active)
        edges = [(u, w) for u in range(size) for w in range(size) if query.adjacent[u] >> w & 1]
        row_base, rows = np.zeros((size, size), np.int64), 0
        for u, w in edges:
            row_base[u, w] = rows
            rows += number_of[u]
        self._held.append(reserve(8 * (rows + 1) + _CANDIDATE_BYTES * len(vertices), "the candidates of a query"))
        starts = np.zeros(rows + 1, np.int64)
        arrays = (graph.indptr, graph.indices, vertices, masks, self.adjacent, first_of, row_base)
        count_lists(*arrays, starts)
        longest = np.zeros((size, size), np.int64)
        of_edges = np.maximum.reduceat(starts[1:], [row_base[u, w] for u, w in edges])
        longest[tuple(np.transpose(edges))] = of_edges
        np.cumsum(starts, out=starts)
        hanging = [] if query.induced else hanging_vertices(query.adjacent, self.kinds)
        split = split_query(query.adjacent, self.kinds, self.sizes, hanging, induced=query.induced)
        total, roots = int(starts[-1]), self.sizes[split.root]
        self._held.append(reserve(4 * (total + roots), "the candidate lists of a query"))
        lists = np.empty(total + roots, np.int32)
        position = np.empty(graph.num_vertices, np.int32)
        position[vertices] = np.arange(len(vertices), dtype=np.int32)
        fill_lists(*arrays, starts, position, np.empty(64, np.int64), lists)
        lists[total:] = np.flatnonzero(masks[vertices] >> np.uint64(split.root) & np.uint64(1))
        self.split, self.roots = split, roots
        self.lists = Lists(vertices, first_of, row_base, starts, lists, longest, masks[vertices], number_of)
        self._hang(hanging, number_of, reserve)

    def _hang(self, hanging: Sequence[tuple[int, int]], number_of: Sequence[int], reserve: Reserve) -> None:
        """Add up the ways to match what hangs from each candidate of a query vertex."""
        assert self.lists is not None
        bases, size = np.full(self.query.size, -1, np.int64), 0
        for _, parent in hanging:
            if bases[parent] < 0:
                bases[parent], size = size, size + number_of[parent]
        self._held.append(reserve(8 * (size + 1), "the ways below the candidates of a query"))
        below, found = np.ones(size + 1, np.int64), self.lists
        for v, parent in hanging:
            row, own = int(found.row_base[parent, v]), int(bases[parent])
            begin, first = int(bases[v]), int(found.first_of[v])
            hang(found.starts, found.lists, row, number_of[parent], first, begin, own, below)
        self.below_base, self.below = bases, below
        kept = ~sum(1 << v for v, _ in hanging)
        self.near = np.array([near & kept for near in self.query.adjacent], np.uint64)

    @property
    def kinds(self) -> list[int]:
        """Return a number for the label of each query vertex; one for all where some may have any label."""
        labels = self.query.labels
        return [0 if ANY_LABEL in labels else label for label in labels]

    @property
    def alike(self) -> list[int]:
        """For each query vertex those that may be matched to the same vertices, as bits."""
        kinds = self.kinds
        members = _members(kinds)
        return [members[kind] for kind in kinds]

    def _by_label(self, active: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
        """Sort candidates by label; return them, where those of each query vertex's label begin, and their number."""
        kinds = self.kinds
        known = sorted(set(kinds))
        if len(known) == 1:
            return active, np.zeros(len(kinds), np.int64), [len(active)] * len(kinds)
        class_of = np.searchsorted(known, self.graph.labels[active])
        vertices = active[np.argsort(class_of, kind="stable")]
        ends = np.concatenate([[0], np.cumsum(np.bincount(class_of, minlength=len(known)))]).astype(np.int64)
        places = [known.index(kind) for kind in kinds]
        return vertices, ends[places], (ends[1:] - ends[:-1])[places].tolist()


def _members(labels: Sequence[int]) -> dict[int, int]:
    """Return the query vertices of each label, as bits."""
    members: dict[int, int] = {}
    for v, label in enumerate(labels):
        members[label] = members.get(label, 0) | 1 << v
    return members


def _groups(
    adjacent: Sequence[int], members: Iterable[int]
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Return, for each query vertex, the groups of two or more neighbours with one label, and their sizes."""
    several = [same for same in members if same.bit_count() > 1]
    first, groups = [0], []
    for near in adjacent:
        groups += [near & same for same in several if (near & same).bit_count() > 1]
        first.append(len(groups))
    needs = [group.bit_count() for group in groups]
    return np.array(first, np.int64), np.array(groups, np.uint64), np.array(needs, np.int64)


def _bit_counts(masks: NDArray[np.uint64], size: int) -> list[int]:
    """Count the words that have each of the lowest bits."""
    return [int(np.count_nonzero(masks & np.uint64(1 << bit))) for bit in range(size)]
