"""Candidates of small queries, with a budget that keeps the books."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import naive
from hypothesis import HealthCheck, settings

from longwall.kernels.host.queries.candidate_space import CandidateSpace, QueryGraph
from longwall.stages.source import host_arrays

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@dataclass
class Budget:
    """Keeps the books."""

    held: list[int] = field(default_factory=list)

    def reserve(self, size: int, what: str) -> Any:
        assert size > 0
        assert what
        self.held.append(size)
        return Held(self, size)


@dataclass
class Held:
    budget: Budget
    size: int

    def release(self) -> None:
        self.budget.held.remove(self.size)


def query_graph(query: naive.Query) -> QueryGraph:
    near = [0] * query.size
    for u, v in query.edges:
        near[u] |= 1 << v
        near[v] |= 1 << u
    return QueryGraph(tuple(near), query.labels or (-1,) * query.size, query.induced)


def space_of(lab: Any, edges: Any, labels: dict[int, int] | None, query: naive.Query, budget: Budget) -> CandidateSpace:
    return CandidateSpace(host_arrays(lab.graph(edges, labels)), query_graph(query), budget.reserve)
