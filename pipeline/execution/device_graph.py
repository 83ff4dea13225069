"""The run's graph on its engine: brought there once; its page cache grows for phases that leave memory free."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from longwall.kernels.interface.engine import WORTH_BUFFERS
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange
from longwall.pipeline.execution.environment import DeviceGraph, Environment
from longwall.stages.source import host_arrays
from longwall.storage.errors import InputError
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.resources import Resources
from longwall.storage.pages.orientation import oriented_arc, oriented_arrays, oriented_bytes
from longwall.storage.pages.oriented_copy import OrientedCopy
from longwall.storage.pages.paged_graph import GraphPages
from longwall.storage.pages.placement import access_of, adjacency_maker, bring_graph, in_place, place_graph, resident
from longwall.storage.streaming.stored_graph import StoredGraph

NEED_LESS = (
    "counts of triangles and cliques, of motifs of 3 vertices, of paths of 4 and of triangles with a tail need less "
    "memory, where the graph is a store"
)
"""What the user can do where a budget has no room for a graph, besides what the message says."""
_LABELS_SHARE = 4


def load_graph(
    env: Environment, part: NeighbourRange = NeighbourRange.ALL, *, copies: bool = True, least: int = 0
) -> tuple[GraphArrays, int]:
    """Bring the graph to the engine, inside the budget.

    Parameters
    ----------
    env
        What the process works with.
    part
        What kernels read of every row. Where that is the smaller neighbours, and the device's budget does not hold the
        whole graph, only the arcs to these are brought: also where a phase before has read more, unless something that
        was made of the whole graph is still kept.
    copies
        Whether copies of the pages of the whole graph are worth their room. Not where kernels read smaller neighbours
        alone, but need the whole graph for its source: at least half of every page is brought in vain.
    least
        The least degree of a vertex that may count: where only smaller neighbours are brought, vertices of a lower
        degree are left out.

    Returns
    -------
    graph : GraphArrays
        What the kernels read.
    memory : int
        Bytes that are left for the run where the engine works: on the device, or on the host.

    Raises
    ------
    InputError
        If the graph does not fit the device's budget.
    """
    env.forget_layout()
    if env.device_graph is not None and _misfits(env, env.device_graph, part, copies, least):
        release_graph(env)
    if env.device_graph is None:
        env.device_graph = _bring(env, part, copies, least)
    return env.device_graph.graph, env.resources.work.free


def loaded_graph(env: Environment) -> GraphArrays:
    """Return the graph that `load_graph` has brought to the engine."""
    assert env.device_graph is not None, "the phase is not prepared"
    return env.device_graph.graph


def bring_ahead(env: Environment) -> None:
    """Bring the graph to a device before a phase asks for it, if it will be there whatever phases read of it."""
    resources = env.resources
    if resources.on_device and access_of(host_arrays(env.graph), resources, env.spec.memory.access) == "resident":
        with suppress(InputError):  # as it is for the phase that asks for it
            load_graph(env)


def bring_small(env: Environment) -> None:
    """Bring a graph that is too small to be copied while it is read to a device, before a phase asks for it."""
    if not isinstance(env.graph, StoredGraph) and env.graph.nbytes < WORTH_BUFFERS:
        bring_ahead(env)


def holds_part(env: Environment) -> bool:
    """Return whether the memory that the engine works in holds the graph only in part, page by page."""
    if not env.resources.on_device or isinstance(env.graph, StoredGraph):  # its parts fit
        return False
    if (loaded := env.device_graph) is not None:
        return loaded.graph.oriented or loaded.graph.pages is not None
    return access_of(host_arrays(env.graph), env.resources, env.spec.memory.access) != "resident"


def _misfits(env: Environment, loaded: DeviceGraph, part: NeighbourRange, copies: bool, least: int) -> bool:
    """Return whether the graph on the engine lacks what will be read, or is read page by page though half would do."""
    if part != NeighbourRange.SMALLER:
        moves = loaded.graph.pages is not None and loaded.placement.access == "adaptive"
        return loaded.graph.oriented or (moves and loaded.copies != copies and not env.derived)
    paged = not loaded.graph.oriented and loaded.graph.pages is not None and not env.derived
    return loaded.least > least or (paged and oriented_bytes(env.graph) <= env.resources.host.free)


def reads_known(env: Environment) -> bool:
    """Return whether it is known of the pages of the graph on the engine what a whole phase will read of them.

    So it is of arcs to smaller neighbours, unless their pages come to the device when they are touched.
    """
    loaded = env.device_graph
    return (
        loaded is not None
        and loaded.starts is not None
        and loaded.graph.pages is not None
        and loaded.placement.access != "managed"
    )


def arc_of(env: Environment, at: int) -> int:
    """Return an arc of the data graph, or the end of a range of arcs, as the engine's graph counts them."""
    assert env.device_graph is not None
    starts = env.device_graph.starts
    return at if starts is None else oriented_arc(env.graph, starts, at)


