"""Embeddings of a pattern, listed by a depth-first search or level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.methods.search import search_of
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query, Want
from longwall.pipeline.planning.search.search_plan import MatchPlan


@dataclass(frozen=True)
class ListingPlan(CountPlan):
    """A search that writes the embeddings that it finds, up to the limit of the run; they are its count."""

    search: MatchPlan

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self.search.to_dict()

    def describe(self) -> str:
        """The plan as text."""
        return self.search.describe()

    def count(self, env: Coordinator) -> int:
        """Write the embeddings; return how many the pattern adds to those that the run has written."""
        from longwall.pipeline.phases.listing import list_matches

        return list_matches(self.search, env, written=env.rows_written)


class Listing(Method):
    """Lists the embeddings of any pattern."""

    name: ClassVar[str] = "listing"
    family: ClassVar[str] = "search"
    wants: ClassVar[tuple[Want, ...]] = ("rows",)

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the search."""
        search = search_of(query, facts.stats)
        return ListingPlan(query.pattern, search.cost, search, method=self.name)
