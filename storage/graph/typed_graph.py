"""A data graph by edge types: adjacency lists cut into runs of one type, rare types left out.

An edge type is an edge seen from one end: label of this end, label of the other end, label of the edge. Patterns grow
by types, so what they grow by lies together, and how many neighbours of a type a vertex has is a difference.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.pattern_growth import TypedGraph
from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.system.concurrency import core_count, map_ordered

_ARCS_AT_ONCE = 1 << 20
_ARC_BYTES = 48  # of a block of arcs: the ends' labels, keys, and a sorted copy
_DISTINCT_COPIES = 5  # of what is put together to find what of it is distinct
_TYPE_BYTES = 72  # of an edge type: its labels and keys, of all types and of those that are kept


@dataclass(frozen=True, eq=False)
class EdgeTypes:
    """The edge types of a graph, sorted; labels are ranks among the labels of the graph.

    Attributes
    ----------
    source_label, target_label, edge_label : int32[t]
        Label of this end, of the other end, and of the edge.
    vertex_labels, edge_labels : int64[number of labels]
        Rank to label; a graph without labels has the one label -1.
    """

    source_label: NDArray[np.int32]
    target_label: NDArray[np.int32]
    edge_label: NDArray[np.int32]
    vertex_labels: NDArray[np.int64]
    edge_labels: NDArray[np.int64]

    def keys(
        self, source_label: NDArray[np.int32], target_label: NDArray[np.int32], edge_label: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """A number for each type, in the order of types."""
        pairs = source_label.astype(np.int64) * len(self.vertex_labels) + target_label
        return pairs * len(self.edge_labels) + edge_label

    def find(
        self, source_label: NDArray[np.int32], target_label: NDArray[np.int32], edge_label: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Return the numbers of types; each must be one of the graph's."""
        return np.searchsorted(self.own_keys, self.keys(source_label, target_label, edge_label)).astype(np.int32)

    @cached_property
    def own_keys(self) -> NDArray[np.int64]:
        """`keys` of all types: ascending."""
        return self.keys(self.source_label, self.target_label, self.edge_label)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """A number for the labels of the ends of each type; ascending."""
        return self.source_label.astype(np.int64) * len(self.vertex_labels) + self.target_label

    def selected(self, kept: NDArray[np.bool_]) -> "EdgeTypes":
        """Some of the types; labels keep their ranks."""
        return EdgeTypes(
            self.source_label[kept],
            self.target_label[kept],
            self.edge_label[kept],
            self.vertex_labels,
            self.edge_labels,
        )


