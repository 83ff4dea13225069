"""A data graph as a labelled pattern reads it: the vertices and edges that it can match, neighbours by label.

A vertex of the new graph is a vertex of the data graph in a role: that of a label or, for cliques, that of one vertex
of the pattern. Where vertices are numbered role by role, each row is cut into slices, one for a role, sorted by id
inside; frequent patterns lay adjacency out by edge type in the same way (`typed_graph.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import LabelSlices
from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.graph.graph import Graph, NewArray
from longwall.storage.lazy_kernel import lazy_kernel
from longwall.storage.memory.reservations import MemoryBudget, Reservation

ANY = -1
"""In place of a label of a vertex or an edge: any. A role of any label has the vertices that no other role has."""
_LEAST_ARCS, _PARTS = 1 << 19, 8  # of a piece of work, for with 16 threads a piece waits 2 ms; pieces for each core
_VERTEX_BYTES = 68  # of a vertex while the graph is made, beside its slices, twice where some are left out
_WHAT = "the graph by label"


@dataclass(frozen=True)
class LabelLayout:
    """Which vertices and edges of a data graph there are, and how they are numbered.

    Attributes
    ----------
    roles
        The label of each role. A label that stands here several times makes so many vertices of each vertex that has
        it. `ANY` comes last, and once at most.
    edges
        The edges to keep: (role, role, label of the edge or `ANY`), the first role being no larger. Between two roles
        of one label, an edge joins its vertex of the smaller id in the first role and the other one in the second.
    sliced
        Whether vertices are numbered role by role, in the order of ids inside a role: rows have slices then. If not,
        they are numbered in the order of ids.
    """

    roles: tuple[int, ...]
    edges: tuple[tuple[int, int, int], ...]
    sliced: bool = True


class _Numbering(NamedTuple):
    """The vertices of the new graph.

    Attributes
    ----------
    kind : uint8[n]
        Of each vertex of the data graph: which of the distinct labels of the roles it has; one more for none, which has
        no role.
    place : uint32[n]
        Its number in the first of its roles; those in its other roles follow.
    origin : int64[new vertices]
        The vertex of the data graph.
    role : int16[new vertices]
    first_role : int64[kinds + 2]
        The roles of each kind.
    final : uint32[numbers]
        What becomes of each number: vertices without an edge are left out.
    """

    kind: NDArray[np.uint8]
    place: NDArray[np.uint32]
    origin: NDArray[np.int64]
    role: NDArray[np.int16]
    first_role: NDArray[np.int64]
    final: NDArray[np.uint32]

    def without(self, alone: NDArray[np.bool_]) -> "_Numbering":
        """Leave vertices out."""
        kept = ~alone
        final = (np.cumsum(kept) - 1).astype(np.uint32)
        return self._replace(origin=self.origin[kept], role=self.role[kept], final=final)


def lay_out(graph: Graph, layout: LabelLayout, host: MemoryBudget, new_array: NewArray) -> tuple[Graph, Reservation]:
    """Make the graph of a layout, on all cores.

    Parameters
    ----------
    graph
        A data graph, with labels unless all roles are of any label.
    layout
        What to make of it.
    host
        Budget of the result, and of what is needed for a moment.
    new_array
        Makes the array of the neighbours.

    Returns
    -------
    Graph
        Without vertices that have no edge there; ids, names and the hash are those of the data graph.
    Reservation
        Of its arrays.

    Raises
    ------
    BudgetExceeded
        If there is no room for it.
    """
    n, roles = graph.num_vertices, len(layout.roles)
    number = sum(layout.roles.count(label) * graph.stats.label_counts.get(label, 0) for label in {*layout.roles})
    if ANY in layout.roles:
        number = n
    slices = 4 * (roles + 1)
    reserved = host.reserve(16 * n + number * (2 * slices + _VERTEX_BYTES), _WHAT)
    try:
        vertices = _number(graph, layout)
        number = len(vertices.origin)
        kept = _kept(layout, graph.edge_labels is not None)
        counts = np.zeros((number, roles + 1), np.uint32)
        counting = _Arrays(graph, vertices, kept, layout.sliced)
        counting.each_part(lambda first, last: counting.count(first, last, counts))
        np.cumsum(counts, axis=1, out=counts)
        alone = counts[:, -1] == 0
        if alone.any():
            vertices, counts = vertices.without(alone), counts[~alone]
            number = len(counts)
        arrays = _Arrays(graph, vertices, kept, layout.sliced)
        indptr = np.zeros(number + 1, np.int64)
        np.cumsum(counts[:, -1], out=indptr[1:])
        labelled = graph.edge_labels is not None
        size = int(indptr[-1]) + 1  # with a place for what is left out
        reserved.resize(reserved.size + (8 if labelled else 4) * size, _WHAT)
        indices, edge_labels = new_array(size, np.dtype(np.uint32)), np.empty(size if labelled else 1, np.int32)
        split = np.empty(number, np.int64)
        arrays.each_part(lambda first, last: arrays.fill(first, last, counts, indptr, indices, split, edge_labels))
        rows = indptr, indices[:-1], split
        made = _made(graph, layout, vertices, rows, edge_labels[:-1] if labelled else None, counts)
    except BaseException:
        reserved.release()
        raise
    reserved.resize(made.nbytes, _WHAT)
    return made, reserved


def _number(graph: Graph, layout: LabelLayout) -> _Numbering:
    """Number the vertices of the new graph."""
    distinct = list(dict.fromkeys(layout.roles))
    times = np.array([*(layout.roles.count(label) for label in distinct), 0], np.int64)
    first_role = np.concatenate([[0], np.cumsum(times)])
    rest = len(distinct) - (ANY in distinct)
    kind = np.full(graph.num_vertices, rest, np.uint8)
    place = np.zeros(graph.num_vertices, np.uint32)
    for number, label in enumerate(distinct):
        if label != ANY:
            assert graph.labels is not None
            kind[graph.labels == label] = number
    if layout.sliced:
        members = [np.flatnonzero(kind == number) for number in range(len(distinct))]
        sizes = np.array([len(those) for those in members], np.int64)
        origin = np.concatenate(members)
        place[origin] = np.arange(len(origin), dtype=np.uint32)
        role = np.repeat(np.arange(len(sizes), dtype=np.int16), sizes)
    else:
        copies = times[kind]
        ends = np.cumsum(copies)
        place[1:] = ends[:-1]
        origin = np.repeat(np.arange(graph.num_vertices), copies)
        role = (np.arange(len(origin)) - place[origin] + first_role[kind[origin]]).astype(np.int16)
    return _Numbering(kind, place, origin, role, first_role, np.arange(len(origin), dtype=np.uint32))


class _Kept(NamedTuple):
    """The edges of a layout, as kernels look them up.

    Attributes
    ----------
    labels : int32[k]
        Labels of edges that are distinguished; all others are number k.
    allowed : int8[roles, roles, k + 1]
        1: edges with such ends and such a label are kept; 2: if the first end has the smaller id; 3: the larger one.
    """

    labels: NDArray[np.int32]
    allowed: NDArray[np.int8]


def _kept(layout: LabelLayout, labelled: bool) -> _Kept:
    labels = sorted({label for _, _, label in layout.edges} - {ANY}) if labelled else []
    allowed = np.zeros((len(layout.roles), len(layout.roles), len(labels) + 1), np.int8)
    for first, second, label in layout.edges:
        which = slice(None) if label == ANY or not labelled else labels.index(label)
        one_label = first != second and layout.roles[first] == layout.roles[second]
        allowed[first, second, which], allowed[second, first, which] = (2, 3) if one_label else (1, 1)
    return _Kept(np.array(labels, np.int32), allowed)


class _Arrays:
    """The arguments of the kernels, and their threads."""

    def __init__(self, graph: Graph, vertices: _Numbering, kept: _Kept, sliced: bool):
        labels = np.zeros(1, np.int32) if graph.edge_labels is None else graph.edge_labels
        self._sliced = sliced
        self._rows, self._vertices, self._kept = (graph.indptr, graph.indices, graph.split, labels), vertices, kept
        self._rules: NDArray[np.int64] | None = None
        if sliced and graph.edge_labels is None:  # the roles have one label each, and are the kinds
            self._rules = np.pad(kept.allowed[:, :, 0].astype(np.int64), ((0, 0), (0, 1)))
            self._numbers = vertices.final[vertices.place] if len(vertices.final) else vertices.place
        arcs = np.cumsum(np.diff(graph.indptr)[vertices.origin])
        total = int(arcs[-1]) if len(arcs) else 0
        at_once = max(_LEAST_ARCS, total // (_PARTS * core_count()))
        cuts = np.searchsorted(arcs, range(0, total, at_once), side="left")
        self._bounds = sorted({0, *cuts.tolist(), len(arcs)})

    def each_part(self, work: Callable[[int, int], None]) -> None:
        """Call a function for every range of the new vertices."""
        parts = list(pairwise(self._bounds))
        if len(parts) <= 1:
            for part in parts:
                work(*part)
            return
        for _ in map_ordered(lambda part: work(*part), parts, min(core_count(), len(parts))):
            pass

    def count(self, first: int, last: int, counts: NDArray[np.uint32]) -> None:
        """Count the neighbours of a range of vertices, by role."""
        kind, _, origin, role, first_role, _ = self._vertices
        found = np.zeros((len(first_role) - 1, len(self._kept.labels) + 1), np.int64)
        _count_rows(*self._rows, kind, origin, role, first_role, *self._kept, first, last, found, self._room(), counts)

    def fill(self, first: int, last: int, counts: NDArray[np.uint32], *out: NDArray[Any]) -> None:
        """Write the rows of a range of vertices."""
        cursor = np.zeros(counts.shape[1], np.int64)
        if self._rules is not None:
            kind, _, origin, role, *_ = self._vertices
            of_row = kind, self._numbers, origin, role, self._rules
            _fill_slices(*self._rows[:3], *of_row, first, last, counts, cursor, *out[:3])
            return
        arguments = (*self._rows, *self._vertices, *self._kept, first, last, self._room(), counts, self._sliced, cursor)
        _fill_rows(*arguments, *out)

    def _room(self) -> NDArray[np.int64]:
        """Room for which edges of a vertex are kept."""
        return np.zeros(self._kept.allowed.shape[1:], np.int64)


def _made(
    graph: Graph,
    layout: LabelLayout,
    vertices: _Numbering,
    rows: tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64]],
    edge_labels: NDArray[np.int32] | None,
    slices: NDArray[np.uint32],
) -> Graph:
    """Put the graph together, with statistics of its own."""
    indptr, indices, split = rows
    degrees = slices[:, -1].astype(np.int64)
    number, arcs = len(degrees), len(indices)
    there = number > 0
    arcs_of = indptr[np.searchsorted(vertices.role, np.arange(1, len(layout.roles) + 1))].tolist()
    stats = replace(
        graph.stats,
        num_vertices=number,
        num_edges=arcs // 2,
        max_degree=int(degrees.max()) if there else 0,
        max_out_degree=int((split - indptr[:-1]).max()) if there else 0,
        mean_degree=arcs / max(number, 1),
        sum_degree_squared=int(np.square(degrees.astype(np.float64)).sum()),
    )
    return replace(
        graph,
        indptr=indptr,
        indices=indices,
        split=split,
        original_ids=graph.original_ids[vertices.origin],
        labels=None if graph.labels is None else graph.labels[vertices.origin],
        edge_labels=edge_labels,
        stats=stats,
        transactions=None,
        transaction_ids=None,
        slices=LabelSlices(layout.roles, tuple(arcs_of), slices.reshape(-1)) if layout.sliced else None,
    )


@lazy_kernel
def _edge_kind(label: int, labels: NDArray[np.int32]) -> int:
    """Return the number of a label of an edge."""
    for number in range(labels.size):
        if labels[number] == label:
            return number
    return labels.size


@lazy_kernel
def _rules(allowed: Any, role: int, larger: int, kept: Any) -> None:
    """Set ``kept[r, label]`` to whether edges to vertices in role r are kept: to those of larger ids, or of smaller."""
    for r in range(kept.shape[0]):
        for edge_kind in range(kept.shape[1]):
            rule = allowed[role, r, edge_kind]
            kept[r, edge_kind] = rule == 1 or rule == 3 - larger


@lazy_kernel
def _count_rows(
    indptr: Any, indices: Any, halves: Any, edge_labels: Any, kind: Any, origin: Any, role: Any, first_role: Any,
    labels: Any, allowed: Any, first: int, last: int, found: Any, kept: Any, counts: Any,
) -> None:  # fmt: skip
    """Count the neighbours of the vertices first to last - 1 that are in role r, into ``counts[v, r + 1]``.

    Nothing branches on a label: those of neighbours are at random.
    """
    for v in range(first, last):
        u = origin[v]
        for larger in range(2):
            _rules(allowed, role[v], larger, kept)
            found[:] = 0
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                edge_kind = _edge_kind(edge_labels[arc], labels) if labels.size else 0
                found[kind[indices[arc]], edge_kind] += 1
            for k in range(first_role.size - 1):
                for r in range(first_role[k], first_role[k + 1]):
                    for edge_kind in range(kept.shape[1]):
                        counts[v, r + 1] += found[k, edge_kind] * kept[r, edge_kind]


@lazy_kernel
def _fill_slices(
    indptr: Any, indices: Any, halves: Any, kind: Any, numbers: Any, origin: Any, role: Any, rules: Any,
    first: int, last: int, slices: Any, cursor: Any, new_indptr: Any, new_indices: Any, split: Any,
) -> None:  # fmt: skip
    """Do as `_fill_rows` where rows have slices and edges no labels: a vertex of kind k is in role k, or in none."""
    nowhere = new_indices.size - 1
    for v in range(first, last):
        u, own = origin[v], role[v]
        for r in range(cursor.size - 1):
            cursor[r] = new_indptr[v] + slices[v, r]
        for larger in range(2):
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                x = indices[arc]
                k = kind[x]
                keep = rules[own, k]
                at = cursor[k] if keep else nowhere
                new_indices[at] = numbers[x]
                cursor[k] += keep
            if not larger:
                split[v] = cursor[own]


@lazy_kernel
def _fill_rows(
    indptr: Any, indices: Any, halves: Any, edge_labels: Any, kind: Any, place: Any, origin: Any, role: Any,
    first_role: Any, final: Any, labels: Any, allowed: Any, first: int, last: int, kept: Any, slices: Any,
    sliced: bool, cursor: Any, new_indptr: Any, new_indices: Any, split: Any, new_edge_labels: Any,
) -> None:  # fmt: skip
    """Write the rows of the vertices first to last - 1, whose slices are known; what is not kept has the last place."""
    nowhere = new_indices.size - 1
    for v in range(first, last):
        u = origin[v]
        for r in range(cursor.size):
            cursor[r] = new_indptr[v] + (slices[v, r] if sliced else 0)
        for larger in range(2):
            _rules(allowed, role[v], larger, kept)
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                x = indices[arc]
                edge_kind = _edge_kind(edge_labels[arc], labels) if labels.size else 0
                number = place[x]
                for r in range(first_role[kind[x]], first_role[kind[x] + 1]):
                    keep = kept[r, edge_kind]
                    row = r if sliced else 0
                    at = cursor[row] if keep else nowhere
                    new_indices[at] = final[number]
                    if edge_labels.size > 1:
                        new_edge_labels[at] = edge_labels[arc]
                    cursor[row] += keep
                    number += np.uint32(1)
            if not larger:  # inside a role, vertices have the order that they have in the data graph
                split[v] = cursor[role[v] if sliced else 0]
