"""Count induced stars around every vertex, modulo primes, on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from longwall.kernels.stars.counter import StarCounter, TakesLong, bytes_for
from longwall.kernels.stars.independent_sets import most_joined
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Phase, Task, Worker, equal_tasks, host_threads
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation
from longwall.stages.stage_timer import StageTimer
from longwall.storage.graph.derived.core import low_vertices
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import BudgetExceeded

_TASKS = 32  # of a thread
_STEPS = 1 << 26  # between two looks whether the run is to end: about a tenth of a second
_MOST_STEPS = 1 << 31  # around one vertex, which are not interrupted
_MOST_JOINED = (1 << 30) - 1  # edges between the neighbours of a vertex: both of their arcs have places of 32 bits


@dataclass(frozen=True)
class InducedStarCount(Phase):
    """Count induced stars; every partial result is a list of numbers modulo the primes.

    Attributes
    ----------
    leaves
        Leaves of a star, three at least.
    primes
        Below 2**31.
    patience
        Steps of a worker that the count is worth: with more it is given up, as if it did not fit.
    """

    on_host: ClassVar[bool] = True

    leaves: int
    primes: tuple[int, ...]
    patience: int

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"induced stars of {self.leaves} leaves"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "counting"

    @property
    def unit(self) -> str:
        """See `Phase`."""
        return "vertices"

    @property
    def aggregation(self) -> Aggregation[list[int], list[int]]:
        """See `Phase`."""
        return Aggregation(list, partial(_added, primes=self.primes), list)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the vertices that have enough neighbours."""
        return equal_tasks(centres(env.graph, self.leaves), _TASKS * host_threads(env))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Find out how large the workers' tables are."""
        graph = env.graph
        edges = int(most_joined(graph.indptr, graph.indices, graph.split, centres(graph, self.leaves)))
        edges = min(edges, graph.num_edges)
        if edges > _MOST_JOINED:
            raise DoesNotFit("a vertex may have too many edges between its neighbours")
        yield lambda: _StarWorker(self, env, edges)


def centres(graph: Graph, leaves: int) -> int:
    """Return how many vertices have so many neighbours: those of the smallest ids."""
    return graph.num_vertices - low_vertices(graph, leaves)


def _added(values: Sequence[Sequence[int]], primes: Sequence[int]) -> list[int]:
    return [sum(one) % prime for one, prime in zip(zip(*values, strict=True), primes, strict=True)]


class _StarWorker(Worker):
    def __init__(self, phase: InducedStarCount, env: Environment, edges: int):
        graph, primes = env.graph, phase.primes
        size = bytes_for(graph.num_vertices, graph.stats.max_degree, phase.leaves, len(primes), edges)
        try:
            self._memory = env.resources.host.reserve(size, "a worker's stars")
        except BudgetExceeded as error:
            raise DoesNotFit(str(error)) from None
        most = min(phase.patience, _MOST_STEPS)
        self._counter = StarCounter(graph.indptr, graph.indices, graph.split, phase.leaves, primes, edges, most)
        self._left, self._env = phase.patience, env
        self._timer, self._level = StageTimer(), phase.leaves

    def run(self, first: int, last: int) -> None:
        """See `Worker`."""
        with self._timer.time(self._level) as sample:
            sample.rows_in = last - first
            while first < last and not self._env.cancel.is_set():
                try:
                    first, steps = self._counter.advance(first, last, _STEPS)
                except TakesLong as error:
                    raise DoesNotFit("the stars of a vertex take long") from error
                self._left -= steps
                if self._left < 0:
                    raise DoesNotFit("the stars take long")

    def take_partial(self) -> PartialResult:
        """See `Worker`."""
        return PartialResult(self._counter.take(), levels=self._timer.take())

    def close(self) -> None:
        """See `Worker`."""
        self._memory.release()
