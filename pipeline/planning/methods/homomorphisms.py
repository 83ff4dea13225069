"""Signed sums of homomorphism counts, with and without lists of the common neighbours of every edge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import comb
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.homomorphisms.pattern_core import pass_costs
from longwall.pipeline.planning.homomorphisms.sums import denser, plan_homomorphisms
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal, embeddings_of
from longwall.pipeline.planning.query import Query

MAX_INDUCED_VERTICES = 5  # a tree on 6 vertices has 1,024 patterns with more edges
FEW_ABSENT_EDGES = 2  # with so few, there are few whatever the vertices


@dataclass(frozen=True)
class HomomorphismsPlan(CountPlan):
    """Signed sums of homomorphism counts, all taken by one table program.

    Attributes
    ----------
    counted
        Counts the mappings of patterns: of this one or, where its induced embeddings are counted, of all patterns with
        the same vertices and more edges, too.
    signs
        What the mappings of each are multiplied by.
    """

    counted: HomomorphismCount
    signs: tuple[int, ...]

    @property
    def needs(self) -> str:
        """Its largest part."""
        return "the common neighbours of every edge" if self.counted.sums.costs.lists else "rows"

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        sums = self.counted.sums
        coefficients: Counter[tuple[str, int]] = Counter()
        for sign, terms in zip(self.signs, sums.terms, strict=True):
            for term in terms:
                coefficients[term.kind, term.number] += sign * term.coefficient
        terms_ = [
            {"coefficient": c, "pattern": sums.counted_text(kind, n)} for (kind, n), c in coefficients.items() if c
        ]
        rows = sums.program.every_rows
        return self._facts("homomorphisms") | {
            "passes": sum(program.passes for program in rows),
            "wide_passes": sum(program.wide_passes for program in rows),
            "terms": terms_,
        }

    def describe(self) -> str:
        """The plan as text."""
        terms = "\n".join(
            f"             {one['coefficient']:+d} x hom({one['pattern']})" for one in self.to_dict()["terms"]
        )
        induced = "matching     induced, by the patterns with more edges\n" if len(self.signs) > 1 else ""
        return (
            f"{self._title()}{induced}{self.counted.describe()}\n"
            f"sum          of homomorphism counts, divided by {self.automorphisms}\n"
            f"{terms}\nestimate     {self.cost:.3g} elementary steps"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        found = self.counted.mappings(env)
        mappings = sum(sign * number for sign, number in zip(self.signs, found, strict=True))
        return embeddings_of(mappings, self.automorphisms)


class Homomorphisms(Method):
    """Sums of homomorphism counts; induced counts by those of the patterns with more edges."""

    name: ClassVar[str] = "homomorphisms"
    plain: ClassVar[bool] = True
    family: ClassVar[str] = "sums"
    lists: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the sums for a pattern without labels."""
        if query.pattern.num_vertices < 3:
            return Refusal("the pattern has two vertices")
        if query.induced and not induced_by_denser(query.pattern):
            return Refusal("too many patterns have more edges")
        patterns, signs = _summed(query)
        sums = plan_homomorphisms(patterns, replace(pass_costs(facts.stats), lists=self.lists))
        if sums is None:
            return Refusal("the pattern without its leaves is too large for tables")
        return HomomorphismsPlan(query.pattern, sums.cost, HomomorphismCount(sums), signs, method=self.name)


class HomomorphismsWithoutLists(Homomorphisms):
    """The same sums without lists of common neighbours, which take memory for every edge."""

    name: ClassVar[str] = "homomorphisms-without-lists"
    spare: ClassVar[bool] = True
    lists: ClassVar[bool] = False


def induced_by_denser(pattern: Pattern) -> bool:
    """Whether an unlabelled pattern is counted, induced, by means of the patterns with more edges."""
    absent = comb(pattern.num_vertices, 2) - len(pattern.edges)
    return pattern.num_vertices <= MAX_INDUCED_VERTICES or absent <= FEW_ABSENT_EDGES


def _summed(query: Query) -> tuple[tuple[Pattern, ...], tuple[int, ...]]:
    """Return the patterns whose mappings are summed, and the sign of each."""
    if not query.induced:
        return (Pattern(query.pattern.num_vertices, query.pattern.edges),), (1,)
    more = denser(query.pattern)
    return tuple(pattern for pattern, _ in more), tuple(sign for _, sign in more)
