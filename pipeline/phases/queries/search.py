"""Count the matches of a labelled query in candidate lists, which are made once and shared by all workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from longwall.kernels.host.queries.candidate_space import CandidateSpace, QueryGraph
from longwall.kernels.host.queries.matcher import QueryMatcher, bytes_for
from longwall.kernels.host.queries.saturating import HUGE
from longwall.pipeline.execution.derived import made
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
from longwall.pipeline.phases.queries.candidates import STEPS, TASKS, Candidates, candidates_of
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation
from longwall.stages.export import RowLimit
from longwall.stages.stage_timer import StageTimer
from longwall.storage.memory.reservations import BudgetExceeded

MOST_WANTED = int(HUGE)
"""The largest limit in mappings for which parts of the count may saturate."""


@dataclass(frozen=True)
class QueryCount(Phase):
    """Count the mappings of a query; every partial result is a number. The work is done on the host.

    Attributes
    ----------
    query
        The query.
    title
        The name of the phase.
    limit
        The number of mappings to find, at most `MOST_WANTED`; None: all. Without a limit, the search is given up, as if
        it did not fit, if a part of the count does not fit 64-bit integers.
    patience
        Candidates that each worker tries before the search is given up, as if it did not fit; None: no bound.
    among
        The number of vertices, those of highest degree, that may be matched; None: all.
    alone
        Whether one worker does the search as one task: a short search ends before other workers have begun.
    """

    on_host: ClassVar[bool] = True

    query: QueryGraph
    title: str
    limit: int | None = None
    patience: int | None = None
    among: int | None = None
    alone: bool = False
    activity = "counting"
    unit = "roots"
    aggregation = Aggregation(int, sum, int)

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"match {self.title}" + (f", among the {self.among} vertices of highest degree" if self.among else "")

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    def prepare(self, env: Environment) -> None:
        """Find the candidates."""
        candidates_of(self.query, env, self.among)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the candidates of the vertex that is matched first."""
        pieces = 1 if self.alone else TASKS * host_threads(env)
        return equal_tasks(made(env, Candidates(self.query, self.among)).space.roots, pieces)

    def threads(self, env: Environment) -> int:
        """See `Phase`."""
        return 1 if self.alone else super().threads(env)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Share the candidates and the limit."""
        space, limit = candidates_of(self.query, env, self.among), RowLimit(self.limit)
        yield lambda: _QueryWorker(space, env, limit, self.patience)


class _QueryWorker(Worker):
    def __init__(self, space: CandidateSpace, env: Environment, limit: RowLimit, patience: int | None):
        try:
            self._memory = env.resources.host.reserve(bytes_for(space), "a worker's candidates")
        except BudgetExceeded as error:
            raise NotEnoughMemory(str(error)) from None
        self._matcher, self._env, self._limit = QueryMatcher(space), env, limit
        self._patience, self._tried = patience, 0
        self._sum, self._timer, self._level = 0, StageTimer(), space.query.size - 1

    def run(self, first: int, last: int) -> None:
        """See `Worker`."""
        self._matcher.begin(first, last)
        with self._timer.time(self._level) as sample:
            sample.rows_in = last - first
            while not (self._matcher.over or self._limit.reached or self._env.cancel.is_set()):
                found = self._limit.take(self._advance())
                self._sum += found
                sample.rows_out += found

    def _advance(self) -> int:
        """Try some candidates; return the mappings that were found."""
        steps = STEPS
        if self._patience is not None:
            steps = min(STEPS, self._patience - self._tried)
            if steps <= 0:
                raise TooExpensive("the search takes long")
            self._tried += steps
        try:
            return self._matcher.advance(self._limit.left, steps)
        except OverflowError as error:
            raise NotEnoughMemory(str(error)) from None

    def take_partial(self) -> PartialResult:
        """See `Worker`."""
        found, self._sum = self._sum, 0
        return PartialResult(found, levels=self._timer.take())

    def close(self) -> None:
        """See `Worker`."""
        self._memory.release()
