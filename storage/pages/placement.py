"""Where a graph lies while an engine mines it, and what its device's budget leaves for the mining."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import Engine, EngineUnavailable, ShortOfMemory
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, Access, GraphArrays
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import NewArray
from longwall.storage.memory.machine_budget import require
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.sizes import round_size
from longwall.storage.pages.paged_graph import host_state_bytes, load_paged, state_bytes

Wanted = Literal["auto", "resident", "adaptive", "managed", "zero-copy"]
_DEVICE_SHARE = 0.9  # of what is free: the rest is for the kernels' code and stacks
_ROUNDED = 64  # the part of a budget that is lost because the driver gives memory out in units of 2 MiB
_RESIDENT_SHARE = 0.75  # of the budget, that a graph may take to be resident
_WHOLE_SHARE = 2  # of the adjacency, that a graph takes in all: more only with less than 5 neighbours per vertex
# Of what is left, that copies of pages have at most, in the units in which a device has room for them: what is read of
# other pages comes once and in page order, so that longer chunks of rows, with fewer launches and fewer lists to read
# again, are worth more than more pages. Extension by edges reads whole lists, and gains more from copies.
PAGE_SHARE, EDGES_PAGE_SHARE = 0.1875, 1 / 3
_VERTEX_SHARE = 0.25  # of the budget, that arrays with an entry per vertex may take beside pages


@dataclass(frozen=True)
class Placement:
    """Where the parts of a graph lie.

    Attributes
    ----------
    access
        Where the adjacency is.
    vertices
        The arrays with an entry per vertex that are on the device.
    pages
        Bytes of the device for pages of the adjacency, and for what is known of all pages; 0 where it is resident.
    memory
        Bytes that are left for the run, where the engine works.
    limit
        Bytes of the device for all but the pages; None where the engine works in host memory.
    """

    access: Access
    vertices: tuple[str, ...]
    pages: int
    memory: int
    limit: int | None


def place_graph(
    graph: GraphArrays,
    engine: Engine,
    wanted: Wanted,
    device: int | None,
    host: MemoryBudget,
    section: str = "memory.",
    copies: float | None = None,
) -> Placement:
    """Choose where a graph lies.

    Parameters
    ----------
    graph
        On the host.
    engine
        The engine.
    wanted
        What the config says; "auto": resident where it fits well.
    device
        The budget of the device; None: what is free there.
    host
        The account of the host's memory, with the graph.
    section
        What the options are called by, for messages.
    copies
        The part of what is left of the device's budget that copies of pages may have; None: what suits searches.

    Raises
    ------
    InputError
        If the graph does not fit so.
    """
    free = engine.memory.free()
    if free is None:
        return Placement("resident", VERTEX_ARRAYS, pages=0, memory=host.free, limit=None)
    available = _available(free, device)
    whole = graph.indices.nbytes + sum(getattr(graph, name).nbytes for name in VERTEX_ARRAYS)
    access = _access(engine, whole, wanted, available)
    if access == "resident":
        require("the graph on the device", whole, available, f"{section}device")
        return Placement(access, VERTEX_ARRAYS, pages=0, memory=available - whole, limit=available)
    if access == "managed":  # all pages may be touched by one extension
        require("the graph in managed memory", graph.indices.nbytes, int(free * _DEVICE_SHARE), "the device")
    there, left = _vertex_arrays(graph, available)
    state = state_bytes(graph.num_arcs)
    require("what is known of the graph's pages", 4 * state, left, f"{section}device")
    share = max(int(left * (PAGE_SHARE if copies is None else copies)) - state, 0)
    units = min(share // engine.paging.unit, -(-graph.indices.nbytes // engine.paging.unit))
    room = {"adaptive": units * engine.paging.unit, "managed": share, "zero-copy": 0}[access]
    return Placement(access, there, room + state, memory=left - room - state, limit=available - room)


def adjacency_maker(engine: Engine, wanted: Wanted, device: int | None) -> NewArray:
    """Make arrays for adjacencies that need no copy where they will probably lie; parameters as of `place_graph`."""

    def make(length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        free = engine.memory.free()
        if free is None:
            return np.empty(length, dtype)
        # What else belongs to the graph is not known yet; managed memory can be copied to the device as well.
        access = _access(engine, _WHOLE_SHARE * length * dtype.itemsize, wanted, _available(free, device))
        with engine.faults():
            return engine.paging.host_array(length, dtype, access)

    return make


def _vertex_arrays(graph: GraphArrays, available: int) -> tuple[tuple[str, ...], int]:
    """Which arrays with an entry per vertex have room beside pages, and the bytes that they leave."""
    there, room = [], int(available * _VERTEX_SHARE)
    for name in VERTEX_ARRAYS:
        size = getattr(graph, name).nbytes
        if size <= room:
            there.append(name)
            room -= size
            available -= size
    return tuple(there), available


def _available(free: int, device: int | None) -> int:
    most = int(free * _DEVICE_SHARE)
    return most if device is None else min(device - device // _ROUNDED, most)


def _access(engine: Engine, size: int, wanted: Wanted, available: int) -> Access:
    if wanted != "auto":
        return wanted
    if size <= available * _RESIDENT_SHARE:
        return "resident"
    return "adaptive" if engine.paging.supported else "zero-copy"


def bring_graph(
    graph: GraphArrays, engine: Engine, placement: Placement, host: MemoryBudget, section: str = "memory."
) -> GraphArrays:
    """Bring a graph to the engine.

    Parameters
    ----------
    graph, engine, host, section
        See `place_graph`.
    placement
        Where it lies.

    Raises
    ------
    InputError
        If there is no room for it after all, or this machine cannot do it.
    """
    if placement.limit is not None:
        engine.memory.limit(placement.limit)
    copied = engine.host_copy(graph, placement.access, placement.vertices)
    host.take(copied, "copies of the graph that the device can read")
    if placement.access != "resident":
        host.take(host_state_bytes(graph.num_arcs), "what is known of the graph's pages")
    try:
        with engine.faults():
            if placement.access == "resident":
                return engine.load(graph)
            return load_paged(engine, graph, placement.access, placement.pages, placement.vertices)
    except EngineUnavailable as reason:
        raise InputError(f'{section}access = "{placement.access}": {reason}') from None
    except ShortOfMemory:
        size = round_size(placement.limit or 0)
        raise InputError(
            f"the device has less room than {section}device says ({size}): lower it, or end what else uses the device"
        ) from None


def bring_arrays(
    arrays: Sequence[NDArray[Any]], engine: Engine, device: int | None, host: MemoryBudget
) -> tuple[list[Any], int]:
    """Bring arrays to where an engine's kernels can read them: to the device as far as they fit it, mapped beyond that.

    Parameters
    ----------
    arrays
        On the host; they must not change. Those that should rather be on the device come first.
    engine, device, host
        See `place_graph`.

    Returns
    -------
    list of array
        The engine's.
    int
        Bytes that are left where the engine works.
    """
    free = engine.memory.free()
    if free is None:
        return list(arrays), host.free
    available = _available(free, device)
    engine.memory.limit(available)
    room, there = int(available * _RESIDENT_SHARE), []
    for array in arrays:
        fits = array.nbytes <= room
        room -= array.nbytes if fits else 0
        with engine.faults():
            there.append(engine.bring(array, mapped=not fits))
    return there, room + available - int(available * _RESIDENT_SHARE)
