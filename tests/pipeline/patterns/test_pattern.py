"""Patterns: the named ones are what networkx calls by that name, and what cannot be searched for is refused."""

import networkx as nx
import pytest
from cases import each_case

from longwall.pipeline.patterns.parse import named_patterns, named_patterns_of, parse_pattern
from longwall.pipeline.patterns.pattern import MAX_VERTICES, Pattern, make_pattern
from longwall.pipeline.patterns.pattern_names import name_of
from longwall.storage.errors import InputError


def graph_of(pattern: Pattern) -> nx.Graph:
    return nx.Graph(list(pattern.edges))


def almost_complete(k: int) -> nx.Graph:
    graph = nx.complete_graph(k)
    graph.remove_edge(0, 1)
    return graph


def with_apex(graph: nx.Graph) -> nx.Graph:
    """Return a graph with one more vertex, which is adjacent to all others."""
    return nx.full_join(graph, nx.empty_graph(1), rename=("", "apex"))


FORK = nx.Graph([("root", "left"), ("root", "right"), ("root", "stem"), ("stem", "end")])
NAMED = {
    "edge": nx.path_graph(2),
    "wedge": nx.path_graph(3),
    "triangle": nx.complete_graph(3),
    "diamond": nx.diamond_graph(),
    "house": nx.house_graph(),
    "bowtie": nx.windmill_graph(2, 3),
    "tailed-triangle": nx.lollipop_graph(3, 1),
    "fork": FORK,
    "bull": nx.bull_graph(),
    "cricket": with_apex(nx.disjoint_union(nx.path_graph(2), nx.empty_graph(2))),
    "longtailed-triangle": nx.lollipop_graph(3, 2),
    "banner": nx.tadpole_graph(4, 1),
    "3-wedge-collision": nx.complete_bipartite_graph(2, 3),
    "dart": with_apex(nx.disjoint_union(nx.path_graph(3), nx.empty_graph(1))),
    "kite": nx.complement(FORK),
    "gem": with_apex(nx.path_graph(4)),
    "3-triangle-collision": nx.complete_multipartite_graph(1, 1, 3),
    "diamond-wedge-collision": nx.complement(nx.disjoint_union(nx.path_graph(3), nx.path_graph(2))),
    "tailed-4-clique": nx.lollipop_graph(4, 1),
    "house-x": nx.house_x_graph(),
    "path-2": nx.path_graph(2),
    "path-4": nx.path_graph(4),
    "path-9": nx.path_graph(9),
    "star-2": nx.path_graph(3),
    "star-3": nx.star_graph(3),
    "star-15": nx.star_graph(15),
    "cycle-3": nx.complete_graph(3),
    "cycle-4": nx.cycle_graph(4),
    "cycle-5": nx.cycle_graph(5),
    "cycle-16": nx.cycle_graph(16),
    "clique-2": nx.path_graph(2),
    "clique-4": nx.complete_graph(4),
    "clique-16": nx.complete_graph(16),
    "wheel-4": nx.complete_graph(4),
    "wheel-6": nx.wheel_graph(6),
    "quasi-clique-4": nx.diamond_graph(),
    "quasi-clique-6": almost_complete(6),
}


@each_case("name", NAMED)
def test_named_patterns_are_what_networkx_calls_by_that_name(name):
    pattern = parse_pattern(name)
    assert nx.is_isomorphic(graph_of(pattern), NAMED[name])
    assert pattern.num_vertices == NAMED[name].number_of_nodes()
    assert pattern.name == name
    assert pattern.is_clique == (nx.density(NAMED[name]) == 1)
    assert all(set(pattern.neighbours[v]) == set(graph_of(pattern)[v]) for v in range(pattern.num_vertices))


@pytest.mark.parametrize(("vertices", "number"), [(3, 2), (4, 6), (5, 21)])
def test_every_motif_has_a_name(vertices, number):
    atlas = [one for one in nx.graph_atlas_g() if len(one) == vertices and nx.is_connected(one)]
    assert len(atlas) == number
    named = named_patterns_of(vertices)
    for motif in atlas:
        assert any(nx.is_isomorphic(motif, graph_of(one)) for one in named)
        name = name_of(nx.relabel_nodes(motif, lambda vertex: (vertex + 1) % vertices).edges)
        assert name is not None
        assert nx.is_isomorphic(motif, graph_of(parse_pattern(name)))


def test_a_pattern_without_a_name_has_none():
    assert name_of([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4)]) is None


def test_the_list_of_names_can_be_parsed_and_says_what_each_is():
    for name, edges, text in named_patterns():
        if edges:
            assert parse_pattern(name).edges == parse_pattern(edges).edges
        else:
            family = name.removesuffix("-k")
            assert text
            assert parse_pattern(f"{family}-4").num_vertices >= 4


