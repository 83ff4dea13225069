"""Whether the steps of a count are worth making a smaller graph first."""

from __future__ import annotations

from longwall.pipeline.planning.facts import Facts
from longwall.storage.graph.derived.core import low_vertices
from longwall.storage.graph.graph import Graph

_LONG = 1e7  # steps of a count that is worth looking for a core
_STEPS_PER_ARC = 50.0  # and for each arc: to peel a graph takes about two of them, to make its core four more
_DEVICE = 100.0  # how much faster a device counts than the core of the host that peels
_FEW_LOW = 1 / 16  # of the edges are peeled at once, or more; with fewer, the core is most of the graph


def worth_a_core(cost: float, graph: Graph, least: int) -> bool:
    """Return whether a count of `cost` steps is worth looking for a core, which probably lacks many of the edges.

    The degrees of the vertices that are peeled at once bound these edges: in R-MAT graphs such vertices are many, but
    have few of the edges.
    """
    return worth_making(cost, graph) and low_vertices(graph, least) * (least - 1) >= _FEW_LOW * graph.num_edges


def worth_making(cost: float, graph: Graph) -> bool:
    """Return whether a count of `cost` steps takes much longer than to make a part of the graph on the host."""
    return cost >= least_cost(graph)


def pays_on_engine(cost: float, facts: Facts) -> bool:
    """Return whether a count of `cost` steps, which is worth looking for a core on the host, is where it is counted.

    R-MAT 16 on an H200: its 5-cycles take 7 ms, its core 35.
    """
    assert facts.graph is not None, "the machine is known, so the graph is there"
    return facts.rewriting and (not facts.on_device or cost >= _DEVICE * least_cost(facts.graph))


def least_cost(graph: Graph) -> float:
    """Return the steps above which a count takes much longer than making a part of the graph on the host."""
    return max(_LONG, _STEPS_PER_ARC * 2 * graph.num_edges)


def too_quick(cost: float, facts: Facts, what: str) -> str:
    """Return why a count does not repay the host's work before it, such as "to make the core"; "" if it does."""
    return "" if pays_on_engine(cost, facts) else f"{what} takes longer than the count"
