"""A data graph as a labelled pattern reads it: the vertices and edges that it can match, neighbours by label.

A vertex of the new graph is a vertex of the data graph in a role: that of a label or, for cliques, that of one vertex
of the pattern. Where vertices are numbered role by role, each row is cut into slices, one for a role, sorted by id
inside; frequent patterns lay adjacency out by edge type in the same way (`typed_graph.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.engine import CpuDevice
from longwall.kernels.cpu.label_rows import rows_by_label
from longwall.kernels.interface.graph_arrays import GraphArrays, LabelSlices
from longwall.kernels.interface.label_rows import KeptEdges, LabelRows, RoleNumbers, RowArrays
from longwall.storage.concurrency import core_count
from longwall.storage.graph.derived.copied_later import CopiedLater
from longwall.storage.graph.graph import Graph, NewArray
from longwall.storage.lazy_kernel import lazy_kernel
from longwall.storage.memory.reservations import MemoryBudget, Reservation

ANY = -1
"""In place of a label of a vertex or an edge: any. A role of any label has the vertices that no other role has."""
_VERTEX_BYTES = 68  # of a vertex while the graph is made, beside its slices, twice where some are left out
_WHAT = "the graph by label"

MakeRows = Callable[[RoleNumbers, KeptEdges, bool], LabelRows]
"""Makes what makes the rows of vertices; whether they have slices comes last."""


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
    made, reserved, _ = lay_out_with(_on_host(graph), graph, layout, host, new_array)
    return made, reserved


def lay_out_with(
    make_rows: MakeRows, graph: Graph, layout: LabelLayout, host: MemoryBudget, new_array: NewArray
) -> tuple[Graph, Reservation, RowArrays]:
    """Make the graph of a layout as `lay_out`; return its rows as an engine's kernels read them, too."""
    reserved = host.reserve(vertex_bytes(graph, layout), _WHAT)
    try:
        vertices = _number(graph, layout)
        kept = _kept(layout, graph.edge_labels is not None)
        making = make_rows(vertices, kept, layout.sliced)
        vertices, slices, indptr = _without_alone(vertices, making.count())
        number, labelled = len(slices), graph.edge_labels is not None
        size = int(indptr[-1]) + 1  # with a place for what is left out
        reserved.resize(reserved.size + (8 if labelled else 4) * size, _WHAT)
        rows = RowArrays(
            labels=np.zeros(1, np.int32) if graph.labels is None else graph.labels[vertices.origin],
            slices=slices,
            indptr=indptr,
            split=np.empty(number, np.int64),
            indices=new_array(size, np.dtype(np.uint32)),
            edge_labels=np.empty(size if labelled else 1, np.int32),
        )
        there, copy = making.fill(vertices, rows)
        made = _made(graph, layout, vertices, rows)
        made = made if copy is None else CopiedLater.of(made, copy)
    except BaseException:
        reserved.release()
        raise
    reserved.resize(made.nbytes, _WHAT)
    return made, reserved, there


def vertex_bytes(graph: Graph, layout: LabelLayout) -> int:
    """Return the bytes that the vertices of a layout take at most while its graph is made."""
    n = graph.num_vertices
    number = sum(layout.roles.count(label) * graph.stats.label_counts.get(label, 0) for label in {*layout.roles})
    if ANY in layout.roles:
        number = n
    return 16 * n + number * (8 * (len(layout.roles) + 1) + _VERTEX_BYTES)


def _on_host(graph: Graph) -> MakeRows:
    """Make rows on all cores."""
    stats = graph.stats
    labels = np.zeros(1, np.int32)  # those of vertices are in their numbers
    arrays = GraphArrays(graph.indptr, graph.indices, graph.split, labels, stats.max_degree, stats.max_out_degree)

    def make(vertices: RoleNumbers, kept: KeptEdges, sliced: bool) -> LabelRows:
        device = CpuDevice(core_count())
        return rows_by_label(device, arrays, vertices, kept, sliced=sliced, edge_labels=graph.edge_labels)

    return make


def _number(graph: Graph, layout: LabelLayout) -> RoleNumbers:
    """Number the vertices of the new graph."""
    distinct, n = list(dict.fromkeys(layout.roles)), graph.num_vertices
    times = np.array([*(layout.roles.count(label) for label in distinct), 0], np.int64)
    first_role = np.concatenate([[0], np.cumsum(times)])
    rest = len(distinct) - (ANY in distinct)
    kind, place, sizes = np.full(n, rest, np.uint8), np.zeros(n, np.uint32), np.zeros(len(times), np.int64)
    if graph.labels is None:
        sizes[rest] = n
    else:
        _find_kinds(graph.labels, np.array(distinct[:rest], np.int32), rest, kind, sizes)
    number = int((sizes * times).sum())
    origin, role = np.empty(number, np.int64), np.empty(number, np.int16)
    following = np.cumsum(sizes) - sizes if layout.sliced else np.zeros(1, np.int64)
    _number_roles(kind, times, first_role, layout.sliced, following, place, origin, role)
    return RoleNumbers(kind, place, origin, role, first_role, np.arange(number, dtype=np.uint32))


@lazy_kernel
def _find_kinds(labels: Any, distinct: Any, rest: int, kind: Any, sizes: Any) -> None:
    """Find the kind of each vertex, and count the vertices of each."""
    for v in range(labels.size):
        found = rest
        for number in range(distinct.size):
            if labels[v] == distinct[number]:
                found = number
        kind[v] = found
        sizes[found] += 1


@lazy_kernel
def _number_roles(
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


def _without_alone(
    vertices: RoleNumbers, slices: NDArray[np.uint32]
) -> tuple[RoleNumbers, NDArray[np.uint32], NDArray[np.int64]]:
    """Leave vertices without a neighbour out; return the others, their slices, and where their rows begin."""
    number = int(np.count_nonzero(slices[:, -1]))
    there = vertices._replace(
        origin=np.empty(number, np.int64), role=np.empty(number, np.int16), final=np.empty(len(slices), np.uint32)
    )
    kept, indptr = np.empty((number, slices.shape[1]), np.uint32), np.zeros(number + 1, np.int64)
    _leave_out(vertices.origin, vertices.role, slices, there.origin, there.role, there.final, kept, indptr)
    return there, kept, indptr


@lazy_kernel
def _leave_out(
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


def _kept(layout: LabelLayout, labelled: bool) -> KeptEdges:
    labels = sorted({label for _, _, label in layout.edges} - {ANY}) if labelled else []
    allowed = np.zeros((len(layout.roles), len(layout.roles), len(labels) + 1), np.int8)
    for first, second, label in layout.edges:
        which = slice(None) if label == ANY or not labelled else labels.index(label)
        one_label = first != second and layout.roles[first] == layout.roles[second]
        allowed[first, second, which], allowed[second, first, which] = (2, 3) if one_label else (1, 1)
    return KeptEdges(np.array(labels, np.int32), allowed)


def _made(
    graph: Graph,
    layout: LabelLayout,
    vertices: RoleNumbers,
    rows: RowArrays,
) -> Graph:
    """Put the graph together, with statistics of its own."""
    indptr, indices, split, slices = rows.indptr, rows.indices[:-1], rows.split, rows.slices
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
        labels=None if graph.labels is None else rows.labels,
        edge_labels=None if graph.edge_labels is None else rows.edge_labels[:-1],
        stats=stats,
        transactions=None,
        transaction_ids=None,
        slices=LabelSlices(layout.roles, tuple(arcs_of), slices.reshape(-1)) if layout.sliced else None,
    )
