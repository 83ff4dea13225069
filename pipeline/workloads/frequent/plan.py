"""What to mine frequent patterns by: the support, the threshold, and how large patterns may be."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from longwall.stages.base import Stage
    from longwall.storage.graph.graph import Graph

MAX_PATTERN_EDGES = 64
Support = Literal["mni", "instances", "transactions"]
_MEANING = {
    "mni": "the fewest different vertices that the embeddings map a pattern vertex to",
    "instances": "the number of distinct subgraphs",
    "transactions": "the number of transactions with an embedding",
}


@dataclass(frozen=True)
class FrequentPlan:
    """How frequent patterns are mined.

    Attributes
    ----------
    support
        What is counted.
    min_support
        Least support of a frequent pattern.
    max_edges, max_vertices
        Largest patterns.
    embeddings
        Whether the embeddings are written.
    exact
        Whether supports and instances are counted to the end.
    """

    support: Support
    min_support: int
    max_edges: int
    max_vertices: int
    embeddings: bool
    exact: bool

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data, for the manifest."""
        return {"kind": "frequent patterns"} | asdict(self)

    def passes(self) -> list[tuple[Stage, ...]]:
        """The stages of every pass over the rows of a level, in order."""
        from longwall.stages.export import WRITE_LEVEL
        from longwall.stages.extension.grow_patterns import COUNT, GROW, MARK

        passes = [COUNT] if self.exact else []
        if self.support != "instances":
            passes.append(MARK["groups" if self.support == "transactions" else "images"])
        return [*passes, GROW, WRITE_LEVEL] if self.embeddings else [*passes, GROW]

    def describe(self) -> str:
        """The plan as text."""
        passes = self.passes()
        rare = "" if self.support == "instances" else "; edges of rare types are left out of the graph"
        lines = [
            f"patterns     connected, up to {self.max_edges} edges and {self.max_vertices} vertices, "
            "each once as its minimum DFS code",
            f"support      {self.support}: {_MEANING[self.support]}; at least {self.min_support:,}",
            f"count        {'to the end' if self.exact else 'until it is known what is frequent'}",
            f"growth       level by level along the rightmost path, in {len(passes)} passes over each level{rare}",
        ]
        return "\n".join([*lines, *(stage.describe() for stages in passes for stage in stages)])


def plan_frequent(
    graph: Graph,
    support: Support,
    min_support: int | float,
    *,
    max_edges: int | None,
    max_vertices: int | None,
    embeddings: bool,
    exact: bool,
) -> FrequentPlan:
    """Plan for a graph.

    Parameters
    ----------
    graph
        The data graph.
    support
        What is counted.
    min_support
        Least support of a frequent pattern: an integer, or a share of the transactions or vertices as a float.
    max_edges, max_vertices
        Largest patterns; None: as large as the other one, or Longwall, allows.
    embeddings
        Whether the embeddings are written.
    exact
        Whether supports and instances are counted to the end.

    Raises
    ------
    InputError
        If the graph cannot have such a support.
    """
    if support == "transactions" and not graph.num_transactions:
        raise InputError(
            'workload.support = "transactions", but the graph has no transactions: add graph.transactions, or give a '
            'file of transactions and kind = "transactions"'
        )
    if support == "mni" and graph.num_vertices >= 2**31:
        raise InputError("the images of pattern vertices are counted in graphs of fewer than 2^31 vertices")
    of, most = (
        ("transactions", graph.num_transactions) if support == "transactions" else ("vertices", graph.num_vertices)
    )
    wanted = math.ceil(Fraction(repr(min_support)) * most) if isinstance(min_support, float) else min_support
    if support != "instances" and wanted > most > 0:
        raise InputError(f"workload.min_support: {wanted:,} is above the graph, which has {most:,} {of}")
    edges = max_edges or MAX_PATTERN_EDGES
    vertices = min(max_vertices or edges + 1, edges + 1)
    return FrequentPlan(support, wanted, edges, vertices, embeddings, exact)