@pytest.mark.parametrize("text", ["0-1,1-2,2-0", " 1 - 0 , 2-1, 0-2", "0-1,1-0,1-2,2-0,0-2"])
def test_edge_lists_in_any_direction_order_and_number(text):
    assert parse_pattern(text).edges == ((0, 1), (0, 2), (1, 2))


@each_case(
    ("text", "labels", "words"),
    [
        ("", None, "empty"),
        ("   ", None, "empty"),
        ("0-0", None, "loop"),
        ("0-1,1-1", None, "loop 1-1"),
        ("0-1,2-3", None, "not connected"),
        ("0-1,3-4,1-3", None, "vertex 2 has no edge"),
        ("1-2,2-3", None, "vertex 0 has no edge"),
        ("0-99999999999", None, "at most 64"),
        (",".join(f"{i}-{i + 1}" for i in range(64)), None, "65 vertices"),
        (f"0-{'9' * 5000}", None, "unknown pattern"),
        (f"clique-{'9' * 5000}", None, "unknown pattern"),
        ("clique-17", None, "between 2 and 16"),
        ("cycle-2", None, "between 3 and 16"),
        ("star-16", None, "between 2 and 15"),
        ("clique", None, "clique-4"),
        ("trangle", None, "did you mean 'triangle'"),
        ("diamont", None, "did you mean 'diamond'"),
        ("5-clique", None, "did you mean 'clique-5'"),
        ("4cycles", None, "did you mean 'cycle-4'"),
        ("K4", None, "did you mean 'clique-4'"),
        ("square", None, "did you mean 'cycle-4'"),
        ("butterfly", None, "did you mean 'bowtie'"),
        ("K2,3", None, "did you mean '3-wedge-collision'"),
        ("0-1,", None, "unknown pattern"),
        ("0-1;1-2", None, "unknown pattern"),
        ("0--1", None, "unknown pattern"),
        ("-1-0", None, "unknown pattern"),
        ("triangle", [0, 1], "2 labels"),
        ("triangle", [0, 1, 2, 3], "4 labels"),
        ("triangle", [0, -1, 2], "has the label -1"),
        ("triangle", [], "0 labels"),
        ("missing.graph", None, "missing.graph"),
        ("missing.graphml", None, "missing.graphml"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_in_one_message(text, labels, words):
    with pytest.raises(InputError) as refusal:
        parse_pattern(text, labels)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_no_edge_at_all_is_refused():
    with pytest.raises(InputError, match="no edge"):
        make_pattern([])


def test_the_largest_pattern_is_accepted():
    assert make_pattern([(i, i + 1) for i in range(MAX_VERTICES - 1)]).num_vertices == MAX_VERTICES


def test_labels_are_kept_in_the_order_of_the_vertices():
    pattern = parse_pattern("2-0,0-1", [7, 8, 9])
    assert [pattern.label(v) for v in range(3)] == [7, 8, 9]
    assert parse_pattern("2-0,0-1").label(0) == -1


def test_a_graph_file(tmp_path):
    path = tmp_path / "query.graph"
    path.write_text("t 4 4\nv 0 5 2\nv 1 6 3\nv 2 7 2\nv 3 5 1\ne 0 1\ne 1 2\ne 0 2\ne 1 3\n")
    pattern = parse_pattern(str(path))
    assert pattern.edges == ((0, 1), (0, 2), (1, 2), (1, 3))
    assert pattern.labels == (5, 6, 7, 5)
    assert parse_pattern(str(path), [1, 1, 1, 1]).labels == (1, 1, 1, 1)


def test_a_graphml_file(tmp_path):
    path = tmp_path / "query.graphml"
    nx.write_graphml(nx.house_graph(), path)
    pattern = parse_pattern(str(path))
    assert nx.is_isomorphic(graph_of(pattern), nx.house_graph())
    assert pattern.labels is None


def test_a_graphml_file_with_labels(tmp_path):
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 4, 1: 2, 2: 9}, "label")
    path = tmp_path / "query.graphml"
    nx.write_graphml(graph, path)
    pattern = parse_pattern(str(path))
    assert pattern.edges == ((0, 1), (1, 2))
    assert pattern.labels == (4, 2, 9)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not a graph\n",
        "t 3 2\nv 0 0 1\nv 1 0 2\nv 2 0 1\ne 0 1\n",
        "t 3 2\nv 0 0 1\nv 1 0 2\nv 2 0 1\ne 0 1\ne 1 9\n",
        "t 3 1\nv 0 0 1\nv 1 0 1\nv 2 0 0\ne 0 1\n",
        "t 2 1\nv 0 0 1\nv 1 x 1\ne 0 1\n",
    ],
)
def test_a_broken_graph_file_is_refused(tmp_path, text):
    path = tmp_path / "query.graph"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        parse_pattern(str(path))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("text", ["", "<graphml>", "not xml", "\x00\x01"])
def test_a_broken_graphml_file_is_refused(tmp_path, text):
    path = tmp_path / "query.graphml"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        parse_pattern(str(path))
    assert "\n" not in str(refusal.value)
