"""Patterns as text: what they mean, that they are written as they are read, and what is refused."""

from itertools import combinations

import networkx as nx
import pytest
from cases import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import ANY_LABEL, MAX_VERTICES
from longwall.pipeline.patterns.pattern_of import pattern
from longwall.pipeline.patterns.pattern_text import parse_pattern_text, pattern_text
from longwall.storage.errors import InputError


def test_names_and_labels_are_read():
    found = parse_pattern("(a:3)-(b:4)-(c), (a)-(c)")
    assert found.edges == ((0, 1), (0, 2), (1, 2))
    assert found.columns == ("a", "b", "c")
    assert found.labels == (3, 4, ANY_LABEL)
    assert (found.words, found.edge_labels) == ((), None)


def test_words_and_labels_of_edges_are_kept():
    found = parse_pattern('(a:Person)-[:5]-(b:Person)--(c:"New City")-[]-(a)-[:knows]-(d:7)')
    assert found.words == ("Person", "Person", "New City", None)
    assert found.labels == (ANY_LABEL, ANY_LABEL, ANY_LABEL, 7)
    assert dict(zip(found.edges, found.edge_labels, strict=True)) == {
        (0, 1): 5,
        (1, 2): None,
        (0, 2): None,
        (0, 3): "knows",
    }


def test_vertices_without_names_have_free_ones():
    assert parse_pattern("(v1)-(:2)-()").columns == ("v1", "v0", "v2")
    assert parse_pattern("(v1)-(:2)-()").labels == (ANY_LABEL, 2, ANY_LABEL)


@each_case(
    ("text", "said"),
    [
        ("(a)-(b", "at its end: expected a label"),
        ("(a)>(b)", "at character 4: patterns have no directions"),
        ("(a:GO:0005634)-(b)", 'at character 6: a label with a colon stands in double quotes, such as :"GO:0005634"'),
        ("(a)-[:r:s]-(b)", 'at character 8: a label with a colon stands in double quotes, such as :"r:s"'),
        ("(a:1:2)-(b)", 'at character 5: a label with a colon stands in double quotes, such as :"1:2"'),
        ("(a:Mr. Hi)-(b)", "at character 6: this character stands in quotes only"),
        ("(a)-(a)", r"at character 4: \(a\) is joined to itself"),
        ("(a:1)-(b), (a:2)-(b)", r"at character 12: \(a\) has another label before"),
        ("(a)-[:1]-(b)-[:2]-(a)", "at character 13: this edge has another label before"),
        ("(a) (b)", "at character 5: expected an edge"),
        ("(a:)-(b)", "at character 4: expected a label"),
        ("(a:2b)-(b)", "at character 4: a label that begins with a digit"),
        ("(a:99999999999)-(b)", "at character 4: a label is at most 2147483647"),
        ('(a:"x)-(b)', "at character 4: the text in quotes does not end"),
        ("(a)-(b), (c)", r"not connected: vertex \(c\) has no edge"),
        ("(a)", r"not connected: vertex \(a\) has no edge"),
        ("(a)-(b), (c)-(d)", "not connected: no path"),
        ("(a)-(b),", "at its end: expected a vertex"),
        ("-".join("()" for _ in range(65)), "this is vertex 65, at most 64"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text, said):
    with pytest.raises(InputError, match=said) as error:
        parse_pattern(text)
    assert "\n" not in str(error.value)


def test_labels_are_given_once():
    assert parse_pattern("(a)-(b)", [1, 2]).labels == (1, 2)
    with pytest.raises(InputError, match="has labels of its own"):
        parse_pattern("(a:1)-(b)", [1, 2])


LABELS = (
    st.none() | st.integers(0, 2**31 - 1) | st.text(st.characters(exclude_characters='"', codec="utf-8"), min_size=1)
)


@st.composite
def patterns(draw):
    """A connected graph of networkx with names and labels."""
    names = draw(st.lists(st.from_regex(r"\w+", fullmatch=True), min_size=2, max_size=MAX_VERTICES, unique=True))
    graph = nx.Graph()
    for at, name in enumerate(names):
        graph.add_node(name, label=draw(LABELS))
        if at:
            graph.add_edge(names[draw(st.integers(0, at - 1))], name, label=draw(LABELS))
    for u, v in draw(st.lists(st.sampled_from(list(combinations(names, 2))), max_size=10)):
        graph.add_edge(u, v, label=draw(LABELS))
    return graph


@settings(max_examples=200, deadline=None)
@given(patterns())
def test_graphs_of_networkx_become_the_same_pattern(graph):
    found = pattern(graph)
    names = found.columns
    assert {frozenset((names[u], names[v])) for u, v in found.edges} == {frozenset(edge) for edge in graph.edges}
    for number, name in enumerate(names):
        label = graph.nodes[name]["label"]
        assert found.label(number) == (label if isinstance(label, int) else ANY_LABEL)
        assert (found.words[number] if found.words else None) == (label if isinstance(label, str) else None)
    wanted = [graph.edges[names[u], names[v]]["label"] for u, v in found.edges]
    assert list(found.edge_labels or [None] * len(wanted)) == wanted


@settings(max_examples=200, deadline=None)
@given(patterns())
def test_a_pattern_is_written_as_it_is_read(graph):
    found = pattern(graph)
    text = pattern_text(found)
    again = parse_pattern_text(text)
    assert pattern_text(again) == text or set(again.columns) == set(found.columns)
    back = {name: number for number, name in enumerate(found.columns)}
    assert {tuple(sorted((back[again.columns[u]], back[again.columns[v]]))) for u, v in again.edges} == set(found.edges)
    assert all(again.label(n) == found.label(back[name]) for n, name in enumerate(again.columns))
    assert pattern(found) == found or pattern(found).columns == found.columns


PIECES = st.sampled_from(["(", ")", "a", "b", ":", "1", "-", "[", "]", ",", " ", '"', "é", "²", "(a)", "-(b:2)", "\n"])


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=20).map("".join) | st.text(max_size=30))
def test_any_text_is_a_pattern_or_refused_in_one_line(text):
    try:
        parse_pattern("(" + text)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "source",
    [[(0, 1), (1, 2), (0, 2)], ((0, 1), (1, 2), (2, 0)), nx.complete_graph(3), "triangle", pattern("triangle")],
)
def test_patterns_have_many_spellings(source):
    assert pattern(source).edges == ((0, 1), (0, 2), (1, 2))
    assert pattern(source).columns == ("v0", "v1", "v2")
    assert pattern(pattern(source)) == pattern(source)


def test_graphs_of_igraph_are_patterns():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph([(0, 1), (1, 2)])
    assert pattern(graph).edge_text == "0-1,1-2"
    graph.vs["name"], graph.vs["label"] = ["x", "y", "z"], [1, 2, 3]
    assert (pattern(graph).columns, pattern(graph).labels) == (("x", "y", "z"), (1, 2, 3))


@each_case(
    ("source", "said"),
    [
        (7, "pattern: expected a name such as"),
        (None, "pattern: expected a name such as"),
        ([(0, 1, 2)], "expected pairs of numbers"),
        ([("a", "b")], "expected pairs of numbers"),
        ([3], "expected pairs of numbers"),
        ([], "the pattern is empty"),
        (nx.Graph(), "has no edge"),
        (nx.complete_graph(65), "at most 64"),
        (nx.Graph([(1, 1)]), "joined to itself"),
    ],
)
def test_what_is_no_pattern_is_refused(source, said):
    with pytest.raises(InputError, match=said):
        pattern(source)
