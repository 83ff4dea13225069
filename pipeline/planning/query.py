"""The question: the embeddings of a pattern, and what of them is wanted. It knows no machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longwall.pipeline.patterns.pattern import Pattern

Join = Literal["vertices", "edges"]
Want = Literal["count", "rows", "per_vertex", "per_edge"]


@dataclass(frozen=True)
class Query:
    """A question about the embeddings of a pattern.

    Attributes
    ----------
    pattern
        The pattern.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    limit
        The number of embeddings after which the count may end; None: all are counted.
    join
        How a search extends embeddings: by a vertex, or by an edge as binary joins do.
    want
        Their number, the embeddings themselves, or how many contain each vertex or each edge.
    """

    pattern: Pattern
    induced: bool = False
    limit: int | None = None
    join: Join = "vertices"
    want: Want = "count"

    @property
    def plain(self) -> bool:
        """Whether the pattern has no labels and a search extends by vertices: formulas count such patterns."""
        return self.pattern.labels is None and self.pattern.edge_labels is None and self.join == "vertices"
