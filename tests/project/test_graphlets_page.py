"""The page of graphlets: each name is that of the graph which is drawn, and each orbit has a vertex."""

from __future__ import annotations

import re

import networkx as nx
from cases import each_case
from graphlets_page import NAMES, figure, page, pattern_of

from longwall.kernels.host.patterns.graphlets import graphlets
from longwall.pipeline.patterns.parse import parse_pattern


def diamond_with(*, leaf: int) -> nx.Graph:
    """The diamond whose ends of degree 3 are 0 and 1, with a leaf."""
    return nx.Graph([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (leaf, 4)])


def with_leaf(graph: nx.Graph) -> nx.Graph:
    graph.add_edge(0, "leaf")
    return graph


GRAPHS = {
    "edge": nx.path_graph(2),
    "wedge": nx.path_graph(3),
    "triangle": nx.complete_graph(3),
    "path of 4": nx.path_graph(4),
    "claw": nx.star_graph(3),
    "4-cycle": nx.cycle_graph(4),
    "paw": nx.lollipop_graph(3, 1),
    "diamond": nx.complete_multipartite_graph(1, 1, 2),
    "4-clique": nx.complete_graph(4),
    "path of 5": nx.path_graph(5),
    "fork": nx.Graph([(0, 1), (0, 2), (0, 3), (3, 4)]),
    "star of 4 leaves": nx.star_graph(4),
    "bull": nx.bull_graph(),
    "lollipop (3, 2)": nx.lollipop_graph(3, 2),
    "cricket": nx.Graph([(0, 1), (0, 2), (1, 2), (0, 3), (0, 4)]),
    "5-cycle": nx.cycle_graph(5),
    "banner": with_leaf(nx.cycle_graph(4)),
    "dart": diamond_with(leaf=0),
    "bowtie": nx.windmill_graph(2, 3),
    "kite": diamond_with(leaf=2),
    "K(2,3)": nx.complete_bipartite_graph(2, 3),
    "house": nx.house_graph(),
    "book of 3 triangles": nx.complete_multipartite_graph(1, 1, 3),
    "lollipop (4, 1)": nx.lollipop_graph(4, 1),
    "gem": nx.Graph([(0, 1), (1, 2), (2, 3), *((4, vertex) for vertex in range(4))]),
    "K4 with a subdivided edge": nx.complement(nx.disjoint_union(nx.path_graph(2), nx.path_graph(3))),
    "X-house": nx.house_x_graph(),
    "wheel of 4 spokes": nx.wheel_graph(5),
    "K5 less an edge": nx.complete_multipartite_graph(1, 1, 1, 2),
    "5-clique": nx.complete_graph(5),
}


@each_case("number", range(30))
def test_a_name_is_that_of_the_graph(number: int) -> None:
    graphlet = graphlets()[number]
    drawn = nx.Graph(sorted(graphlet.edges))
    first = re.split(r", (?![^(]*\))", NAMES[number])[0]
    assert nx.is_isomorphic(drawn, GRAPHS[first]), NAMES[number]
    assert nx.is_isomorphic(drawn, nx.Graph(list(parse_pattern(pattern_of(graphlet)).edges)))


def test_all_graphlets_and_orbits_are_drawn() -> None:
    text = page()
    assert [int(number) for number in re.findall(r"<b>G(\d+)</b>", text)] == list(range(30))
    assert text.count("<svg") == 30
    orbits = [{int(name) for name in re.findall(r">(\d+)</text>", figure(number))} for number in range(30)]
    assert sorted(orbit for some in orbits for orbit in some) == list(range(73))
