"""Where a graph is while an engine mines it, and what it takes of the engine's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import (
    COPY_BUFFER,
    WORTH_BUFFERS,
    CopiesAhead,
    Engine,
    EngineUnavailable,
    ShortOfMemory,
)
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, Access, GraphArrays
from longwall.storage.errors import InputError
from longwall.storage.graph.graph_data import Ahead, NewAdjacency, Puts
from longwall.storage.memory.machine_budget import require
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.sizes import round_size
from longwall.storage.pages.oriented_copy import OrientedCopy
from longwall.storage.pages.paged_graph import frame_bytes, host_state_bytes, load_paged, state_bytes

Wanted = Literal["auto", "resident", "adaptive", "managed", "zero-copy"]
_RESIDENT_SHARE = 0.75  # of the budget, that a graph may take to be resident
_BUFFERS, _BUFFERS_SHARE = (
    32,
    8,
)  # in `COPY_BUFFER`, for copies to a device: most of them, and their part of what is free
# Times its adjacency, that a graph of unknown size takes at most; more only with less than 5 neighbours per vertex.
_WHOLE_SHARE = 2
# Of what is left, that the page cache has at most: what is read of other pages comes once and in page order, so that
# longer chunks of rows, with fewer launches and fewer lists to read
# again, are worth more than more pages. Extension by edges reads whole lists, and gains more from the cache.
PAGE_SHARE, EDGES_PAGE_SHARE = 0.1875, 1 / 3
# Of the budget, that arrays with an entry per vertex may take beside pages: a kernel that reads a list reads its bounds
# first, and over the link that takes as long as a short list. An oriented graph has fewer such arrays.
_VERTEX_SHARE, _ORIENTED_VERTEX_SHARE = 0.25, 0.5


@dataclass(frozen=True)
class Placement:
    """Where the parts of a graph are, and what they take.

    Attributes
    ----------
    access
        Where the adjacency is.
    vertices
        The arrays with an entry per vertex that are on the device.
    pages
        Bytes of the device for the page cache and for the state of all pages; 0 where the graph is resident.
    memory
        Bytes that are left for the run, where the engine works.
    limit
        Bytes of the device for all but the page cache; None where the engine works in host memory.
    """

    access: Access
    vertices: tuple[str, ...]
    pages: int
    memory: int
    limit: int | None


def place_graph(
    graph: GraphArrays, resources: Resources, wanted: Wanted, cache_share: float | None = None
) -> Placement:
    """Choose where the parts of a graph are.

    Parameters
    ----------
    graph
        On the host.
    resources
        What the run works with; the host's budget has the graph.
    wanted
        What the user asks for; "auto": resident where it fits well.
    cache_share
        The part of what is left of the device's budget that the page cache may have; None: what suits searches.

    Raises
    ------
    InputError
        If the graph does not fit so.
    """
    if not resources.on_device:
        return Placement("resident", VERTEX_ARRAYS, pages=0, memory=resources.host.free, limit=None)
    available, option = resources.work.free, resources.options.device
    whole, access = _whole(graph), access_of(graph, resources, wanted)
    if access == "resident":
        require("the graph on the device", whole, available, option)
        return Placement(access, VERTEX_ARRAYS, pages=0, memory=available - whole, limit=resources.work.limit)
    if access == "managed":  # all pages may be touched by one extension
        require("the graph in managed memory", graph.indices.nbytes, resources.free_device_bytes() or 0, "the device")
    there, left = _vertex_arrays(graph, available)
    state = state_bytes(graph.num_arcs)
    require("the state of the graph's pages", 4 * state, left, option)
    share = max(int(left * (PAGE_SHARE if cache_share is None else cache_share)) - state, 0)
    capacity = {"adaptive": frame_bytes(graph.num_arcs, share), "managed": share, "zero-copy": 0}[access]
    limit = resources.work.limit - capacity
    return Placement(access, there, capacity + state, memory=left - capacity - state, limit=limit)


def resident(resources: Resources) -> Placement:
    """Return the placement of a graph that the device holds whole, once its budget is charged."""
    return Placement("resident", VERTEX_ARRAYS, 0, memory=resources.work.free, limit=resources.work.limit)


def access_of(graph: GraphArrays, resources: Resources, wanted: Wanted) -> Access:
    """Return where the adjacency of a graph is on a device; parameters as of `place_graph`."""
    return _access(resources.engine, _whole(graph), wanted, resources.work.free)


def _whole(graph: GraphArrays) -> int:
    size: int = graph.indices.nbytes + sum([getattr(graph, name).nbytes for name in graph.vertex_arrays])
    return size


def copier_ahead(resources: Resources, wanted: Wanted) -> Ahead:
    """Copy a graph to a device while it is read, if it will probably be there; parameters as of `place_graph`."""

    @contextmanager
    def copying(arrays: Mapping[str, Any]) -> Iterator[Puts]:
        engine, available = resources.engine, resources.device_bytes()
        there = {name: array for name in (*VERTEX_ARRAYS, "indices") if (array := arrays.get(name)) is not None}
        long = {name: array for name, array in there.items() if array.nbytes >= COPY_BUFFER}
        size = sum(array.nbytes for array in there.values())
        if (
            size < WORTH_BUFFERS
            or available is None
            or size > available
            or _access(engine, size, wanted, available) != "resident"
        ):
            yield Puts()
            return
        copies: CopiesAhead | None = None
        with ExitStack() as copying:
            try:
                capacity = copying.enter_context(_buffers(resources.host, size))
                if capacity:
                    copies = copying.enter_context(engine.copying_ahead(list(long.values()), capacity))
            except ShortOfMemory:  # it is copied when it is needed, or not at all
                copies = None
            puts = Puts(zip(long, copies or (), strict=False))
            if copies is not None and long.keys() >= {"indptr", "split", "indices"}:
                puts.check_rows = partial(_check_rows, engine, long, copies)
            yield puts

    return copying


def _check_rows(engine: Engine, names: Iterable[str], copies: CopiesAhead, key: NDArray[np.uint64]) -> tuple[bool, int]:
    """Check the rows of a graph in its copies: threads that read it would take a fifth of their time for that."""
    with engine.faults():
        there = dict(zip(names, copies.arrays(), strict=True))
        return engine.kernels.check_rows(engine.device, there["indptr"], there["split"], there["indices"], key)


@contextmanager
def _buffers(host: MemoryBudget, size: int) -> Iterator[int]:
    """Reserve memory for page-locked buffers of arrays of `size` bytes, a part of what is free; yield the bytes."""
    most = min(_BUFFERS * COPY_BUFFER, host.free // _BUFFERS_SHARE, size)
    with host.reserve(most - most % COPY_BUFFER, "buffers for copies to the device") as reserved:
        yield reserved.size


def adjacency_maker(resources: Resources, wanted: Wanted) -> NewAdjacency:
    """Make arrays for adjacencies that need no copy where they will probably be; parameters as of `place_graph`."""

    def make(length: int, dtype: np.dtype[Any], beside: int | None = None, /) -> NDArray[Any]:
        engine, available, size = resources.engine, resources.device_bytes(), length * dtype.itemsize
        if available is None:
            return np.empty(length, dtype)
        # Managed memory can be copied to the device as well, but threads take longer to write it.
        access = _access(engine, _WHOLE_SHARE * size if beside is None else size + beside, wanted, available)
        with engine.faults():
            return engine.paging.host_array(length, dtype, access)

    return make


def _vertex_arrays(graph: GraphArrays, available: int) -> tuple[tuple[str, ...], int]:
    """Choose the arrays with an entry per vertex that have room beside the page cache; return them and what is left."""
    there, capacity = [], int(available * (_ORIENTED_VERTEX_SHARE if graph.oriented else _VERTEX_SHARE))
    for name in graph.vertex_arrays:
        size = getattr(graph, name).nbytes
        if size <= capacity:
            there.append(name)
            capacity -= size
            available -= size
    return tuple(there), available


def _access(engine: Engine, size: int, wanted: Wanted, available: int) -> Access:
    if wanted != "auto":
        return wanted
    if size <= available * _RESIDENT_SHARE:
        return "resident"
    return "adaptive" if engine.paging.supported else "zero-copy"


class Brought(NamedTuple):
    """A graph on the engine.

    Attributes
    ----------
    graph
        The graph.
    charged
        What it takes of the budgets of the host and of the device, in bytes.
    """

    graph: GraphArrays
    charged: tuple[int, int]


def bring_graph(
    graph: GraphArrays, resources: Resources, placement: Placement, coming: OrientedCopy | None = None
) -> Brought:
    """Bring a graph to the engine; what it takes there, and on the host besides, is charged to the budgets.

    Parameters
    ----------
    graph, resources
        See `place_graph`.
    placement
        Where its parts are.
    coming
        What fills the adjacency, if that is not there yet and `in_place`.

    Raises
    ------
    InputError
        If there is no room for it after all, or this machine cannot do it.
    BudgetExceeded
        If the host's budget has no room for what the device reads there.
    """
    engine, host, work, options = resources.engine, resources.host, resources.work, resources.options
    on_host = on_device = 0
    with ExitStack() as failed:

        def charge(budget: MemoryBudget, size: int, what: str) -> int:
            budget.charge(size, what)
            failed.callback(budget.charge, -size, "")
            return size

        if placement.limit is not None:
            on_device = charge(work, work.free - placement.memory, "the graph on the device")
            engine.memory.limit(placement.limit)
        try:
            copied = engine.host_copy(graph, placement.access, placement.vertices)
            on_host = charge(host, copied, "copies of the graph that the device can read")
        except BudgetExceeded as error:
            advice = f'{options.device}, or start a run with {options.engine} = "cpu"'
            raise BudgetExceeded(f"{error}, or {advice}") from error
        if placement.access != "resident":
            on_host += charge(host, host_state_bytes(graph.num_arcs), "the state of the graph's pages")
        loaded = _loaded(graph, resources, placement, coming)
        failed.pop_all()
        return Brought(loaded, (on_host, on_device))


def _loaded(graph: GraphArrays, resources: Resources, placement: Placement, coming: OrientedCopy | None) -> GraphArrays:
    engine, options = resources.engine, resources.options
    try:
        with engine.faults(), _buffers(resources.host, _whole(graph)) as buffers:
            if placement.access == "resident":
                return engine.load(graph, capacity=buffers)
            there = placement.pages, placement.vertices
            return load_paged(engine, graph, placement.access, *there, coming=coming, buffers=buffers)
    except EngineUnavailable as reason:
        raise InputError(f'{options.access} = "{placement.access}": {reason}') from None
    except ShortOfMemory:
        size = round_size(placement.limit or 0)
        raise InputError(
            f"the device has less room than {options.device} says ({size}): lower it, or end what else uses the device"
        ) from None


def in_place(graph: GraphArrays, resources: Resources, placement: Placement) -> bool:
    """Return whether kernels will read copies of an adjacency's pages, or its own memory, in which it may come later.

    Parameters are those of `bring_graph`.
    """
    copied = resources.engine.host_copy(graph, placement.access, placement.vertices)
    return placement.access == "adaptive" and copied < graph.indices.nbytes


def bring_arrays(arrays: Sequence[NDArray[Any]], resources: Resources) -> tuple[list[Any], int]:
    """Bring arrays to where an engine's kernels can read them: to the device as far as they fit, mapped beyond that.

    Parameters
    ----------
    arrays
        On the host; they must not change. Those that should rather be on the device come first.
    resources
        What the run works with; the bytes on the device are charged to `work`.

    Returns
    -------
    list of array
        The engine's.
    int
        Bytes of them on the device.
    """
    if not resources.on_device:
        return list(arrays), 0
    engine, work = resources.engine, resources.work
    engine.memory.limit(work.free)
    capacity, there, taken = int(work.free * _RESIDENT_SHARE), [], 0
    for array in arrays:
        fits = array.nbytes <= capacity - taken
        taken += array.nbytes if fits else 0
        with engine.faults():
            there.append(engine.bring(array, mapped=not fits))
    work.charge(taken, "the arrays on the device")
    return there, taken
