"""Searches on the device with other hand-overs and other stacks than the product's, for `benchmarks.suites.seeds`.

T-DFS splits what runs for too long, DuMato stops the kernel and lets the host redistribute the work; T-DFS has paged
stacks. Each way is measured beside the product's and beside none.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import longwall
from benchmarks.gpu.gpu_kernels import arrays
from benchmarks.gpu.host_balance import HostBalanced
from benchmarks.lib.seed_runs import note
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.cuda.search import search as cuda_search
from longwall.kernels.cuda.search.search_stacks import RING_BYTES, SearchStacks
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.source import edge_source

TEN_MILLISECONDS = 1 << 24  # cycles, about: T-DFS's time-out
NEVER = -1  # as unsigned, no number of cycles reaches it
PLENTY = 32 << 30


class Setting:
    """A graph on the device, and the rows that a count of a pattern begins with."""

    def __init__(self, store: str, pattern: str):
        self.engine = CudaEngine()
        graph = longwall.open_graph(store)
        host = arrays(graph)
        self.plan: MatchPlan = plan_match(parse_pattern(pattern), graph.stats)
        self.graph: GraphArrays = self.engine.load(host)
        levels = (self.plan.program.levels[0], self.plan.program.levels[1])
        self.rows = self.engine.xp.asarray(edge_source(host, levels, 0, host.num_arcs, np).columns())

    def searcher(self, memory: int = PLENTY) -> cuda_search.CudaSearcher:
        """Make the product's searcher."""
        return cuda_search.CudaSearcher(self.engine.device, self.graph, self.plan.program, memory)

    def counted(self, searcher: cuda_search.CudaSearcher) -> tuple[dict[str, Any], float]:
        """Count with a searcher. Return the embeddings, and seconds."""
        began = time.perf_counter()
        matches = searcher.count_rows(self.rows)
        return {"count": matches // self.plan.redundancy}, time.perf_counter() - began


def balance(store: str, pattern: str, ways: list[str], record: str) -> None:
    """Count a pattern with one way of load balancing after another; see `benchmarks.lib.seed_runs.note`.

    Parameters
    ----------
    store
        A graph store.
    pattern
        Its edges.
    ways
        ``"ring"`` (the product's), ``"10 ms"`` (the same, with T-DFS's time-out), ``"host"`` (DuMato's) or ``"none"``.
    record
        A file for the lines.
    """
    setting = Setting(store, pattern)
    for way in ways:
        if way == "host":
            balanced = HostBalanced(setting.engine.device, setting.graph, setting.plan.program)

            def by_host(balanced: HostBalanced = balanced) -> tuple[dict[str, Any], float]:
                found = balanced.count(setting.rows)
                facts = {"count": found.count // setting.plan.redundancy, "launches": found.launches}
                return facts | {"moved": found.moved}, found.seconds

            note(record, way, by_host)
            continue
        patience = {"ring": cuda_search.PATIENCE, "10 ms": TEN_MILLISECONDS, "none": NEVER}[way]
        with _patched(cuda_search, "PATIENCE", patience):
            note(record, way, partial(setting.counted, setting.searcher()))


def stacks(store: str, pattern: str, shares: list[float], record: str) -> None:
    """Count a pattern with stacks of so many bytes, as shares of those that have room for the longest sets.

    Less than all of it is shared out in two ways: the product's, and long stacks for as few warps as there is room for.
    ``lists`` are the bytes of T-DFS's fixed stacks: a list of the largest degree for every level below the edges.
    """
    setting = Setting(store, pattern)
    fixed = setting.searcher().stacks
    lists = 4 * fixed.warps * setting.graph.max_degree * (setting.plan.pattern.num_vertices - 2)
    for share in shares:
        ways: dict[str, Callable[..., SearchStacks]] = {"pooled": SearchStacks.within}
        if share < 1:
            ways["fewer warps"] = _few_long
        for way, within in ways.items():
            with _patched(SearchStacks, "within", within):
                searcher = setting.searcher(RING_BYTES + 2 * int(4 * fixed.elements * share))
            took = {"bytes": 4 * searcher.stacks.elements, "warps": searcher.stacks.warps, "share": share, "way": way}
            took["lists"] = lists

            def once(searcher: cuda_search.CudaSearcher = searcher, took: Any = took) -> tuple[dict[str, Any], float]:
                found, seconds = setting.counted(searcher)
                return found | took, seconds

            note(record, f"{way} {share:g}", once)


def check(store: str, pattern: str) -> dict[str, int]:
    """Count a pattern on the CPU and in every way on the device: all counts must be one."""
    from longwall.kernels.cpu.engine import CpuEngine

    setting, cpu = Setting(store, pattern), CpuEngine()
    host, program = arrays(longwall.open_graph(store)), setting.plan.program
    found = {"cpu": cpu.kernels.searcher(cpu.device, host, program, PLENTY).count_rows(setting.rows.get())}
    for way, patience in (("ring", 0), ("none", NEVER)):
        with _patched(cuda_search, "PATIENCE", patience):
            found[way] = setting.searcher().count_rows(setting.rows)
    for idle_share, patience in ((0.3, cuda_search.PATIENCE), (0.0, 0)):
        balanced = HostBalanced(setting.engine.device, setting.graph, program, idle_share, patience)
        found[f"host, {idle_share:g}"] = balanced.count(setting.rows).count
    with _patched(SearchStacks, "within", _almost_none):
        searcher = setting.searcher()
    found["short stacks"] = searcher.count_rows(setting.rows)
    return found


def _almost_none(wanted: int, long: int, memory: int) -> SearchStacks:
    """Let all warps borrow from a few long stacks, all the time; see `SearchStacks.within`."""
    del memory
    return SearchStacks(wanted, 4, 16, long)


def _few_long(wanted: int, long: int, memory: int) -> SearchStacks:
    """Share out memory as long stacks alone; see `SearchStacks.within`."""
    return SearchStacks(min(memory // 4 // long, wanted), long, 0, long)


@contextmanager
def _patched(home: Any, name: str, value: Any) -> Iterator[None]:
    """Give a name of a module or class another value for a while."""
    before = getattr(home, name)
    setattr(home, name, value)
    try:
        yield
    finally:
        setattr(home, name, before)
