"""Count with a kernel that goes over ranges of roots on its own."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.adaptive_batch import make_workspace
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import derived
from longwall.pipeline.execution.device_graph import grow_page_cache, growing_page_cache, load_graph, loaded_graph
from longwall.pipeline.execution.engine_errors import no_room
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import ARCS, MakeWorker, Phase, Task, WorkSoFar
from longwall.pipeline.execution.row_work import work_of_rows
from longwall.pipeline.execution.stage_workers import RangeContext
from longwall.pipeline.execution.task_ranges import (
    is_brief,
    may_overlap,
    range_memory,
    range_reads,
    root_tasks,
    workspace_advice,
)
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation
from longwall.stages.range_counting import Counter, CountRanges
from longwall.stages.source import Scan
from longwall.storage.streaming.stored_graph import StoredGraph

if TYPE_CHECKING:
    from longwall.pipeline.execution.streaming.part_sums import PartSums
    from longwall.storage.graph.graph import Graph


@dataclass(frozen=True)
class RangePhase(Phase):
    """Send ranges of roots through a stage that counts them.

    Attributes
    ----------
    count
        The stage.
    cost
        Estimated number of elementary steps.
    """

    count: CountRanges
    cost: float
    activity = "counting"

    @property
    def stages(self) -> tuple[Scan, CountRanges]:
        """What the ranges go through."""
        return self.count.source, self.count

    @property
    def name(self) -> str:
        """See `Phase`."""
        return self.count.name

    @property
    def overlaps(self) -> bool:
        """See `Phase`."""
        return self.count.overlaps

    @property
    def unit(self) -> str:
        """See `Phase`."""
        return "parts of the work" if self.count.source.growth else ARCS

    def describe(self) -> str:
        """Return the stages as text, for ``longwall explain``."""
        return "\n".join(stage.describe() for stage in self.stages)

    def prepare(self, env: Environment) -> None:
        """Copy the arrays that the kernel reads to the engine; write the lists of a graph in its store to a file.

        On a cluster only the workers need this file, and write it when they open the graph.
        """
        if isinstance(env.graph, StoredGraph):
            from longwall.pipeline.execution.streaming.stream_phase import AdjacencyLists

            if env.alone:
                derived(env, AdjacencyLists())
        else:
            load_graph(env, self.count.source.part, least=self.count.least)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the roots."""
        if isinstance(env.graph, StoredGraph):
            from longwall.pipeline.execution.streaming.stream_phase import stream_tasks

            return stream_tasks(env, self.cost)
        return root_tasks(env, self.count.source, self.cost)

    def work(self, env: Environment) -> WorkSoFar | None:
        """See `Phase`."""
        power = self.count.source.row_growth
        return work_of_rows(env, power) if power and not isinstance(env.graph, StoredGraph) else None

    def threads(self, env: Environment) -> int:
        """See `Phase`."""
        if isinstance(env.graph, StoredGraph):
            return 1
        # In one process two workers share the tasks: the ranges of a worker would not follow one another.
        overlaps = self.overlaps and not (env.alone and self.count.follows)
        return 2 if overlaps and may_overlap(env) else super().threads(env)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' counts; let the page cache grow, where the kernel reads copies of pages."""
        if isinstance(env.graph, StoredGraph):
            from longwall.pipeline.execution.streaming.stream_phase import open_stream

            with open_stream(env, self) as make_worker:
                yield make_worker
            return
        graph = self.arrays(env)
        source = self.count.source
        grows = graph.pages is not None and (source.copies or (source.streams and graph.pages.staged))
        reads = range_reads(env, source, self.tasks(env), graph) if grows else None
        counts = self.count.host_bytes(env.engine.workers)
        growing = nullcontext() if graph.pages is None else growing_page_cache(env)
        with env.resources.host.reserve(counts, "the workers' counts"), growing:
            yield partial(self._worker, env, graph, reads)

    def arrays(self, env: Environment) -> GraphArrays:
        """Return the graph as the stage's kernel reads it."""
        return loaded_graph(env)

    @abstractmethod
    def take(self, env: Environment) -> Callable[[Any], PartialResult]:
        """Return what makes partial results of what one worker found, as the stage's aggregation has it."""

    def part_sums(self, graph: StoredGraph) -> PartSums:
        """Return what adds up what is found in parts of a graph that stays in its store."""
        from longwall.pipeline.execution.streaming.part_sums import sums_of

        return sums_of(self.count, graph.num_vertices)

    def merging_bytes(self, graph: Graph) -> int:  # noqa: ARG002
        """Return the bytes of host memory that merging files takes, in addition to the memory of the workers."""
        return 0

    def _worker(self, env: Environment, graph: GraphArrays, reads: int | None) -> RangeContext:
        overlapping = max(self.threads(env) // env.engine.workers, 1)
        stream = env.engine.device.stream() if overlapping > 1 else nullcontext()
        memory = range_memory(env, self.count.source) // overlapping
        try:
            with stream:
                counter: Counter = make_workspace(env.engine, memory, partial(self.count.counter, env.engine, graph))
        except WorkspaceTooLarge as error:
            if self.count.optional:
                raise no_room(error, env.resources.work) from error
            error.advice = workspace_advice(env, error.needed)
            raise
        context = RangeContext(env, self.stages, counter, self.take(env), stream)
        if reads is not None:
            grow_page_cache(env, reads)
        return context


@dataclass(frozen=True)
class RangeCount(RangePhase):
    """Count what is one value for the whole graph: a number, or several."""

    keeps_workers = True

    def brief(self, env: Environment) -> bool:
        """See `Phase`."""
        if isinstance(env.graph, StoredGraph):
            return False
        if self.count.interruptible and env.resources.on_device:
            return True
        return self.count.estimated and is_brief(env, max(self.cost, env.graph.stats.sum_degree_squared))

    @property
    def aggregation(self) -> Aggregation[Any, Any]:
        """See `Phase`."""
        return self.count.aggregation

    def take(self, env: Environment) -> Callable[[Any], PartialResult]:  # noqa: ARG002
        """See `RangePhase`."""
        return PartialResult

    def run(self, env: Coordinator) -> Any:
        """Count, and put what it took into the metrics.

        Returns
        -------
        Any
            The result of the stage's aggregation.

        Raises
        ------
        NotEnoughMemory
            If there is no room for an optional stage.
        """
        began, aggregation = time.perf_counter(), self.aggregation
        record = env.run(self)
        found = aggregation.combine(record.values)
        seconds = time.perf_counter() - began
        env.metrics.record(self.count.method, 0, record.total, self.count.found(found), seconds, 0, record.ranges)
        return aggregation.finalize(found)
