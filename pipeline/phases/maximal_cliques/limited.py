"""Count maximal cliques up to a limit: fetched as a list is, since kernels that count do not pause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.maximal_cliques import CliqueLister
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker
from longwall.pipeline.execution.stage_workers import StageWorker
from longwall.pipeline.phases.maximal_cliques.listing import SCAN, FetchCliques, clique_lister
from longwall.pipeline.phases.maximal_cliques.order import ordered_graph
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation, Stage
from longwall.stages.cliques.maximal import SEARCH, add_sizes
from longwall.stages.export import RowLimit

_MOST_ROOM = 1 << 16  # vertices of the cliques that are fetched at a time
_FETCHED_BYTES = 32  # of a vertex that is fetched, with its offset and the size of its clique


@dataclass(frozen=True)
class CountSomeCliques(Stage):
    """Count maximal cliques of at least `min_size` vertices by size, those whose earliest vertices are in a range."""

    min_size: int
    limit: int

    verb = "count"

    def describe(self) -> str:
        """See `Stage`."""
        wanted = f"maximal cliques of at least {self.min_size} vertices, by size, until there are {self.limit}"
        return f"count        {wanted}: {SEARCH}"

    def run(self, chunk: tuple[int, int], context: _CountWorker) -> Iterable[Any]:
        """Fetch cliques as long as some are wanted."""
        context.lister.begin(*chunk)
        while not context.done and (found := context.lister.following()) is not None:
            context.add(found[0])
        return ()


@dataclass(frozen=True)
class CliquesUpTo(FetchCliques):
    """Count maximal cliques by size up to a limit: place s of a value has the number of those of s vertices."""

    limit: int
    name = "count maximal cliques up to a limit"
    activity = "counting"
    aggregation = Aggregation(list, add_sizes, list)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What the ranges go through."""
        return SCAN, CountSomeCliques(self.min_size, self.limit)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Make the degeneracy order, and reserve what the workers fetch."""
        graph = ordered_graph(env)
        capacity = max(_MOST_ROOM, graph.order.degeneracy + 1)
        limit = RowLimit(self.limit)

        def make_worker() -> _CountWorker:
            lister = clique_lister(env, graph, self.min_size, capacity)
            return _CountWorker(env, self.stages, lister, limit if env.alone else RowLimit(self.limit))

        with env.resources.host.reserve(capacity * _FETCHED_BYTES * env.engine.workers, "cliques that are counted"):
            yield make_worker

    def run(self, env: Coordinator) -> list[int]:
        """Count, of what is wanted, what an earlier attempt has not found."""
        before: list[int] = self.aggregation.result(env.log.values(self.name))
        found: list[int] = self.aggregation.result(env.run(CliquesUpTo(self.min_size, self.limit - sum(before))).values)
        return found


class _CountWorker(StageWorker):
    """Fetches cliques and counts their sizes."""

    def __init__(self, env: Environment, stages: Sequence[Stage], lister: CliqueLister, limit: RowLimit):
        super().__init__(env, stages, lister)
        self.lister, self._limit, self._sizes = lister, limit, list[int]()

    @property
    def done(self) -> bool:
        """Whether no more cliques are wanted, or the run is to end."""
        return self._limit.reached or super().done

    def add(self, offsets: NDArray[np.int64]) -> None:
        """Count cliques, as far as the limit allows."""
        granted = self._limit.take(len(offsets) - 1)
        sizes: list[int] = np.bincount(np.diff(offsets[: granted + 1])).tolist()
        self._sizes = add_sizes([self._sizes, sizes])
        if (share := self._limit.share) is not None:
            self.env.observer.near_limit(share)

    def take_partial(self) -> PartialResult:
        """Return the sizes that were counted."""
        found, self._sizes = self._sizes, []
        return PartialResult(found)
