"""Rows of a graph that is laid out by label: its vertices are numbered, their rows counted, then written."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.label_rows import KeptEdges, LabelRows, NewArray, Roles
from longwall.kernels.jit.compile import compiled

LEAST_ARCS = 1 << 19  # of a piece of work, for with 16 threads a piece waits 2 ms
_PARTS = 8  # pieces for each thread

Array = NDArray[Any]


@dataclass(frozen=True)
class _Vertices:
    """The vertices of the new graph: those of the data graph in their roles.

    Attributes
    ----------
    kind : uint8[n]
        Of each vertex of the data graph; see `Roles`.
    place : uint32[n]
        Its number in the first of its roles; those in its other roles follow.
    origin : int64[new vertices]
        The vertex of the data graph.
    role : int16[new vertices]
    final : uint32[numbers]
        What becomes of each number: vertices without an edge are left out.
    """

    kind: Array
    place: Array
    origin: Array
    role: Array
    final: Array


def rows_by_label(
    device: CpuDevice,
    graph: GraphArrays,
    roles: Roles,
    kept: KeptEdges,
    *,
    sliced: bool,
    new_array: NewArray,
    edge_labels: NDArray[np.int32] | None = None,
) -> LabelRows:
    """Make rows by label."""
    vertices = _numbered(graph, roles, sliced)
    work = _Work(device.workers, graph, roles, kept, edge_labels)
    slices = work.count(vertices)
    vertices, slices, indptr = _without_alone(vertices, slices)
    number, size = len(slices), int(indptr[-1]) + 1  # with a place for what is left out
    indices = new_array(size, np.dtype(np.uint32))
    new_labels = np.empty(1, np.int32) if edge_labels is None else new_array(size, np.dtype(np.int32))
    split = np.empty(number, np.int64)
    work.fill(vertices, (slices, indptr, indices, split), new_labels, sliced)
    degrees = np.diff(indptr)
    ends = indptr[np.searchsorted(vertices.role, np.arange(1, slices.shape[1]))]
    found = LabelRows(
        origin=vertices.origin,
        labels=graph.labels if graph.labels.size != graph.num_vertices else graph.labels[vertices.origin],
        slices=slices.reshape(-1) if sliced else None,
        indptr=indptr,
        split=split,
        indices=indices[:-1],
        edge_labels=None if edge_labels is None else new_labels[:-1],
        role_arcs=tuple(ends.tolist()),
        max_degree=int(degrees.max(initial=0)),
        max_out_degree=int((split - indptr[:-1]).max(initial=0)),
        sum_degree_squared=int(np.square(degrees.astype(np.float64)).sum()),
        capacity=0,
        fetch=None,
    )
    arrays = (getattr(found, name) for name in ("origin", "labels", "slices", "indptr", "split", "indices"))
    return found._replace(capacity=sum(array.nbytes for array in arrays if array is not None))


def _numbered(graph: GraphArrays, roles: Roles, sliced: bool) -> _Vertices:
    """Number the vertices of the new graph."""
    n, kinds = graph.num_vertices, len(roles.times)
    kind, place, sizes = np.full(n, kinds - 1, np.uint8), np.zeros(n, np.uint32), np.zeros(kinds, np.int64)
    if kinds == 1:
        sizes[0] = n
    else:
        find_kinds(graph.labels, roles.labels, kind, sizes)
    number = int((sizes * roles.times).sum())
    origin, role = np.empty(number, np.int64), np.empty(number, np.int16)
    following = np.cumsum(sizes * roles.times) - sizes * roles.times if sliced else np.zeros(1, np.int64)
    number_roles(kind, roles.times, roles.first_role, sliced, following, place, origin, role)
    return _Vertices(kind, place, origin, role, np.arange(number, dtype=np.uint32))


def _without_alone(vertices: _Vertices, slices: Array) -> tuple[_Vertices, Array, Array]:
    """Leave vertices without a neighbour out; return the others, their slices, and where their rows begin."""
    number = int(np.count_nonzero(slices[:, -1]))
    origin, role, final = np.empty(number, np.int64), np.empty(number, np.int16), np.empty(len(slices), np.uint32)
    kept, indptr = np.empty((number, slices.shape[1]), np.uint32), np.zeros(number + 1, np.int64)
    leave_out(vertices.origin, vertices.role, slices, origin, role, final, kept, indptr)
    return _Vertices(vertices.kind, vertices.place, origin, role, final), kept, indptr


class _Work:
    """What the threads of the host do for a layout."""

    def __init__(
        self, workers: int, graph: GraphArrays, roles: Roles, kept: KeptEdges, edge_labels: NDArray[np.int32] | None
    ):
        labels = np.zeros(1, np.int32) if edge_labels is None else edge_labels
        self._workers, self._labelled = workers, edge_labels is not None
        self._graph, self._first_role, self._kept = (*graph.rows, labels), roles.first_role, kept
        self._edges = kept.labels, kept.allowed

    def count(self, vertices: _Vertices) -> Array:
        """Return uint32[vertices, roles + 1]: how many neighbours in roles before each a vertex has, and all."""
        roles, shape = self._kept.allowed.shape[1:], (len(self._first_role) - 1, len(self._kept.labels) + 1)
        slices = np.zeros((len(vertices.origin), roles[0] + 1), np.uint32)
        which = vertices.kind, vertices.origin, vertices.role, self._first_role

        def work(first: int, last: int) -> None:
            capacity = np.zeros(shape, np.int64), np.zeros(roles, np.int64)
            count_rows(*self._graph, *which, *self._edges, first, last, *capacity, slices)

        self._each_part(vertices.origin, work)
        return slices

    def fill(self, vertices: _Vertices, rows: tuple[Array, ...], edge_labels: Array, sliced: bool) -> None:
        """Write `indices`, `split` and the labels of edges; the vertices left out are gone."""
        simple = sliced and not self._labelled  # then roles have one label each, and are the kinds
        numbers, rules = vertices.place, np.zeros((1, 1), np.int64)
        if simple:
            rules = np.pad(self._kept.allowed[:, :, 0].astype(np.int64), ((0, 0), (0, 1)))
            numbers = vertices.final[vertices.place] if len(vertices.final) else vertices.place
        given = vertices.kind, vertices.place, vertices.origin, vertices.role, self._first_role, vertices.final

        def work(first: int, last: int) -> None:
            cursor = np.zeros(rows[0].shape[1], np.int64)
            if simple:
                which = vertices.kind, numbers, vertices.origin, vertices.role, rules
                fill_slices(*self._graph[:3], *which, first, last, cursor, *rows)
                return
            capacity = np.zeros(self._kept.allowed.shape[1:], np.int64)
            fill_rows(  # type: ignore[call-arg]
                *self._graph, *given, *self._edges, first, last, capacity, sliced, cursor, *rows, edge_labels
            )

        self._each_part(vertices.origin, work)

    def _each_part(self, origin: Array, work: Callable[[int, int], None]) -> None:
        """Call a function for every range of the new vertices."""
        arcs = np.cumsum(np.diff(self._graph[0])[origin])
        total = int(arcs[-1]) if len(arcs) else 0
        at_once = max(LEAST_ARCS, total // (_PARTS * self._workers))
        cuts = np.searchsorted(arcs, range(0, total, at_once), side="left")
        parts = list(pairwise(sorted({0, *cuts.tolist(), len(arcs)})))
        if len(parts) <= 1:
            for part in parts:
                work(*part)
            return
        with ThreadPoolExecutor(min(self._workers, len(parts))) as pool:
            for done in [pool.submit(work, *part) for part in parts]:
                done.result()


@compiled("i4[::1], i4[::1], u1[::1], i8[::1]")
def find_kinds(labels: Any, distinct: Any, kind: Any, sizes: Any) -> None:
    """Find the kind of each vertex, and count the vertices of each."""
    for v in range(labels.size):
        found = distinct.size
        for number in range(distinct.size):
            if labels[v] == distinct[number]:
                found = number
        kind[v] = found
        sizes[found] += 1


@compiled("u1[::1], i8[::1], i8[::1], b1, i8[::1], u4[::1], i8[::1], i2[::1]")
def number_roles(
    kind: Any, times: Any, first_role: Any, sliced: bool, following: Any, place: Any, origin: Any, role: Any
) -> None:
    """Number the vertices in their roles, kind by kind or in the order of ids, from ``following`` on."""
    for v in range(kind.size):
        k = kind[v]
        counter = k if sliced else 0
        if times[k]:
            at = following[counter]
            place[v] = at
            for copy in range(times[k]):
                origin[at + copy] = v
                role[at + copy] = first_role[k] + copy
            following[counter] = at + times[k]


@compiled("i8[::1], i2[::1], u4[:,::1], i8[::1], i2[::1], u4[::1], u4[:,::1], i8[::1]")
def leave_out(
    origin: Any, role: Any, slices: Any, kept_origin: Any, kept_role: Any, final: Any, kept: Any, indptr: Any
) -> None:
    """Copy what belongs to vertices with neighbours, which ``final`` numbers; add up the lengths of their rows."""
    at, last = 0, slices.shape[1] - 1
    for v in range(origin.size):
        final[v] = at
        if slices[v, last]:
            kept_origin[at] = origin[v]
            kept_role[at] = role[v]
            for r in range(last + 1):
                kept[at, r] = slices[v, r]
            indptr[at + 1] = indptr[at] + slices[v, last]
            at += 1


@compiled
def edge_kind_of(label: int, labels: NDArray[np.int32]) -> int:
    """Return the number of a label of an edge."""
    for number in range(labels.size):
        if labels[number] == label:
            return number
    return labels.size


@compiled
def kept_to(allowed: Any, role: int, larger: int, kept: Any) -> None:
    """Set ``kept[r, label]`` to whether edges to vertices in role r are kept: to those of larger ids, or of smaller."""
    for r in range(kept.shape[0]):
        for edge_kind in range(kept.shape[1]):
            rule = allowed[role, r, edge_kind]
            kept[r, edge_kind] = rule == 1 or rule == 3 - larger


@compiled(
    "i8[::1], u4[::1], i8[::1], i4[::1], u1[::1], i8[::1], i2[::1], i8[::1], i4[::1], i1[:,:,::1], i8, i8, "
    "i8[:,::1], i8[:,::1], u4[:,::1]"
)
def count_rows(
    indptr: Any, indices: Any, halves: Any, edge_labels: Any, kind: Any, origin: Any, role: Any, first_role: Any,
    labels: Any, allowed: Any, first: int, last: int, found: Any, kept: Any, slices: Any,
) -> None:  # fmt: skip
    """Count the neighbours of the vertices first to last - 1 in roles up to r, into ``slices[v, r + 1]``.

    Nothing branches on a label: those of neighbours are at random.
    """
    for v in range(first, last):
        u = origin[v]
        for larger in range(2):
            kept_to(allowed, role[v], larger, kept)
            found[:] = 0
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                edge_kind = edge_kind_of(edge_labels[arc], labels) if labels.size else 0
                found[kind[indices[arc]], edge_kind] += 1
            for k in range(first_role.size - 1):
                for r in range(first_role[k], first_role[k + 1]):
                    for edge_kind in range(kept.shape[1]):
                        slices[v, r + 1] += found[k, edge_kind] * kept[r, edge_kind]
        for r in range(kept.shape[0]):
            slices[v, r + 1] += slices[v, r]


@compiled(
    "i8[::1], u4[::1], i8[::1], u1[::1], u4[::1], i8[::1], i2[::1], i8[:,::1], i8, i8, i8[::1], u4[:,::1], "
    "i8[::1], u4[::1], i8[::1]"
)
def fill_slices(
    indptr: Any, indices: Any, halves: Any, kind: Any, numbers: Any, origin: Any, role: Any, rules: Any,
    first: int, last: int, cursor: Any, slices: Any, new_indptr: Any, new_indices: Any, split: Any,
) -> None:  # fmt: skip
    """Do as `fill_rows` where rows have slices and edges no labels: a vertex of kind k is in role k, or in none."""
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


@compiled(
    "i8[::1], u4[::1], i8[::1], i4[::1], u1[::1], u4[::1], i8[::1], i2[::1], i8[::1], u4[::1], i4[::1], "
    "i1[:,:,::1], i8, i8, i8[:,::1], b1, i8[::1], u4[:,::1], i8[::1], u4[::1], i8[::1], i4[::1]"
)
def fill_rows(
    indptr: Any, indices: Any, halves: Any, edge_labels: Any, kind: Any, place: Any, origin: Any, role: Any,
    first_role: Any, final: Any, labels: Any, allowed: Any, first: int, last: int, kept: Any, sliced: bool,
    cursor: Any, slices: Any, new_indptr: Any, new_indices: Any, split: Any, new_edge_labels: Any,
) -> None:  # fmt: skip
    """Write the rows of the vertices first to last - 1, whose slices are known; what is not kept has the last place."""
    nowhere = new_indices.size - 1
    for v in range(first, last):
        u = origin[v]
        for r in range(cursor.size):
            cursor[r] = new_indptr[v] + (slices[v, r] if sliced else 0)
        for larger in range(2):
            kept_to(allowed, role[v], larger, kept)
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                x = indices[arc]
                edge_kind = edge_kind_of(edge_labels[arc], labels) if labels.size else 0
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
