"""Count the matches of a labelled query in candidate lists, which are made once and shared by all workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from longwall.kernels.queries.candidate_space import CandidateSpace, QueryGraph
from longwall.kernels.queries.matcher import QueryMatcher, bytes_for
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Phase, Task, Worker, equal_tasks
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation
from longwall.stages.export import RowLimit
from longwall.stages.source import host_arrays
from longwall.stages.stage_timer import StageTimer
from longwall.storage.memory.reservations import BudgetExceeded

_TASKS = 16  # of a worker: each takes about 20 us, and what one of them has found is lost in a crash
_STEPS = 1 << 17  # candidates that a worker tries between two looks at the limit, and whether the run is to end
_KEY = "candidates of a query"


@dataclass(frozen=True)
class QueryCount(Phase):
    """Count the mappings of a query; every partial result is a number. The work is done on the host.

    Attributes
    ----------
    query
        The query.
    title
        What it is called.
    limit
        Mappings that are wanted, None: all.
    """

    query: QueryGraph
    title: str
    limit: int | None = None

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"match {self.title}"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "counting"

    @property
    def unit(self) -> str:
        """See `Phase`."""
        return "roots"

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    @property
    def aggregation(self) -> Aggregation[int, int]:
        """See `Phase`."""
        return Aggregation(int, sum, int)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the candidates of the vertex that is matched first."""
        return equal_tasks(candidates_of(self.query, env).roots, _TASKS * env.engine.workers)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Share the candidates and the limit."""
        space, limit = candidates_of(self.query, env), RowLimit(self.limit)
        yield lambda: _QueryWorker(space, env, limit)


class _QueryWorker(Worker):
    def __init__(self, space: CandidateSpace, env: Environment, limit: RowLimit):
        try:
            self._memory = env.resources.host.reserve(bytes_for(space), "a worker's candidates")
        except BudgetExceeded as error:
            raise DoesNotFit(str(error)) from None
        self._matcher, self._env, self._limit = QueryMatcher(space), env, limit
        self._sum, self._timer, self._level = 0, StageTimer(), space.query.size - 1

    def run(self, first: int, last: int) -> None:
        """See `Worker`."""
        self._matcher.begin(first, last)
        with self._timer.time(self._level) as sample:
            sample.rows_in = last - first
            while not (self._matcher.over or self._limit.reached or self._env.cancel.is_set()):
                found = self._limit.take(self._matcher.advance(self._limit.left, _STEPS))
                self._sum += found
                sample.rows_out += found

    def take_partial(self) -> PartialResult:
        """See `Worker`."""
        found, self._sum = self._sum, 0
        return PartialResult(found, levels=self._timer.take())

    def close(self) -> None:
        """See `Worker`."""
        self._memory.release()


class _Kept:
    """The candidates of the last query, which a process makes once; sticky phases keep what they have in this way."""

    def __init__(self, query: QueryGraph, space: CandidateSpace):
        self.query, self.space = query, space

    def close(self) -> None:
        """Give their memory back."""
        self.space.close()


def candidates_of(query: QueryGraph, env: Environment) -> CandidateSpace:
    """Return the candidates of a query; those of the query before are given up.

    Raises
    ------
    DoesNotFit
        If the host's budget has no room for them.
    """
    kept = env.kept.get(_KEY)
    if kept is not None and kept.query == query:
        found: CandidateSpace = kept.space
        return found
    forget_candidates(env)
    try:
        space = CandidateSpace(host_arrays(env.graph), query, env.resources.host.reserve)
    except BudgetExceeded as error:
        raise DoesNotFit(str(error)) from None
    env.kept[_KEY] = _Kept(query, space)
    return space


def forget_candidates(env: Environment) -> None:
    """Give up the candidates of the last query, if there are any."""
    if (kept := env.kept.pop(_KEY, None)) is not None:
        kept.close()
