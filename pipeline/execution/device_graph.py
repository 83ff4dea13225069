"""The run's graph on its engine: brought there once; its page cache grows for phases that leave memory free."""

from collections.abc import Iterator
from contextlib import contextmanager

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.environment import DeviceGraph, Environment
from longwall.stages.source import host_arrays
from longwall.storage.pages.paged_graph import GraphPages
from longwall.storage.pages.placement import bring_graph, place_graph


def load_graph(env: Environment) -> tuple[GraphArrays, int]:
    """Bring the graph to the engine, inside the budget.

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
    resources = env.resources
    if env.device_graph is None:
        host = host_arrays(env.graph)
        placement = place_graph(host, resources, env.spec.memory.access)
        env.device_graph = DeviceGraph(bring_graph(host, resources, placement), placement)
    return env.device_graph.graph, resources.work.free


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
        env.engine.memory.release()
        _limit(env, pages.grow_cache(env.engine.memory.spare() - kept))


def _pages(env: Environment) -> GraphPages | None:
    pages = None if env.device_graph is None else env.device_graph.graph.pages
    return pages if isinstance(pages, GraphPages) else None


def _limit(env: Environment, growth: int) -> None:
    assert env.device_graph is not None
    limit = env.device_graph.placement.limit
    assert limit is not None
    env.engine.memory.limit(limit - growth)
