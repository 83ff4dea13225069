"""Count maximal cliques, by size or per vertex, over ranges of their earliest vertices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import CliqueCounter, VertexCounter
from longwall.pipeline.execution.adaptive_batch import make_workspace
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task
from longwall.pipeline.execution.range_workers import RangeWorker
from longwall.pipeline.execution.task_ranges import range_memory, vertex_tasks
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.maximal_cliques.order import degeneracy_order


@dataclass(frozen=True)
class CliqueSizes(Phase):
    """Count maximal cliques by size; every partial result is a list of counts, by the number of vertices.

    Attributes
    ----------
    min_size
        Vertices of the smallest cliques that are wanted.
    """

    min_size: int

    @property
    def name(self) -> str:
        """See `Phase`."""
        return "maximal cliques"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "counting"

    def combine(self, values: Sequence[list[int]]) -> Sequence[list[int]]:
        """Add up."""
        return [[sum(counts) for counts in zip_longest(*values, fillvalue=0)]]

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the vertices."""
        return vertex_tasks(env, 0.0)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Make the degeneracy order."""
        order, (graph, _) = degeneracy_order(env), load_graph(env)
        kernels, device, least = env.engine.kernels, env.engine.device, self.min_size

        def counter(memory: int) -> CliqueCounter:
            return kernels.maximal_clique_counter(device, graph, order, least, memory)

        yield lambda: _SizesWorker(env, make_workspace(env.engine, range_memory(env), counter))


class _SizesWorker(RangeWorker):
    def __init__(self, env: Environment, counter: CliqueCounter):
        super().__init__(env, counter)
        self._counter, self._before = counter, np.zeros_like(counter.counts())

    def run_part(self, first: int, last: int) -> None:
        self._counter.add(first, last)

    def take_partial(self) -> PartialResult:
        counts = self._counter.counts()
        new = counts - self._before
        np.copyto(self._before, counts)
        return PartialResult(np.trim_zeros(new, "b").tolist())


@dataclass(frozen=True)
class CliquesPerVertex(CountPerVertex):
    """Count the maximal cliques of every vertex, and find the size of its largest one.

    Attributes
    ----------
    min_size
        Vertices of the smallest cliques that are wanted.
    """

    min_size: int

    @property
    def name(self) -> str:
        """See `Phase`."""
        return "maximal cliques per vertex"

    @property
    def rows(self) -> int:
        """Cliques of every vertex, the size of its largest one, and at place s - 1 all cliques of s vertices."""
        return 3

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the vertices."""
        return vertex_tasks(env, self.cost)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Make the degeneracy order."""
        degeneracy_order(env)
        with super().open(env) as make_worker:
            yield make_worker

    def counter(self, env: Environment, graph: GraphArrays, memory: int) -> VertexCounter:
        """See `CountPerVertex`."""
        order, device = degeneracy_order(env), env.engine.device
        return env.engine.kernels.maximal_clique_vertex_counter(device, graph, order, self.min_size, memory)

    def fold(self, total: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add counts up; of the sizes of the largest cliques take the larger ones."""
        np.maximum(total[1], counts[1], out=total[1])
        total[0] += counts[0]
        total[2] += counts[2]
