"""What a phase over ranges of arcs does where the graph stays in its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from longwall.pipeline.execution.derived import Derivation, derived
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Task
from longwall.pipeline.execution.streaming.part_sums import PartSums, SumOfValues
from longwall.pipeline.execution.streaming.stream_worker import StreamWorker
from longwall.pipeline.execution.streaming.tabled_ways import TabledWay, tabled_way
from longwall.pipeline.execution.streaming.tabled_worker import TabledWorker
from longwall.pipeline.execution.streaming.whole_worker import WholeWorker, lists_bytes
from longwall.stages.range_counting import CountCliques
from longwall.storage.arrays import array_hash
from longwall.storage.memory.resources import Resources
from longwall.storage.streaming.edge_sums import degree_bytes
from longwall.storage.streaming.estimate import Reads, estimate_reads
from longwall.storage.streaming.graph_parts import ARC_BYTES, MEMBER_BYTES, GraphParts
from longwall.storage.streaming.list_file import ListFile
from longwall.storage.streaming.orient_store import orient_store, orienting_bytes
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.streaming.vertex_set import set_bytes
from longwall.storage.system.concurrency import core_count

if TYPE_CHECKING:
    from longwall.pipeline.run_store.commit_log import PartialResult
    from longwall.stages.range_counting import CountRanges
    from longwall.storage.graph.graph import Graph

_PART_SHARE = 0.9  # of what is left: the rest is for the workspaces; a part is smaller where they need more
_LEAST_PARTS = 2  # times what a part of one vertex may take: with the workspaces
_DEVICE_SHARE = 0.5  # of the device
_LISTS_SHARE = 0.5  # of the device, that all lists may take there
_STEPS_PER_TASK, _LEAST_TASKS, _MOST_TASKS = 1e11, 8, 64  # every task reads lists anew: the fewer, the better


class Streamed(Protocol):
    """A phase that counts in ranges of roots: a `longwall.pipeline.phases.range_count.RangePhase`."""

    @property
    def count(self) -> CountRanges:
        """The stage."""
        ...

    @property
    def cost(self) -> float:
        """Estimated number of elementary steps."""
        ...

    def take(self, env: Environment) -> Callable[[Any], PartialResult]:
        """Return a function that makes a partial result of a worker's counts."""
        ...

    def part_sums(self, graph: StoredGraph) -> PartSums:
        """Return sums over parts of the graph."""
        ...

    def merging_bytes(self, graph: Graph) -> int:
        """Return the bytes of host memory that merging files takes."""
        ...


@dataclass(frozen=True)
class AdjacencyLists(Derivation[ListFile]):
    """The lists of smaller neighbours of a graph that stays in its store, in a file."""

    optional: ClassVar[bool] = False

    def build(self, env: Environment) -> ListFile:
        """Write the file."""
        assert isinstance(env.graph, StoredGraph)
        return orient_store(env.graph, env.resources, env.observer, env.cancel)


def stream_tasks(env: Environment, cost: float) -> list[Task]:
    """Return tasks over the arcs of the data graph, each with about as many to smaller neighbours."""
    graph = env.graph
    assert isinstance(graph, StoredGraph)
    ends = np.linspace(0, graph.num_edges, _pieces(cost) + 1)[1:-1].astype(np.int64)
    rows = np.unique(np.searchsorted(graph.starts, ends, side="left"))
    cuts = sorted({0, *graph.begins(rows).tolist(), 2 * graph.num_edges})
    return [Task(first, last, last - first) for first, last in pairwise(cuts)]


