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
    most, arcs_in_all = graph.stats.max_degree, 2 * network.number_of_edges()
    assert most < walks < arcs_in_all
    for vertices, bound in ((4, walks * most), (5, walks * most**2), (3, walks), (2, most)):
        for limit, wraps in ((bound, True), (bound + 1, False), (1, True), (most ** (vertices - 1) + 1, False)):
            monkeypatch.setattr(homomorphism_count, "WRAPS_FROM", float(limit))
            assert homomorphism_count.may_wrap(vertices, graph) == wraps


def test_most_graphs_are_known_by_their_size(lab, monkeypatch):
    monkeypatch.setattr(homomorphism_count, "_most_walks", lambda _: pytest.fail("all arcs were read"))
    network = nx.barabasi_albert_graph(40, 3, seed=2)
    graph = lab.graph(network.edges)
    for limit, wraps in ((graph.stats.max_degree**2, True), (graph.stats.max_degree * len(graph.indices) + 1, False)):
        monkeypatch.setattr(homomorphism_count, "WRAPS_FROM", float(limit))
        assert homomorphism_count.may_wrap(4, graph) == wraps
