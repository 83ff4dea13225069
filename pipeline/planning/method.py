"""The base of methods and rewrites: each proposes a plan for a query, or says why it does not apply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import About, Query, Want

LABELS = Refusal("the pattern has labels")
INDUCED = Refusal("the count is induced")
ON_PARTS = ("k-core", "pendant-vertices", "hub-removal", "star-leaves")
"""Rewrites that a plan leaves out where it is tried by these already."""


_LACKS: dict[Want, Refusal] = {
    "count": Refusal("it does not count embeddings alone"),
    "rows": Refusal("it does not list embeddings"),
    "per_vertex": Refusal("it does not count per vertex"),
    "per_edge": Refusal("it does not count per edge"),
}
_JOINS = Refusal("the search extends by edges")
_ABOUT: dict[About, Refusal] = {
    "pattern": Refusal("it answers for one pattern"),
    "motifs": Refusal("it answers for all patterns of a size"),
    "cliques": Refusal("it answers for cliques of any size, also per vertex"),
    "maximal cliques": Refusal("it answers for maximal cliques"),
}


class Named:
    """What methods and rewrites are called, and what they can give."""

    name: ClassVar[str]
    family: ClassVar[str] = ""
    """What it shares with other methods; a count is verified by one of another family. By default it shares nothing."""
    wants: ClassVar[tuple[Want, ...]] = ("count",)
    """What of the embeddings it gives."""
    about: ClassVar[About] = "pattern"
    """Which patterns the method answers for."""
    plain: ClassVar[bool] = False
    """Whether it is for plain queries alone: formulas count patterns without labels."""
    non_induced: ClassVar[bool] = False
    """Whether it is for counts that are not induced."""

    def lacks(self, query: Query) -> Refusal | None:
        """Return the refusal of a query that wants what it does not give."""
        if query.about != self.about:
            return _ABOUT[self.about]
        if query.want not in self.wants:
            return _LACKS[query.want]
        if self.plain and not query.plain:
            return _JOINS if query.join == "edges" else LABELS
        return INDUCED if self.non_induced and query.induced else None


class Method(Named, ABC):
    """A way to count the embeddings of a pattern."""

    sure: ClassVar[bool] = False
    """Whether it takes fewer steps than all methods that follow, so that they are planned only if it fails."""
    spare: ClassVar[bool] = False
    """Whether it is planned only if others fail."""

    def is_sure(self, plan: CountPlan) -> bool:  # noqa: ARG002 - of most methods all plans are, or none
        """Return whether a plan of it takes fewer steps than those of all methods that follow."""
        return self.sure

    @abstractmethod
    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:
        """Propose a plan.

        Parameters
        ----------
        query
            The query.
        facts
            About the graph; the machine is not known yet.
        planner
            Plans counts of other patterns that the plan is made of.
        """


class Rewrite(Named, ABC):
    """A way to count that depends on the cheapest plan of the methods; most derive a smaller graph."""

    @abstractmethod
    def propose(self, query: Query, facts: Facts, planner: Planning, best: CountPlan) -> CountPlan | Refusal:
        """Propose a plan; `best` is the cheapest one so far, the other parameters are those of a method."""
