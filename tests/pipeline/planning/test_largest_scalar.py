"""The bound below which homomorphism counts cannot wrap around."""

import networkx as nx
import pytest
from selection import slow_but_first

from longwall.pipeline.phases.homomorphisms import count as homomorphism_count


@pytest.mark.parametrize("arcs", slow_but_first([7, 1, 1 << 22]))
def test_it_bounds_every_tree(lab, monkeypatch, arcs):
    monkeypatch.setattr(homomorphism_count, "_ARCS_AT_ONCE", arcs)
    network = nx.barabasi_albert_graph(40, 3, seed=2)
    graph = lab.graph(network.edges)
    walks = max(sum(network.degree(x) for x in network[v]) for v in network)
    monkeypatch.setattr(homomorphism_count, "WRAPS_FROM", 1.0)
    assert homomorphism_count.largest_scalar(4, graph) == walks * graph.stats.max_degree
    monkeypatch.setattr(homomorphism_count, "WRAPS_FROM", 2.0**62)
    assert homomorphism_count.largest_scalar(4, graph) == float(graph.stats.max_degree) ** 3
