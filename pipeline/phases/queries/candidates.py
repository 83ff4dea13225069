"""The candidates of a query, and the terms of its count, which a process makes once."""

from __future__ import annotations

from longwall.kernels.queries.candidate_space import CandidateSpace, QueryGraph
from longwall.kernels.queries.sums.counter import CACHE_BYTES, QuerySum
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import DoesNotFit, host_threads
from longwall.stages.source import host_arrays
from longwall.storage.memory.reservations import BudgetExceeded

TASKS = 16  # of a worker: each takes about 20 us, and what one of them has found is lost in a crash
STEPS = 1 << 17  # candidates that a worker tries between two looks at the limit, and whether the run is to end
_KEY = "candidates of a query"
_CACHE_SHARE = 4  # of the host's free memory one part is for caches


class _Kept:
    """The candidates of the last query, which a process makes once; sticky phases keep what they have in this way."""

    def __init__(self, query: QueryGraph, space: CandidateSpace):
        self.query, self.space = query, space
        self.sums: QuerySum | None = None

    def close(self) -> None:
        """Give their memory back."""
        if self.sums is not None:
            self.sums.close()
        self.space.close()


def candidates_of(query: QueryGraph, env: Environment) -> CandidateSpace:
    """Return the candidates of a query; those of the query before are given up.

    Raises
    ------
    DoesNotFit
        If the host's budget has no room for them.
    """
    return _kept(query, env).space


def terms_of(query: QueryGraph, env: Environment) -> QuerySum:
    """Return the terms of a query that has a match.

    Raises
    ------
    DoesNotFit
        If the host's budget has no room for them.
    """
    kept, host = _kept(query, env), env.resources.host
    if kept.sums is None:
        cache = min(CACHE_BYTES, host.free // _CACHE_SHARE // host_threads(env))
        try:
            kept.sums = QuerySum(kept.space, host.reserve, cache)
        except BudgetExceeded as error:
            raise DoesNotFit(str(error)) from None
    return kept.sums


def _kept(query: QueryGraph, env: Environment) -> _Kept:
    found = env.kept.get(_KEY)
    if found is not None and found.query == query:
        same: _Kept = found
        return same
    forget_candidates(env)
    try:
        space = CandidateSpace(host_arrays(env.graph), query, env.resources.host.reserve)
    except BudgetExceeded as error:
        raise DoesNotFit(str(error)) from None
    made = env.kept[_KEY] = _Kept(query, space)
    return made


def forget_candidates(env: Environment) -> None:
    """Give up the candidates of the last query, if there are any."""
    if (kept := env.kept.pop(_KEY, None)) is not None:
        kept.close()
