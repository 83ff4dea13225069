"""Depth-first search by a matching order: it counts or lists any pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query, Want
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import (
    MAX_SUFFIX,
    plan_edge_joins,
    plan_labelled_edges,
    plan_match,
)
from longwall.storage.graph.stats import GraphStats

_STEPS = 50.0  # of an embedding and vertex, in elementary steps


@dataclass(frozen=True)
class SearchPlan(CountPlan):
    """Depth-first search by a matching order."""

    search: MatchPlan
    stops: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.search.to_dict()

    def describe(self) -> str:
        """The plan as text."""
        return self.search.describe()

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        from longwall.pipeline.phases.search_count import count_matches

        return count_matches(self.search, env)

    def count_up_to(self, limit: int, env: Coordinator) -> int:
        """Count at most `limit` embeddings."""
        from longwall.pipeline.phases.search_count import count_matches

        return count_matches(self.search, env, limit)


@dataclass(frozen=True)
class ListingPlan(SearchPlan):
    """A search that writes the embeddings that it finds, up to the limit of the run; they are its count."""

    def count(self, env: Coordinator) -> int:
        """Write the embeddings; return how many the pattern adds to those that the run has written."""
        from longwall.pipeline.phases.listing import list_matches

        return list_matches(self.search, env, written=env.rows_written)

    def count_up_to(self, limit: int, env: Coordinator) -> int:  # noqa: ARG002 - the run has the limit of its rows
        """Write the embeddings, as `count` does."""
        return self.count(env)


class Search(Method):
    """Depth-first search, which ends at a limit."""

    name: ClassVar[str] = "search"
    family: ClassVar[str] = "search"

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the search."""
        search = search_of(query, facts.stats)
        cost = search.cost if query.limit is None else min(search.cost, steps_to(query.limit, query.pattern))
        return SearchPlan(query.pattern, cost, search, method=self.name)


class Listing(Method):
    """Lists the embeddings of any pattern."""

    name: ClassVar[str] = "listing"
    family: ClassVar[str] = "search"
    wants: ClassVar[tuple[Want, ...]] = ("rows",)

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the search."""
        search = search_of(query, facts.stats)
        return ListingPlan(query.pattern, search.cost, search, method=self.name)


def search_of(query: Query, stats: GraphStats) -> MatchPlan:
    """Compile the search for a query.

    A search with a limit counts the last vertex of the pattern alone as a number: more vertices may lead to numbers
    that 64 bits do not hold, long after the limit.
    """
    pattern, induced, counting = query.pattern, query.induced, query.want == "count"
    if pattern.edge_labels is not None:
        joining = query.join == "edges"
        return plan_labelled_edges(pattern, stats, induced=induced, counting=counting, joining=joining)
    if query.join == "edges":
        return plan_edge_joins(pattern, stats, induced=induced, counting=counting)
    if not counting:
        return plan_match(pattern, stats, induced=induced, counting=False)
    return plan_match(pattern, stats, induced=induced, longest_suffix=MAX_SUFFIX if query.limit is None else 1)


def ends_early(query: Query, best: CountPlan) -> bool:
    """Return whether a search is expected to end at the limit of a query before the best plan has answered."""
    return query.limit is not None and steps_to(query.limit, query.pattern) <= best.cost


def steps_to(limit: int, pattern: Pattern) -> float:
    """Return the steps in which a search finds `limit` embeddings."""
    return limit * pattern.num_vertices * _STEPS
