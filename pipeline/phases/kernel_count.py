"""Count cliques or 4-cycles with a kernel of their own, over ranges of arcs or of vertices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.workspaces import RangeCounter
from longwall.pipeline.execution.adaptive_batch import make_workspace
from longwall.pipeline.execution.device_graph import grow_page_cache, growing_page_cache, load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Phase, Task
from longwall.pipeline.execution.range_workers import SumWorker
from longwall.pipeline.execution.task_ranges import arc_tasks, prepare_range, range_memory, range_reads, vertex_tasks

Method = Literal["clique bitmaps", "wedge aggregation"]


@dataclass(frozen=True)
class KernelCount(Phase):
    """Count the embeddings of one pattern; every partial result is a number.

    Attributes
    ----------
    method
        ``"clique bitmaps"``, over arcs, or ``"wedge aggregation"``, which counts 4-cycles over vertices.
    k
        Vertices of the pattern.
    cost
        Estimated number of elementary steps.
    """

    method: Method
    k: int
    cost: float

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"{self.method} of {self.k} vertices"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "counting"

    @property
    def over_vertices(self) -> bool:
        """Whether roots are vertices."""
        return self.method == "wedge aggregation"

    def combine(self, values: Sequence[int]) -> Sequence[int]:
        """Add up."""
        return [sum(values)]

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the roots; both kinds are cut by arcs."""
        return (vertex_tasks if self.over_vertices else arc_tasks)(env, self.cost)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Let the page cache grow, where the kernel reads copies of pages."""
        graph, _ = load_graph(env)
        kernels, device, k = env.engine.kernels, env.engine.device, self.k
        reads = range_reads(self.tasks(env), graph)

        def counter(memory: int) -> RangeCounter:
            if self.over_vertices:
                return kernels.four_cycle_counter(device, graph, memory)
            return kernels.clique_counter(device, graph, k, memory)

        def make_worker() -> _KernelCountWorker:
            try:
                worker = _KernelCountWorker(env, make_workspace(env.engine, range_memory(env), counter), self)
            except WorkspaceTooLarge as error:
                raise DoesNotFit from error
            if not self.over_vertices:
                grow_page_cache(env, reads)
            return worker

        with growing_page_cache(env):
            yield make_worker


class _KernelCountWorker(SumWorker):
    def __init__(self, env: Environment, counter: RangeCounter, phase: KernelCount):
        super().__init__(env, counter)
        self._counter, self._over_vertices = counter, phase.over_vertices
        self._reads = NeighbourRange.ALL if phase.over_vertices else NeighbourRange.SMALLER

    def count(self, first: int, last: int) -> int:
        over_vertices = self._over_vertices
        prepare_range(self.env, first, last, self._reads, vertices=over_vertices, copies=not over_vertices)
        return self._counter.count(first, last)
