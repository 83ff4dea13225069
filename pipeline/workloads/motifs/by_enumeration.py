"""Motifs by enumeration: the connected induced subgraphs of k vertices, whatever their pattern, are counted by pattern.

Connected sets of k - 1 vertices are enumerated, each once, and of the last vertex only its possible neighbourhoods are
counted (:mod:`longwall.kernels.cpu.motifs`): so every subgraph is found once for each vertex without which it stays
connected, a number that its pattern knows.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.workspaces import MotifCounter
from longwall.kernels.patterns.pattern_codes import dictionary, growth
from longwall.pipeline.execution.adaptive_batch import make_workspace
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task
from longwall.pipeline.execution.range_workers import RangeWorker
from longwall.pipeline.execution.task_ranges import prepare_range, range_memory
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.motifs.enumeration_tasks import motif_ranges
from longwall.storage.errors import FinalError, RunError
from longwall.storage.graph.stats import GraphStats

_EXACT_BELOW = 2.0**62
_PARENTS = 2.3  # smaller sets that a connected set grows out of (measured on collaboration graphs)
_TOTALS_COPIES = 3  # of a worker's counts: its own, those of the last commit, and what is new


@dataclass(frozen=True)
class EnumerationPlan:
    """Motifs of `k` vertices by enumeration.

    Attributes
    ----------
    k
        Number of vertices.
    cost
        Estimated number of elementary steps.
    """

    k: int
    cost: float

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "motif enumeration", "k": self.k, "estimated_cost": self.cost}

    def describe(self) -> str:
        """The plan as text."""
        patterns = len(growth(self.k - 1).codes)
        return (
            f"motifs       {patterns:,} connected patterns of {self.k} vertices, induced\n"
            f"count        enumeration: every connected set of {self.k - 1} vertices once; of the last vertex, how "
            "many there are with each neighbourhood\n"
            f"estimate     {self.cost:.3g} elementary steps"
        )

    def count(self, env: Coordinator) -> list[int]:
        """Count the induced subgraphs of every connected pattern, in the order of the pattern codes."""
        grown = growth(self.k - 1)
        by_class = _count_by_class(env, self.k, self.cost)
        found = np.zeros(len(grown.codes), np.int64)
        np.add.at(found, grown.classes[:, 1:].reshape(-1), by_class[:, 1:].reshape(-1))
        counts, rest = np.divmod(found, grown.ways)
        if rest.any() or by_class[:, 0].any():
            raise RunError(f"internal fault: motifs of {self.k} vertices were not found once per removable vertex")
        return [int(count) for count in counts]


def plan_enumeration(k: int, stats: GraphStats) -> EnumerationPlan:
    """Plan the enumeration of motifs of `k` vertices."""
    neighbour_degree = stats.sum_degree_squared / max(2 * stats.num_edges, 1)
    sets = float(stats.num_edges)
    for size in range(2, k - 1):
        sets *= max(size * neighbour_degree / _PARENTS, 1.0)
    return EnumerationPlan(k, sets * neighbour_degree)


def _added(found: Sequence[tuple[list[int], list[int]]]) -> tuple[list[int], list[int]]:
    """Add up counts; return the places of those that are not 0, and the counts."""
    places, where = np.unique(np.concatenate([np.array(places, np.int64) for places, _ in found]), return_inverse=True)
    counts = np.concatenate([np.array(counts, np.int64) for _, counts in found])
    _check_size(float(np.sum(counts, dtype=np.float64)))
    totals = np.zeros(places.size, np.int64)
    np.add.at(totals, where, counts)
    return places.tolist(), totals.tolist()


def _check_size(size: float) -> None:
    if size >= _EXACT_BELOW:
        raise FinalError(f"about {size:.3g} motifs do not fit 64-bit integers: count motifs of fewer vertices")


@dataclass(frozen=True)
class MotifClassCount(Phase):
    """Count the sets of `k` - 1 vertices by class, and by the neighbours of a further vertex.

    Every partial result has the places of the counts that are not 0, and these counts.

    Attributes
    ----------
    k
        Number of vertices of the motifs.
    cost
        Estimated number of elementary steps.
    """

    k: int
    cost: float

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"motifs of {self.k} vertices"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "counting"

    @property
    def unit(self) -> str:
        """See `Phase`."""
        return "parts of the work"

    @property
    def shape(self) -> tuple[int, int]:
        """Classes, and sets of neighbours."""
        return len(dictionary(self.k - 1).codes), 1 << (self.k - 1)

    def combine(self, values: Sequence[tuple[list[int], list[int]]]) -> Sequence[Any]:
        """Add up."""
        return [_added(values)]

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the arcs."""
        return motif_ranges(env, self.k, self.cost)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' counts."""
        engine, book, (classes, sets) = env.engine, dictionary(self.k - 1), self.shape
        graph, _ = load_graph(env)

        def counter(memory: int) -> MotifCounter:
            return engine.kernels.motif_counter(engine.device, graph, self.k, book.entries, classes, memory)

        size = 8 * classes * sets * _TOTALS_COPIES * engine.workers + book.entries.nbytes
        with env.resources.host.reserve(size, "the motifs' counts"):
            yield lambda: _MotifWorker(env, make_workspace(engine, range_memory(env), counter), classes * sets)


class _MotifWorker(RangeWorker):
    def __init__(self, env: Environment, counter: MotifCounter, size: int):
        super().__init__(env, counter)
        self._counter, self._before = counter, np.zeros(size, np.int64)

    def run_part(self, first: int, last: int) -> None:
        prepare_range(self.env, first, last, NeighbourRange.ALL)
        self._counter.add(first, last)

    def take_partial(self) -> PartialResult:
        counts = self._counter.counts().reshape(-1)
        new = counts - self._before
        np.copyto(self._before, counts)
        places = np.flatnonzero(new)
        return PartialResult((places.tolist(), new[places].tolist()))


def _count_by_class(env: Coordinator, k: int, cost: float) -> NDArray[np.int64]:
    """Count by class of k - 1 vertices and neighbours of the last one: int64[classes, 2 ** (k - 1)]."""
    began = time.perf_counter()
    phase = MotifClassCount(k, cost)
    classes, sets = phase.shape
    with env.resources.host.reserve(2 * 8 * classes * sets, "the motifs' counts"):
        record = env.run(phase)
        totals = np.zeros(classes * sets, np.int64)
        size = 0.0
        for places, numbers in record.values:
            totals[places] += np.asarray(numbers, np.int64)
            size += float(np.sum(numbers, dtype=np.float64))
    _check_size(size)
    seconds = time.perf_counter() - began
    env.metrics.record("motifs", 0, record.total, int(totals.sum()), seconds, 0, len(record.done))
    return totals.reshape(phase.shape)
