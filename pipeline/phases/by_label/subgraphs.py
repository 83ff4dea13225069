"""Plans that count distinct subgraphs of a pattern whose subgraphs can have several embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent
from typing import Any

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.label_names import label_texts
from longwall.pipeline.planning.plan import CountPlan


@dataclass(frozen=True)
class CountSubgraphs(CountPlan):
    """A signed sum of numbers of embeddings of patterns with more labels (`longwall.pipeline.patterns.placements`).

    Attributes
    ----------
    terms
        Coefficients, each with the plan of the count that it multiplies; first 1 and the plan of the pattern itself.
    most
        The largest number of embeddings of one subgraph.
    """

    terms: tuple[tuple[int, CountPlan], ...]
    most: int

    @property
    def question(self) -> Any:
        """See `CountPlan`."""
        return [[coefficient, plan.question] for coefficient, plan in self.terms]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts("subgraphs") | {
            "labels": self.pattern.labels,
            "edge_labels": self.pattern.edge_labels,
            "terms": [{"coefficient": c, "plan": plan.to_dict()} for c, plan in self.terms],
        }

    def describe(self) -> str:
        """The plan as text."""
        terms = "\n".join(
            f"{c:+d} x embeddings{_labels(plan)} of\n{indent(plan.describe(), '    ')}" for c, plan in self.terms
        )
        return (
            f"{self._title()}counted      distinct subgraphs: one fits the labels in up to {self.most} ways, so the "
            f"embeddings with more labels\n             are taken away and added:\n{terms}"
        )

    def count(self, env: Coordinator) -> int:
        """Count the distinct subgraphs."""
        return sum(coefficient * plan.count(env) for coefficient, plan in self.terms)

    def count_up_to(self, limit: int, env: Coordinator) -> int:
        """Count at most `limit` distinct subgraphs: ``limit * most`` embeddings show that `limit` exist."""
        (_, plan), *others = self.terms
        found = plan.count_up_to(limit * self.most, env)
        if found >= limit * self.most:
            return limit
        return found + sum(coefficient * plan.count(env) for coefficient, plan in others)


def _labels(plan: CountPlan) -> str:
    """Return the labels that distinguish a term from the others."""
    pattern = plan.pattern
    shown = [
        f"{what} {' '.join('any' if label is None else str(label) for label in labels)}"
        for what, given in (("labels", pattern.labels), ("edge labels", pattern.edge_labels))
        if (labels := label_texts(given, None)) is not None
    ]
    return f" with {' and '.join(shown)}" if shown else ""
