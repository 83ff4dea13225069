"""Count stars around every vertex, modulo primes, on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.stars.counter import ChoiceCounter, Counter, StarCounter, TakesLong, bytes_for
from longwall.kernels.host.stars.independent_sets import most_joined
from longwall.kernels.host.stars.polynomials import Leaves
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import (
    MakeWorker,
    NotEnoughMemory,
    Phase,
    Task,
    TooExpensive,
    Worker,
    equal_tasks,
    host_threads,
)
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation
from longwall.stages.stage_timer import StageTimer
from longwall.storage.graph.derived.core import low_vertices
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import BudgetExceeded

_TASKS = 32  # of a thread
_STEPS = 1 << 26  # between two looks whether the run is to end: about a tenth of a second
_MOST_STEPS = 1 << 31  # around one vertex, which are not interrupted
_FITTING_BYTES = 3  # of a vertex, while its kind of leaf is determined
_MOST_JOINED = (1 << 30) - 1  # edges between the neighbours of a vertex: both of their arcs have places of 32 bits


@dataclass(frozen=True)
class Star:
    """A star of two leaves at least.

    Attributes
    ----------
    centre
        The label of the centre, or ``ANY_LABEL``.
    wanted
        The labels that leaves must have, ascending.
    leaves
        The leaves.
    induced
        Whether leaves must be pairwise non-adjacent.
    """

    centre: int
    wanted: tuple[int, ...]
    leaves: Leaves
    induced: bool

    @classmethod
    def of(cls, pattern: Pattern, *, induced: bool) -> Star:
        """Return the star that a pattern is."""
        degrees = [len(near) for near in pattern.neighbours]
        centre = degrees.index(max(degrees))
        labels = [pattern.label(v) for v in range(pattern.num_vertices) if v != centre]
        wanted = tuple(sorted(set(labels) - {ANY_LABEL}))
        leaves = Leaves(tuple(map(labels.count, wanted)), labels.count(ANY_LABEL))
        return cls(pattern.label(centre), wanted, leaves, induced)

    def __str__(self) -> str:
        named = [f"{number} x {label}" for label, number in zip(self.wanted, self.leaves.named, strict=True)]
        labels = f", labels {', '.join(named)}" if named else ""
        centre = f", centre {self.centre}" if self.centre != ANY_LABEL else ""
        return f"{'induced ' if self.induced else ''}stars of {self.leaves.number} leaves{labels}{centre}"


@dataclass(frozen=True)
class StarCount(Phase):
    """Count stars; every partial result is a list of numbers modulo the primes.

    Attributes
    ----------
    star
        The star to count.
    primes
        Below 2**31.
    patience
        The most steps of a worker: if it takes more, the count is given up, as if it did not fit.
    """

    on_host: ClassVar[bool] = True

    star: Star
    primes: tuple[int, ...]
    patience: int
    activity = "counting"
    unit = "vertices"

    @property
    def name(self) -> str:
        """See `Phase`."""
        return str(self.star)

    @property
    def aggregation(self) -> Aggregation[list[int], list[int]]:
        """See `Phase`."""
        return Aggregation(list, partial(_added, primes=self.primes), list)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the vertices that have enough neighbours."""
        return equal_tasks(centres(env.graph, self.star.leaves.number), _TASKS * host_threads(env))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Find the vertices that leaves and the centre can be mapped to, and the size of the workers' tables."""
        graph, edges = env.graph, 0
        if self.star.induced:
            edges = int(most_joined(graph.indptr, graph.indices, graph.split, centres(graph, self.star.leaves.number)))
            edges = min(edges, graph.num_edges)
        if edges > _MOST_JOINED:
            raise TooExpensive("a vertex may have too many edges between its neighbours")
        try:
            memory = env.resources.host.reserve(_FITTING_BYTES * graph.num_vertices, "which leaves vertices can be")
        except BudgetExceeded as error:
            raise NotEnoughMemory(str(error)) from None
        with memory:
            fitting = _fitting(self.star, graph)
            yield lambda: _StarWorker(self, env, fitting, edges)


class _Fitting(NamedTuple):
    """The kind of leaf that each vertex can be, and whether it can be the centre; see `ChoiceCounter`."""

    kinds: NDArray[np.int8]
    centres: NDArray[np.bool_]


def _fitting(star: Star, graph: Graph) -> _Fitting:
    kinds = np.full(graph.num_vertices, len(star.wanted) if star.leaves.free else -1, np.int8)
    fits = np.ones(graph.num_vertices, np.bool_)
    if graph.labels is not None:
        for kind, label in enumerate(star.wanted):
            kinds[graph.labels == label] = kind
        if star.centre != ANY_LABEL:
            fits = graph.labels == star.centre
    return _Fitting(kinds, fits)


def centres(graph: Graph, leaves: int) -> int:
    """Return how many vertices have a given number of neighbours: those of the smallest ids."""
    return graph.num_vertices - low_vertices(graph, leaves)


def _added(values: Sequence[Sequence[int]], primes: Sequence[int]) -> list[int]:
    return [sum(one) % prime for one, prime in zip(zip(*values, strict=True), primes, strict=True)]


class _StarWorker(Worker):
    def __init__(self, phase: StarCount, env: Environment, fitting: _Fitting, edges: int):
        graph, primes, leaves = env.graph, phase.primes, phase.star.leaves
        size = 0
        if phase.star.induced:
            size = bytes_for(graph.num_vertices, graph.stats.max_degree, leaves, len(primes), edges)
        try:
            self._memory = env.resources.host.reserve(size, "a worker's stars")
        except BudgetExceeded as error:
            raise NotEnoughMemory(str(error)) from None
        most, counter = (
            min(phase.patience, _MOST_STEPS),
            ChoiceCounter(graph.indptr, graph.indices, *fitting, leaves, primes),
        )
        self._counter: Counter = counter
        if phase.star.induced:
            self._counter = StarCounter(graph.indptr, graph.indices, graph.split, *fitting, leaves, primes, edges, most)
        self._left, self._env = phase.patience, env
        self._timer, self._level = StageTimer(), leaves.number

    def run(self, first: int, last: int) -> None:
        """See `Worker`."""
        with self._timer.time(self._level) as sample:
            sample.rows_in = last - first
            while first < last and not self._env.cancel.is_set():
                try:
                    first, steps = self._counter.advance(first, last, _STEPS)
                except TakesLong as error:
                    raise TooExpensive("the stars of a vertex take long") from error
                self._left -= steps
                if self._left < 0:
                    raise TooExpensive("the stars take long")

    def take_partial(self) -> PartialResult:
        """See `Worker`."""
        return PartialResult(self._counter.take(), levels=self._timer.take())

    def close(self) -> None:
        """See `Worker`."""
        self._memory.release()