@contextmanager
def open_stream(env: Environment, phase: Streamed) -> Iterator[MakeWorker]:
    """Reserve the memory of a phase's worker until the block ends; yield a function that makes one worker at a time.

    Raises
    ------
    BudgetExceeded
        If there is no room for it.
    """
    graph, lists, resources = env.graph, derived(env, AdjacencyLists()), env.resources
    assert isinstance(graph, StoredGraph)
    sums = phase.part_sums(graph)
    fixed = _fixed_bytes(graph, ARC_BYTES * lists.longest) + sums.nbytes
    with resources.host.reserve(fixed, "the members of a part of the graph"), ExitStack() as reserved:
        if resources.on_device:
            env.engine.memory.limit(resources.work.free)
        if _fits_device(graph, phase, resources):
            memory = resources.work.free
            reserved.enter_context(resources.work.reserve(memory, "the lists of the graph, and the workspace for them"))
            yield lambda: WholeWorker(env, phase.count, lists, phase.take(env), memory)
            return
        merging = 0 if env.alone else phase.merging_bytes(graph)
        size, whole = _part_size(graph, sums, resources, resources.host.free - merging)
        way, _ = _way(graph, phase, resources, size, whole)
        if resources.on_device:
            found = size + _found_bytes(graph, sums, size)
            reserved.enter_context(resources.host.reserve(found, "a part of the graph, and what is found in it"))
        reserved.enter_context(resources.work.reserve(whole, "a part of the graph, and the workspaces for it"))
        part = size if way is None else way.part
        by_device = resources.on_device and size == int(whole * _DEVICE_SHARE)
        option = (resources.work if by_device else resources.host).option
        parts = reserved.enter_context(closing(GraphParts(graph, lists, part, core_count(), env.cancel, option)))

        def make_worker() -> StreamWorker:
            # Each worker has sums of its own, so a lost worker, or a lost answer, takes no other sums away.
            found = phase.part_sums(graph)
            if way is None:
                return StreamWorker(env, phase.count, parts, found, phase.take(env), whole)
            return TabledWorker(env, way.stage, parts, found, phase.take(env), whole, size)

        yield make_worker


def has_room(graph: StoredGraph, phase: Streamed, resources: Resources, *, alone: bool) -> bool:
    """Return whether host memory suffices to read a graph from its store and, without a device, for the smallest parts.

    `alone` says that no other process works on the run.
    """
    longest, segment = graph.stats.max_out_degree, array_hash.SEGMENT_BYTES
    needed = max(orienting_bytes(graph), degree_bytes(graph, segment // ARC_BYTES, core_count()))
    if not resources.on_device:
        # The list of a vertex, and those of all in it.
        around_one = ARC_BYTES * min(longest * (longest + 1), graph.num_edges)
        fixed = _fixed_bytes(graph, segment) + phase.part_sums(graph).nbytes
        fixed += 0 if alone else phase.merging_bytes(graph)
        needed = max(needed, fixed + _LEAST_PARTS * around_one)
    return resources.host.free >= needed


def expected_reads(graph: StoredGraph, phase: Streamed, resources: Resources) -> Reads:
    """Return what a phase will read, estimated before any of the lists is there."""
    if _fits_device(graph, phase, resources):
        return Reads(1, ARC_BYTES * graph.num_edges)
    sums = phase.part_sums(graph)
    free = resources.host.free - _fixed_bytes(graph, array_hash.SEGMENT_BYTES) - sums.nbytes
    return _way(graph, phase, resources, *_part_size(graph, sums, resources, max(free, 0)))[1]


def _way(
    graph: StoredGraph, phase: Streamed, resources: Resources, size: int, whole: int
) -> tuple[TabledWay | None, Reads]:
    """Return how tables are made where less is read so than part after part, else None; and what is read."""
    count, pieces = phase.count, _pieces(phase.cost)
    reads = estimate_reads(graph, size, pieces, split=count.splits)
    if resources.on_device and isinstance(count, CountCliques) and not count.splits:
        way = tabled_way(graph, count, size, whole, pieces)
        if way is not None and way.reads.size < reads.size:
            return way, way.reads
    return None, reads


def _fits_device(graph: StoredGraph, phase: Streamed, resources: Resources) -> bool:
    """Return whether all lists are brought to a device, for one value of the whole graph."""
    if not resources.on_device or not isinstance(phase.part_sums(graph), SumOfValues):
        return False
    return lists_bytes(graph) <= _LISTS_SHARE * resources.work.free


def _fixed_bytes(graph: StoredGraph, segment: int) -> int:
    """Bytes of the host besides a part and what is found: its members, and a buffer for each thread."""
    return set_bytes(graph.num_vertices) + (core_count() + 1) * segment


def _part_size(graph: StoredGraph, sums: PartSums, resources: Resources, free: int) -> tuple[int, int]:
    """Bytes of a part, and of it and the workspaces where the engine works."""
    size = int(free * _PART_SHARE)
    if not resources.on_device:
        return size, free
    whole = resources.work.free
    each = sums.member_bytes
    size = max(int(size / (1 + each / MEMBER_BYTES)), size - each * graph.num_vertices)
    return min(size, int(whole * _DEVICE_SHARE)), whole


def _found_bytes(graph: StoredGraph, sums: PartSums, size: int) -> int:
    """Bytes of the host for what a device finds in a part."""
    return sums.member_bytes * min(graph.num_vertices, size // MEMBER_BYTES)


def _pieces(cost: float) -> int:
    return min(max(int(cost / _STEPS_PER_TASK), _LEAST_TASKS), _MOST_TASKS)
