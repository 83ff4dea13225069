"""Lay graphs out by label on a device that holds the whole graph, so that only this one crosses the link."""

from __future__ import annotations

from typing import NamedTuple

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.label_rows import LabelRows, WrongSizes
from longwall.pipeline.execution.device_graph import forget_graph, load_graph, release_graph
from longwall.pipeline.execution.environment import Environment
from longwall.stages.source import host_arrays
from longwall.storage.graph.derived.label_layout import (
    LabelLayout,
    copied_later,
    kept_edges,
    roles_of,
    vertex_bytes,
)
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import Reservation
from longwall.storage.pages.placement import access_of, adjacency_maker
from longwall.storage.streaming.stored_graph import StoredGraph

_SHARE = 0.75  # of what is free on the device, that both graphs may take together
_KEPT_SHARE = 1 / 64  # of the free memory there, that the whole graph may take beside the new one
_WHAT = "the graph by label on the device"


class MadeOnDevice(NamedTuple):
    """A graph of a layout.

    Attributes
    ----------
    graph
        The graph.
    reserved
        Its bytes of the host.
    there
        The graph on the device.
    capacity
        Bytes that it takes there.
    """

    graph: Graph
    reserved: Reservation
    there: GraphArrays
    capacity: int


def lay_out_on_device(env: Environment, layout: LabelLayout) -> MadeOnDevice | None:
    """Make the graph of a layout on the device, inside the budgets; the whole graph is kept there only if it is small.

    Parameters
    ----------
    env
        What works with the whole graph, which may be on the device already.
    layout
        What to make of it.

    Returns
    -------
    MadeOnDevice or None
        None where the graph is better laid out on the host: that is where the engine works, the device has no room for
        both graphs, or edges have labels.

    Raises
    ------
    BudgetExceeded
        If the host's budget has no room for it.
    """
    graph, resources = env.graph, env.resources
    if isinstance(graph, StoredGraph) or not resources.on_device or graph.edge_labels is not None:
        return None
    if not _has_room(env, layout):
        return None
    whole, _ = load_graph(env)
    maker = adjacency_maker(resources, env.spec.memory.access)
    try:
        with resources.engine.faults(), resources.work.reserve(_made_bytes(graph, layout), _WHAT):
            rows = resources.engine.kernels.rows_by_label(
                resources.engine.device,
                whole,
                roles_of(graph, layout),
                kept_edges(layout, labelled=False),
                sliced=layout.sliced,
                new_array=maker,
            )
    except ShortOfMemory:
        release_graph(env)
        return None
    except WrongSizes:
        return None
    made, reserved = copied_later(graph, layout, rows, resources.host, maker)
    assert env.device_graph is not None
    if env.device_graph.charged[1] > _KEPT_SHARE * resources.work.free:
        forget_graph(env)
    return MadeOnDevice(made, reserved, _arrays(rows, layout), rows.capacity)


def _arrays(rows: LabelRows, layout: LabelLayout) -> GraphArrays:
    arrays = rows.indptr, rows.indices, rows.split, rows.labels, rows.max_degree, rows.max_out_degree
    if rows.slices is None:
        return GraphArrays(*arrays)
    return GraphArrays(*arrays, slices=rows.slices, slice_labels=layout.roles, slice_arcs=rows.role_arcs)


def _has_room(env: Environment, layout: LabelLayout) -> bool:
    """Return whether the device can hold the graph of a layout beside the whole graph and its other arrays."""
    resources, loaded = env.resources, env.device_graph
    needed, arrays = _made_bytes(env.graph, layout), host_arrays(env.graph)
    if loaded is not None:
        if loaded.placement.access != "resident" or loaded.graph.oriented:
            return False
    else:
        needed += arrays.indices.nbytes + sum(getattr(arrays, name).nbytes for name in arrays.vertex_arrays)
        if access_of(arrays, resources, env.spec.memory.access) != "resident":
            return False
    return needed <= _SHARE * resources.work.free


def _made_bytes(graph: Graph, layout: LabelLayout) -> int:
    """Return the most bytes of the device that a graph of a layout takes, and what is needed while it is made."""
    copies = max(map(layout.roles.count, layout.roles))
    return 2 * vertex_bytes(graph, layout) + 4 * copies**2 * len(graph.indices)
