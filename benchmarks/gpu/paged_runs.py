"""Run one workload in one way on a graph that the device's budget does not hold, and measure it."""

import gc
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.gpu.link_counter import LinkCounter
from benchmarks.gpu.paged_variants import ADAPTIVE, CPU, Variant, WatchedEngine
from benchmarks.gpu.paged_workloads import Found, Workload
from longwall.kernels.cpu.engine import CpuEngine
from longwall.pipeline.execution.environment import DeviceGraph, Environment
from longwall.stages.source import host_arrays
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.observer import NullObserver
from longwall.storage.pages import paged_graph
from longwall.storage.pages.placement import bring_graph, place_graph

LEAST_BUDGET = 16 << 20  # bytes; smaller graphs get this for their tables, and their share for pages
HOST_BYTES = 16 << 30  # beside the graph and a copy of it
RUNS = 16  # of roots, over which a share of all is spread
WARM_ROOTS = 1024
Roots = Sequence[tuple[int, int]]


class OverLimit(Exception):
    """It took too long."""


class Loaded:
    """A graph, brought to an engine for one workload and variant; a context manager that lets go of it.

    Attributes
    ----------
    engine, budget
        The engine, and the device's bytes; 0 for all that there is.
    """

    def __init__(self, graph: Graph, workload: Workload, variant: Variant, share: float):
        if not workload.labels:
            graph = replace(graph, labels=None)
        host = host_arrays(graph)
        self.budget = max(int(share * graph_bytes(graph)), LEAST_BUDGET) if share else 0
        self.engine: Any = CpuEngine() if variant == CPU else WatchedEngine(variant)
        resources = Resources(
            MemoryBudget("memory.host", 2 * graph.nbytes + HOST_BYTES),
            MemoryBudget("memory.disk", HOST_BYTES),
            SpillFolder(Path("spill")),
            engine=self.engine,
            device=self.budget or None,
        )
        resources.host.charge(graph.nbytes, "the graph")
        placement = place_graph(host, resources, variant.access, workload.cache_share)
        if placement.pages:
            most = paged_graph.state_bytes(host.num_arcs) + int(share * host.indices.nbytes)
            placement = replace(placement, pages=min(placement.pages, most))
        arrays = bring_graph(host, resources, placement).graph
        self.engine.pages = arrays.pages
        nothing: Any = None
        self._context = Environment(
            spec=nothing,
            graph=graph,
            resources=resources,
            files=nothing,
            observer=NullObserver(),
            cancel=threading.Event(),
            device_graph=DeviceGraph(arrays, placement),
        )
        with self.engine.faults():
            self._walk = workload.make(self._context)

    def run(self, roots: Roots, limit: float) -> tuple[Found, float]:
        """Work on roots; gives what was found and the seconds.

        Raises
        ------
        OverLimit
            If it takes longer than `limit` seconds; the engine is of no further use.
        """
        found = Found()
        timer = threading.Timer(limit, self._stop)
        began = time.perf_counter()
        timer.start()
        try:
            with self.engine.faults():
                for first, last in roots:
                    found = found.plus(*self._walk(first, last))
                    if self._context.cancel.is_set():
                        raise OverLimit
                    self.engine.memory.peak()
                if self.engine.name == "cuda":
                    self.engine.xp.cuda.runtime.deviceSynchronize()
        finally:
            timer.cancel()
        return found, time.perf_counter() - began

    def _stop(self) -> None:
        self._context.cancel.set()
        self.engine.interrupt()

    def __enter__(self) -> "Loaded":
        return self

    def __exit__(self, *exc: object) -> None:
        engine = self.engine
        self._context.resources.spill.close()
        self.__dict__.clear()
        gc.collect()
        engine.memory.release()
        if engine.name == "cuda":
            engine.xp.get_default_memory_pool().free_all_blocks()