class Labels:
    """The labels of a graph as ranks.

    Parameters
    ----------
    graph
        The graph.
    host
        Budget of the ranks and the edge types, until `close`.
    """

    def __init__(self, graph: Graph, host: MemoryBudget):
        self._graph = graph
        self._reserved = host.reserve(24 * graph.num_vertices, "the ranks of labels")
        if graph.labels is None:
            self.values = np.array([-1], np.int64)
            self.ranks = np.zeros(graph.num_vertices, np.int32)
        else:
            self.values = np.unique(graph.labels).astype(np.int64)
            self.ranks = np.searchsorted(self.values, graph.labels).astype(np.int32)
        self.edge_values = np.array([-1], np.int64)
        if graph.edge_labels is not None:
            block, labels = _block(graph, host), graph.edge_labels
            parts = (np.unique(labels[at : at + block]) for at in range(0, len(labels), block))
            self.edge_values = _distinct(parts, host, "edge labels").astype(np.int64)
        self._size = self.ranks.nbytes + self.values.nbytes + self.edge_values.nbytes
        self._reserved.resize(self._size, "the ranks of labels")

    def types(self, host: MemoryBudget) -> EdgeTypes:
        """All edge types of the graph.

        Raises
        ------
        InputError
            If labels are too many to number pairs of them with an edge label.
        BudgetExceeded
            If there is no room for the types.
        """
        graph, workers = self._graph, core_count()
        if len(self.values) ** 2 * len(self.edge_values) >= 2**63:
            raise InputError(
                f"{len(self.values):,} vertex labels and {len(self.edge_values):,} edge labels make more than 2^63 "
                "edge types, which cannot be numbered: merge rare labels"
            )
        block = _block(graph, host)
        with host.reserve(workers * _ARC_BYTES * (block + graph.stats.max_degree), "edge types"):
            parts = map_ordered(lambda part: np.unique(self.keys(*part)), _vertex_ranges(graph, block), workers)
            found = _distinct(parts, host, "edge types")
        self._reserved.resize(self._size + _TYPE_BYTES * len(found), "edge types")
        pair, edge = np.divmod(found, len(self.edge_values))
        source_label, target_label = np.divmod(pair, len(self.values))
        return EdgeTypes(
            source_label.astype(np.int32),
            target_label.astype(np.int32),
            edge.astype(np.int32),
            self.values,
            self.edge_values,
        )

    def keys(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the type of each arc of a range of vertices, as `EdgeTypes.keys` numbers them."""
        graph = self._graph
        begin, end = graph.indptr[first], graph.indptr[last]
        keys = np.repeat(self.ranks[first:last].astype(np.int64), np.diff(graph.indptr[first : last + 1]))
        keys *= len(self.values)
        keys += self.ranks[graph.indices[begin:end]]
        keys *= len(self.edge_values)
        if graph.edge_labels is not None:
            keys += np.searchsorted(self.edge_values, graph.edge_labels[begin:end])
        return keys

    def close(self) -> None:
        """Release the memory."""
        self._reserved.release()


def typed_graph(
    graph: Graph, labels: Labels, types: EdgeTypes, host: MemoryBudget, files: MappedArrays | None = None
) -> TypedGraph:
    """Lay the edges of some types out by type.

    Parameters
    ----------
    graph, labels
        The graph and its labels.
    types
        The types to keep.
    host
        Budget of the result, which stays reserved: `TypedGraph.nbytes` bytes, but for what is in files.
    files
        Makes the arrays with an item for each edge where `host` has no room for them; None: it must have.

    Raises
    ------
    BudgetExceeded
        If there is no room for it.
    """
    n, workers = graph.num_vertices, core_count()
    known = types.own_keys
    block = _block(graph, host)
    size = _ARC_BYTES * (block + graph.stats.max_degree) + 8 * len(known)
    with host.reserve(workers * size, "edge types"):
        # A counter per type for each thread; kernels leave zeros behind.
        counters = [np.zeros(len(known), np.int64) for _ in range(workers)]
        host.charge(16 * (n + 1), "the runs of edges of one type")
        runs, kept = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)

        def numbers(part: tuple[int, int]) -> NDArray[np.int32]:
            keys = labels.keys(*part)
            place = np.searchsorted(known, keys)
            place[place == len(known)] = 0
            return (
                np.where(known[place] == keys, place, -1).astype(np.int32)
                if len(known)
                else np.full(len(keys), -1, np.int32)
            )

        def count(part: tuple[int, int]) -> None:
            scratch = counters.pop()
            _count_runs(graph.indptr, *part, numbers(part), scratch, runs, kept)
            counters.append(scratch)

        for _ in map_ordered(count, _vertex_ranges(graph, block), workers):
            pass
        np.cumsum(runs, out=runs)
        np.cumsum(kept, out=kept)
        more = 12 * int(runs[-1]) + 8 + 4 * int(kept[-1])
        new: Callable[[int, np.dtype[Any]], NDArray[Any]] = np.empty
        if files is not None and more > host.free:
            more, new = 0, files.array
        host.charge(more - 8 * (n + 1), "the edges by type")
        run_types, begins = new(int(runs[-1]), np.dtype(np.int32)), new(int(runs[-1]) + 1, np.dtype(np.int64))
        indices = new(int(kept[-1]), np.dtype(np.uint32))
        begins[-1] = kept[-1]

        def write(part: tuple[int, int]) -> None:
            types_of, scratch = numbers(part), counters.pop()
            _write_runs(
                graph.indptr, graph.indices, *part, types_of, scratch, runs, kept, run_types, begins, indices
            )  # fmt: skip
            counters.append(scratch)

        for _ in map_ordered(write, _vertex_ranges(graph, block), workers):
            pass
    groups = np.zeros(1, np.int32) if graph.transactions is None else graph.transactions
    return TypedGraph(runs, run_types, begins, indices, types.target_label, groups)


def _distinct(parts: Iterable[NDArray[Any]], host: MemoryBudget, what: str) -> NDArray[Any]:
    """What is in some sorted parts, each once, ascending."""
    found: NDArray[Any] = np.empty(0, np.int64)
    waiting: list[NDArray[Any]] = []
    with host.reserve(0, what) as reserved:
        for part in parts:
            waiting.append(part)
            size = sum(len(one) for one in waiting)
            reserved.resize(8 * _DISTINCT_COPIES * (len(found) + size), what)
            if size >= len(found):  # seldom, so that all of it takes no longer than a few times the last
                found, waiting = np.unique(np.concatenate([found, *waiting])), []
        return np.unique(np.concatenate([found, *waiting]))


def _block(graph: Graph, host: MemoryBudget) -> int:
    """Return how many arcs a thread works on at once."""
    return max(min(_ARCS_AT_ONCE, len(graph.indices), host.free // (4 * core_count() * _ARC_BYTES)), 1)


def _vertex_ranges(graph: Graph, block: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of vertices with about `block` arcs each."""
    cuts = np.searchsorted(graph.indptr, range(0, int(graph.indptr[-1]), block), side="left")
    bounds = np.unique([0, *cuts.tolist(), graph.num_vertices]).tolist()
    return pairwise(bounds)


@compiled("i8[::1], i8, i8, i4[::1], i8[::1], i8[::1], i8[::1]")
def _count_runs(
    indptr: NDArray[np.int64],
    first: int,
    last: int,
    types: NDArray[np.int32],
    counts: NDArray[np.int64],
    runs: NDArray[np.int64],
    kept: NDArray[np.int64],
) -> None:
    """Count the runs and the edges that are kept, of every vertex v, into entries v + 1."""
    start = indptr[first]
    for v in range(first, last):
        for s in range(indptr[v] - start, indptr[v + 1] - start):
            if types[s] >= 0:
                kept[v + 1] += 1
                if counts[types[s]] == 0:
                    runs[v + 1] += 1
                counts[types[s]] += 1
        for s in range(indptr[v] - start, indptr[v + 1] - start):
            if types[s] >= 0:
                counts[types[s]] = 0


@compiled
def _sort(values: NDArray[np.int32]) -> None:
    """Sort in place, by a heap: kernels cannot allocate what NumPy's sort takes."""
    size = values.size
    for step in range(size + size // 2):
        end, at = size, size // 2 - 1 - step
        if at < 0:
            end, at = size + size // 2 - 1 - step, 0
            values[0], values[end] = values[end], values[0]
        child = 2 * at + 1
        while child < end:
            if child + 1 < end and values[child + 1] > values[child]:
                child += 1
            if values[child] <= values[at]:
                break
            values[at], values[child] = values[child], values[at]
            at, child = child, 2 * child + 1


@compiled("i8[::1], u4[::1], i8, i8, i4[::1], i8[::1], i8[::1], i8[::1], i4[::1], i8[::1], u4[::1]")
def _write_runs(
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.uint32],
    first: int,
    last: int,
    types: NDArray[np.int32],
    counts: NDArray[np.int64],
    runs: NDArray[np.int64],
    kept: NDArray[np.int64],
    run_types: NDArray[np.int32],
    begins: NDArray[np.int64],
    indices: NDArray[np.uint32],
) -> None:
    """Write the runs of every vertex; `runs` and `kept` are prefix sums."""
    start = indptr[first]
    for v in range(first, last):
        run = runs[v]
        for s in range(indptr[v] - start, indptr[v + 1] - start):
            if types[s] >= 0:
                if counts[types[s]] == 0:
                    run_types[run] = types[s]
                    run += 1
                counts[types[s]] += 1
        _sort(run_types[runs[v] : runs[v + 1]])
        place = kept[v]
        for r in range(runs[v], runs[v + 1]):
            begins[r] = place
            size = counts[run_types[r]]
            counts[run_types[r]] = place
            place += size
        for s in range(indptr[v] - start, indptr[v + 1] - start):
            if types[s] >= 0:
                indices[counts[types[s]]] = neighbours[start + s]
                counts[types[s]] += 1
        for r in range(runs[v], runs[v + 1]):
            counts[run_types[r]] = 0
