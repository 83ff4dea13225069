"""The candidates of a query, and the terms of its count, which a process makes once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from longwall.kernels.host.queries.candidate_space import CandidateSpace, QueryGraph
from longwall.kernels.host.queries.densest_part import densest_part, part_bytes
from longwall.kernels.host.queries.sums.counter import CACHE_BYTES, QuerySum
from longwall.pipeline.execution.derived import Derivation, derived
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import NotEnoughMemory, host_threads
from longwall.stages.source import host_arrays
from longwall.storage.memory.reservations import BudgetExceeded, Reservation

TASKS = 16  # of a worker: each takes about 20 us, and what one of them has found is lost in a crash
STEPS = 1 << 17  # candidates that a worker tries between two looks at the limit, and whether the run is to end
_CACHE_SHARE = 4  # of the host's free memory one part is for caches


class CandidatesAndTerms:
    """The candidates of a query, and the terms of its count once a caller needs them.

    Parameters
    ----------
    space
        The candidates.
    part
        Reserves the bytes of the subgraph that has the candidates; None: they are vertices of the run's graph.
    """

    def __init__(self, space: CandidateSpace, part: Reservation | None = None):
        self.space, self._part = space, part
        self.terms: QuerySum | None = None

    def close(self) -> None:
        """Release their memory."""
        if self.terms is not None:
            self.terms.close()
        self.space.close()
        if self._part is not None:
            self._part.release()


@dataclass(frozen=True)
class Candidates(Derivation[CandidatesAndTerms]):
    """The candidates of a query.

    Attributes
    ----------
    query
        The query.
    among
        The number of vertices, those of highest degree, that may be candidates; None: all.
    """

    last_only: ClassVar[bool] = True

    query: QueryGraph
    among: int | None = None

    def build(self, env: Environment) -> CandidatesAndTerms:
        """Find the candidates on the host."""
        graph, reserve = host_arrays(env.graph), env.resources.host.reserve
        if self.among is None:
            return CandidatesAndTerms(CandidateSpace(graph, self.query, reserve))
        part = reserve(part_bytes(graph, self.among), "the subgraph of the vertices of highest degree")
        try:
            return CandidatesAndTerms(CandidateSpace(densest_part(graph, self.among), self.query, reserve), part)
        except BaseException:
            part.release()
            raise


def candidates_of(query: QueryGraph, env: Environment, among: int | None = None) -> CandidateSpace:
    """Return the candidates of a query; those of the query before are released.

    Raises
    ------
    NotEnoughMemory
        If the host's budget has no room for them.
    """
    return derived(env, Candidates(query, among)).space


def terms_of(query: QueryGraph, env: Environment) -> QuerySum:
    """Return the terms of a query that has a match.

    Raises
    ------
    NotEnoughMemory
        If the host's budget has no room for them.
    """
    found, host = derived(env, Candidates(query)), env.resources.host
    if found.terms is None:
        cache = min(CACHE_BYTES, host.free // _CACHE_SHARE // host_threads(env))
        try:
            found.terms = QuerySum(found.space, host.reserve, cache)
        except BudgetExceeded as error:
            raise NotEnoughMemory(str(error)) from None
    return found.terms