def _bring(env: Environment, part: NeighbourRange, copies: bool, least: int) -> DeviceGraph:
    resources, wanted = env.resources, env.spec.memory.access
    whole = host_arrays(env.graph)
    if part == NeighbourRange.SMALLER and resources.on_device and access_of(whole, resources, wanted) != "resident":
        try:
            reserved = resources.host.reserve(oriented_bytes(env.graph), "the arcs to smaller neighbours")
        except BudgetExceeded:
            return _placed(env, whole)  # the kernels read the whole adjacency as well
        copy: OrientedCopy | None = None
        try:
            host = oriented_arrays(env.graph, adjacency_maker(resources, wanted), least)
            copy = OrientedCopy(env.graph, host)
            loaded = _placed(env, host, copy=copy)
        except BaseException:
            if copy is not None:
                copy.close()
            reserved.release()
            raise
        # The device's copy is the only one that is left of a resident graph's arcs.
        paged = loaded.placement.access != "resident"
        kept = host.indices.nbytes + OrientedCopy.nbytes(env.graph.num_edges) if paged else 0
        reserved.resize(host.indptr.nbytes + kept, "")
        charged = loaded.charged[0] + reserved.size, loaded.charged[1]
        return replace(loaded, starts=host.indptr, charged=charged, copy=copy if paged else None, least=least)
    return _placed(env, whole, copies)


def _placed(env: Environment, host: GraphArrays, copies: bool = True, copy: OrientedCopy | None = None) -> DeviceGraph:
    """Bring what is on the host; where it is a copy that is not begun, begin it: if possible, it goes on afterwards."""
    resources = env.resources
    placement = place_graph(host, resources, env.spec.memory.access, None if copies else 0.0)
    coming = copy if copy is not None and in_place(host, resources, placement) else None
    if copy is not None and coming is None:
        copy.begin()
        copy.wait()
    try:
        graph, charged = bring_graph(host, resources, placement, coming)
    except BudgetExceeded as error:
        if env.graph.files is None:
            raise
        raise BudgetExceeded(f"{error}; {NEED_LESS}") from error
    if coming is not None:  # what is written later need not be looked at when it is made known to the device
        try:
            coming.begin()
        except BaseException:
            _give_back(resources, charged)
            raise
    return DeviceGraph(graph, placement, None, charged, copies=copies)


def release_graph(env: Environment) -> None:
    """Forget the graph on the engine, between two phases; nothing happens where it is not there."""
    env.forget_layout()
    if env.device_graph is None:
        return
    forget_graph(env)
    if env.resources.on_device:
        env.resources.engine.memory.release()


def forget_graph(env: Environment) -> None:
    """Forget the graph on the engine; its memory goes to what takes memory next."""
    assert env.device_graph is not None
    resources, charged = env.resources, env.device_graph.charged
    if env.device_graph.copy is not None:
        env.device_graph.copy.close()
    env.device_graph = None
    _give_back(resources, charged)


def _give_back(resources: Resources, charged: tuple[int, int]) -> None:
    host, work = charged
    resources.host.charge(-host, "")
    if resources.on_device:
        resources.work.charge(-work, "")


def keep_made(env: Environment, there: GraphArrays, capacity: int) -> None:
    """Take a graph that was made on the device for that of an environment.

    Parameters
    ----------
    env
        What works with the graph; nothing else is on the engine.
    there
        The graph, resident on the device.
    capacity
        Bytes that it takes there, at least those of its arrays.

    Raises
    ------
    InputError
        If the device's budget has no room for it.
    """
    env.resources.work.charge(capacity, "the graph on the device")
    env.device_graph = DeviceGraph(there, resident(env.resources), None, (0, capacity))


def load_edge_labels(env: Environment) -> None:
    """Bring the labels of the edges to the engine after the graph, where they stay as it does.

    On the host they are there; they stay there if they would take more of a device than a part of what is free.
    """
    labels, resources, placed = env.graph.edge_labels, env.resources, env.device_graph
    assert labels is not None
    assert placed is not None
    if not resources.on_device or placed.edge_labels is not None:
        return
    if labels.nbytes <= resources.work.free // _LABELS_SHARE:
        there, (host, work) = env.engine.bring(labels, mapped=False), placed.charged
        resources.work.charge(labels.nbytes, "the labels of edges on the device")
        env.device_graph = replace(placed, edge_labels=there, charged=(host, work + labels.nbytes))


def loaded_edge_labels(env: Environment) -> Any:
    """Return the labels of the edges where kernels read them: int32[2m], aligned with the adjacency."""
    assert env.device_graph is not None, "the phase is not prepared"
    on_engine = env.device_graph.edge_labels
    return env.graph.edge_labels if on_engine is None else on_engine


@contextmanager
def growing_page_cache(env: Environment) -> Iterator[None]:
    """Hold a phase in which the page cache may grow, and shrink the cache afterwards; see `grow_page_cache`."""
    try:
        yield
    finally:
        pages = _pages(env)
        if pages is not None and pages.growth:
            try:
                pages.shrink_cache()
            finally:
                _limit(env, 0)


def grow_page_cache(env: Environment, kept: int) -> None:
    """Let the page cache grow by what is free of the device's budget, but for `kept` bytes."""
    pages = _pages(env)
    if pages is not None and pages.may_grow_cache:
        env.engine.memory.release(garbage=False)  # a copy of the graph may be under way in threads
        _limit(env, pages.grow_cache(env.engine.memory.spare() - kept))


def _pages(env: Environment) -> GraphPages | None:
    pages = None if env.device_graph is None else env.device_graph.graph.pages
    return pages if isinstance(pages, GraphPages) else None


def _limit(env: Environment, growth: int) -> None:
    assert env.device_graph is not None
    limit = env.device_graph.placement.limit
    assert limit is not None
    env.engine.memory.limit(limit - growth)