@dataclass
class Record:
    """What a variant took."""

    workload: str
    variant: str
    share: float
    """Of the graph's bytes, that the device's budget has; 0 where it has all of the device."""
    budget: int = 0
    reason: str = ""
    """Why there are no figures."""
    over_limit: bool = False
    """That is the reason; `seconds` are the limit."""
    found: Found = Found()  # noqa: RUF009 - it is immutable
    seconds: float = 0.0
    """For the roots: neither loading nor compiling."""
    link_bytes: int = 0
    """That crossed the host link to the device."""
    copy_rate: float = 0.0
    """Bytes a second at which lists were copied to the device."""
    pages_in: int = 0
    pages_out: int = 0
    steps: dict[str, float] = field(default_factory=dict)
    """Seconds of kernels in every step, if asked for; see `benchmarks.gpu.paged_steps`."""
    allocator: int = 0
    driver: int = 0
    """Peaks: see `longwall.kernels.interface.engine.MemoryPeak`."""


def measure(
    graph: Graph,
    workload: Workload,
    variant: Variant,
    share: float,
    roots: Roots,
    limit: float,
    link: LinkCounter,
    *,
    steps: bool = False,
) -> Record:
    """Run one variant on the CUDA engine, for at most `limit` seconds; `share` is the budget's.

    With `steps`, it is run once more for what every step takes.
    """
    record = Record(workload.name, variant.name, share)
    try:
        with Loaded(graph, workload, variant, share) as loaded:
            record.budget = loaded.budget
            first = roots[len(roots) // 2][0]
            loaded.run([(first, min(first + WARM_ROOTS, graph.indices.size))], limit)
            loaded.run(roots, limit)  # whatever it needs is compiled, and its pages are where they come to be
            loaded.engine.reset()
            with link.counting():
                record.found, record.seconds = loaded.run(roots, limit)
            record.link_bytes = link.total if link.works else loaded.engine.link_bytes
            record.pages_in, record.pages_out = (size // paged_graph.PAGE_BYTES for size in loaded.engine.moved)
            record.copy_rate = loaded.engine.copy_rate
            record.allocator, record.driver, _ = loaded.engine.memory.peak()
            if steps:
                loaded.engine.reset()
                loaded.engine.launches.all_steps = True
                loaded.run(roots, limit)
                record.steps = loaded.engine.launches.seconds()
    except OverLimit:
        record.reason, record.over_limit, record.seconds = f"> {limit:g} s", True, limit
    except Exception as error:  # a variant that fails must not take the others' figures with it
        record.reason = f"{type(error).__name__}: {error}"
    return record


def count_by_cpu(graph: Graph, workload: Workload) -> Found:
    """What the CPU engine finds for all roots."""
    with Loaded(graph, workload, CPU, 0.0) as loaded:
        return loaded.run([(0, graph.indices.size)], threading.TIMEOUT_MAX)[0]


def choose_fraction(graph: Graph, workload: Workload, share: float, seconds: float, limit: float) -> float:
    """Choose how many of the roots are measured: adaptive needs half of the `seconds` for them, or somewhat more.

    Raises
    ------
    SystemExit
        If even the fewest take longer than `limit` seconds.
    """
    tried, done = min(RUNS * WARM_ROOTS / graph.indices.size, 1.0), 0.0
    with Loaded(graph, workload, ADAPTIVE, share) as loaded:
        try:
            elapsed = 0.0
            while done < 1 and elapsed < seconds / 2:
                # Whatever is met for the first time has to be compiled.
                elapsed = min(loaded.run(spread_roots(graph, tried), limit)[1] for _ in range(2))
                done, tried = tried, min(tried * min(max(seconds / elapsed, 2), 8), 1.0)
        except OverLimit:
            if not done:
                raise SystemExit(f"{workload.name}: the fewest roots take more than {limit:g} s") from None
    return done


def spread_roots(graph: Graph, fraction: float) -> Roots:
    """Ranges of slots, spread evenly, that have a fraction of all."""
    slots = graph.indices.size
    width = max(-(-int(fraction * slots) // RUNS), 1)
    begins = [slots * run // RUNS for run in range(RUNS + 1)]
    return [(a, min(a + width, b)) for a, b in pairwise(begins) if a < b]


def graph_bytes(graph: Graph) -> int:
    """What budgets are shares of."""
    return graph.indptr.nbytes + graph.indices.nbytes + graph.split.nbytes
