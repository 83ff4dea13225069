"""What is run on a graph that a GPU's budget does not hold, range of roots by range of roots."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.interface.search_program import Level
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.search_context import SearchContext, SearchShare
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Stage
from longwall.stages.extension.unguided_edges import extend_by_edge
from longwall.stages.source import edge_source
from longwall.storage.graph.graph import Graph
from longwall.storage.pages.placement import EDGES_PAGE_SHARE
from longwall.storage.tables.embedding_table import EmbeddingTable

NAMES = ("match", "cliques", "edges")
DIAMOND_LABELS = (0, 1, 2, 3)
SOURCE_BYTES = 128  # of device memory, that reading an edge takes for a moment
_SOURCE_SHARE = 16  # the part of the memory for that


class Found(NamedTuple):
    """Number of rows, and the sum of their last column modulo 2^64."""

    rows: int = 0
    checksum: int = 0

    def plus(self, rows: int, checksum: int) -> "Found":
        """Both, added."""
        return Found(self.rows + rows, (self.checksum + checksum) % 2**64)


Walk = Callable[[int, int], Found]
"""Works on the roots of a range of slots; stops early where the run is cancelled."""
MakeWalk = Callable[[Environment], Walk]


class Workload(NamedTuple):
    """A workload."""

    name: str
    title: str
    make: MakeWalk
    labels: bool
    """Whether it looks at them."""
    plain: tuple[str, ...]
    """Which of GAMMA's optimisations it can do without."""
    cache_share: float | None
    """Of the device, that copies of pages have; None: what suits searches."""


def plan_workloads(graph: Graph) -> list[Workload]:
    """All workloads, planned for a labelled graph; their names are `NAMES`."""
    diamond = plan_match(parse_pattern("diamond", DIAMOND_LABELS), graph.stats, counting=False)
    cliques = plan_match(parse_pattern("clique-4"), graph.stats, counting=False)
    every = ("two-pass", "ungrouped", "unordered")
    return [
        Workload("match", "labelled diamonds", _listing(diamond), True, every, _cache_share(diamond)),
        Workload("cliques", "4-cliques", _listing(cliques), False, every, _cache_share(cliques)),
        Workload("edges", "edges, extended by one edge", _edge_level, False, ("unordered",), EDGES_PAGE_SHARE),
    ]


def _cache_share(plan: MatchPlan) -> float | None:
    return None if plan.reads_whole_lists else 0.0


def _listing(plan: MatchPlan) -> MakeWalk:
    """List all levels of a plan, chunk by chunk; rows of the last level are dropped."""

    def make(env: Environment) -> Walk:
        graph, memory = load_graph(env)
        of_worker = WorkerMemory.within(plan.program.depth, graph, env, memory, exporting=False)
        context = FoundContext(SearchShare(plan.program, env, graph, of_worker), (*plan.stages[:-1], Add()))

        def walk(first: int, last: int) -> Found:
            context.found = Found()
            for begin in range(first, last, of_worker.rows):
                context.run(begin, min(begin + of_worker.rows, last))
            return context.found

        return walk

    return make


class FoundContext(SearchContext):
    """What the stages of a listing work with, and what they found."""

    found = Found()

    def take_partial(self) -> PartialResult:
        """Return the number of rows."""
        return PartialResult(self.found.rows)


class Add(Stage):
    """Add rows to what is found, and drop them."""

    verb = "count"

    def describe(self) -> str:
        """See `Stage`."""
        return "count        rows and the sum of their last vertices"

    def run(self, chunk: EmbeddingTable, context: FoundContext) -> Iterable[Any]:
        """See `Stage`."""
        if len(chunk):
            context.found = context.found.plus(len(chunk), int(chunk.values[-1].sum(dtype=np.uint64)))
        return ()


def _edge_level(context: Environment) -> Walk:
    graph, memory = load_graph(context)
    engine, xp, take = context.engine, context.engine.xp, AdaptiveBatch(context.engine).run
    source = memory // _SOURCE_SHARE
    work = min(memory - source, 4 << 30)
    step = max(min(source // SOURCE_BYTES, 1 << 20), 1)
    levels = (Level(-1), Level(-1, below=1))

    def edges(first: int, last: int) -> EmbeddingTable:
        larger, smaller = edge_source(graph, levels, first, last, xp).columns()
        return EmbeddingTable((larger.astype(np.int64) << 32 | smaller,), (), xp)

    def walk(first: int, last: int) -> Found:
        rows, checksum = 0, xp.zeros((), np.int64)  # on the device: it works on while the host makes the next part
        for begin in range(first, last, step):
            for part in extend_by_edge(edges(begin, min(begin + step, last)), graph, engine, work, take):
                rows += len(part)
                checksum += part.values[-1].sum(dtype=np.int64)  # in its place: a new one would cut up free memory
                del part  # it is gone before the next one is made
                if context.cancel.is_set():
                    break
        return Found().plus(rows, int(checksum))

    return walk
