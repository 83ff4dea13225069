"""A data graph as a labelled pattern reads it: the vertices and edges that it can match, neighbours by label.

A vertex of the new graph is a vertex of the data graph in a role: that of a label or, for cliques, that of one vertex
of the pattern. Where vertices are numbered role by role, each row is cut into slices, one for a role, sorted by id
inside; frequent patterns lay adjacency out by edge type in the same way (`typed_graph.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.cpu.label_rows import rows_by_label
from longwall.kernels.interface.graph_arrays import GraphArrays, LabelSlices
from longwall.kernels.interface.label_rows import KeptEdges, LabelRows, Roles
from longwall.storage.graph.derived.copied_later import CopiedLater
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import NewArray
from longwall.storage.graph.stats import GraphStats
from longwall.storage.memory.reservations import MemoryBudget, Reservation
from longwall.storage.system.concurrency import core_count

ANY = -1
"""In place of a label of a vertex or an edge: any. A role of any label has the vertices that no other role has."""
_VERTEX_BYTES = 68  # of a vertex while the graph is made, beside its slices, twice where some are left out
_WHAT = "the graph by label"


@dataclass(frozen=True)
class LabelLayout:
    """Which vertices and edges of a data graph there are, and how they are numbered.

    Attributes
    ----------
    roles
        The label of each role. A label that stands here several times makes as many vertices of each vertex that has
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
    reserved = host.reserve(vertex_bytes(graph, layout), _WHAT)

    def reserved_array(length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        reserved.resize(reserved.size + length * dtype.itemsize, _WHAT)
        return new_array(length, dtype) if dtype == np.uint32 else np.empty(length, dtype)

    stats = graph.stats
    labels = np.zeros(1, np.int32) if graph.labels is None else graph.labels
    arrays = GraphArrays(graph.indptr, graph.indices, graph.split, labels, stats.max_degree, stats.max_out_degree)
    roles, kept = roles_of(graph, layout), kept_edges(layout, graph.edge_labels is not None)
    try:
        made = rows_by_label(
            CpuDevice(core_count()),
            arrays,
            roles,
            kept,
            sliced=layout.sliced,
            new_array=reserved_array,
            edge_labels=graph.edge_labels,
        )
        found = replace(
            graph,
            **{name: make() for name, make in _arrays(graph, layout, made).items()},
            edge_labels=made.edge_labels,
            stats=_stats(graph, made),
            transactions=None,
            transaction_ids=None,
        )
        reserved.resize(found.nbytes, _WHAT)
    except BaseException:
        reserved.release()
        raise
    return found, reserved


def copied_later(
    graph: Graph, layout: LabelLayout, made: LabelRows, host: MemoryBudget, new_array: NewArray
) -> tuple[Graph, Reservation]:
    """Return the graph of a layout whose rows were made on a device, as `lay_out` does; its arrays are copied later.

    Raises
    ------
    BudgetExceeded
        If there is no room for them on the host.
    """
    copies = _arrays(graph, layout, made)
    copies["indices"] = partial(_fetched_into, made, new_array)
    nbytes = 8 * len(made.origin)  # the ids
    arrays = (made.indptr, made.split, made.indices, made.slices, None if graph.labels is None else made.labels)
    nbytes += sum(array.nbytes for array in arrays if array is not None)
    reserved = host.reserve(nbytes, _WHAT)
    return CopiedLater.of(graph, _stats(graph, made), nbytes, copies), reserved


def roles_of(graph: Graph, layout: LabelLayout) -> Roles:
    """Return the roles of a layout as kernels read them."""
    known = {} if graph.labels is None else graph.stats.label_counts
    return _roles(layout.roles, tuple([known.get(label, 0) for label in layout.roles]), graph.num_vertices)


@lru_cache(maxsize=64)  # making roles and edges takes 40 us of a count, which may take a millisecond in all
def _roles(roles: tuple[int, ...], counts: tuple[int, ...], num_vertices: int) -> Roles:
    distinct = [label for label in dict.fromkeys(roles) if label != ANY]
    times, sizes = [*map(roles.count, distinct), int(ANY in roles)], [counts[roles.index(label)] for label in distinct]
    numbers = times, list(accumulate(times, initial=0)), [*sizes, num_vertices - sum(sizes)]
    return Roles(np.array(distinct, np.int32), *(np.array(some, np.int64) for some in numbers))


@lru_cache(maxsize=64)
def kept_edges(layout: LabelLayout, labelled: bool) -> KeptEdges:
    """Return the edges of a layout as kernels look them up; `labelled`: the data graph has labels of edges."""
    labels = sorted({label for _, _, label in layout.edges} - {ANY}) if labelled else []
    allowed = np.zeros((len(layout.roles), len(layout.roles), len(labels) + 1), np.int8)
    for first, second, label in layout.edges:
        which = slice(None) if label == ANY or not labelled else labels.index(label)
        one_label = first != second and layout.roles[first] == layout.roles[second]
        allowed[first, second, which], allowed[second, first, which] = (2, 3) if one_label else (1, 1)
    return KeptEdges(np.array(labels, np.int32), allowed)


def vertex_bytes(graph: Graph, layout: LabelLayout) -> int:
    """Return the bytes that the vertices of a layout take at most while its graph is made."""
    n = graph.num_vertices
    number = n if ANY in layout.roles else sum([graph.stats.label_counts.get(label, 0) for label in layout.roles])
    return 16 * n + number * (8 * (len(layout.roles) + 1) + _VERTEX_BYTES)


def _arrays(graph: Graph, layout: LabelLayout, made: LabelRows) -> dict[str, Any]:
    """Return what makes the arrays of the graph on the host, but for the labels of edges."""

    def fetched(array: Any) -> NDArray[Any]:
        found: NDArray[Any] = array if made.fetch is None else made.fetch(array)
        return found

    return {
        "indptr": partial(fetched, made.indptr),
        "indices": partial(fetched, made.indices),
        "split": partial(fetched, made.split),
        "original_ids": lambda: graph.original_ids[fetched(made.origin)],
        "labels": lambda: None if graph.labels is None else fetched(made.labels),
        "slices": lambda: LabelSlices(layout.roles, made.role_arcs, fetched(made.slices)) if layout.sliced else None,
    }


def _fetched_into(made: LabelRows, new_array: NewArray) -> NDArray[Any]:
    """Copy the neighbours to the host, to where an engine can read them as the data graph's."""
    assert made.fetch is not None
    capacity = new_array(len(made.indices), np.dtype(np.uint32))
    return made.fetch(made.indices, capacity)


def _stats(graph: Graph, made: LabelRows) -> GraphStats:
    number, arcs = len(made.indptr) - 1, len(made.indices)
    return replace(
        graph.stats,
        num_vertices=number,
        num_edges=arcs // 2,
        max_degree=made.max_degree,
        max_out_degree=made.max_out_degree,
        mean_degree=arcs / max(number, 1),
        sum_degree_squared=made.sum_degree_squared,
    )
