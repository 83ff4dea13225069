"""What users see of a graph: its size, equality by content, other libraries, drawings, completion."""

import pickle
from xml.etree import ElementTree

import networkx as nx
import pytest

import longwall

KARATE = nx.karate_club_graph()


@pytest.fixture(scope="module")
def graph():
    return longwall.graph(KARATE)


def test_length_is_that_of_networkx(graph):
    assert len(graph) == len(KARATE) == graph.num_vertices
    assert len(longwall.graph([])) == 0
    assert longwall.graph([])


EDGES = {
    "numbers": [(5, 2), (2, 9), (9, 5), (9, 11)],
    "texts": [("a", "b"), ("b", "c"), ("x", "y"), ("y", "a")],
}


@pytest.mark.parametrize("kind", EDGES)
def test_graphs_of_the_same_edges_are_equal(kind):
    edges = EDGES[kind]
    one, other = longwall.graph(edges), longwall.graph([(v, u) for u, v in edges[::-1]])
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert one != longwall.graph(edges[:-1])
    assert one != longwall.graph([*edges[:-1], (edges[0][0], edges[-1][1])])
    assert one != edges


@pytest.mark.parametrize("kind", EDGES)
def test_labels_are_content(kind):
    edges = EDGES[kind]
    vertices = sorted({v for edge in edges for v in edge})
    labels = {v: "pq"[at % 2] for at, v in enumerate(vertices)}
    one, same = longwall.graph(edges, labels=labels), longwall.graph(edges[::-1], labels=dict([*labels.items()][::-1]))
    assert one == same
    assert one != longwall.graph(edges)
    assert one != longwall.graph(edges, labels=labels | {vertices[0]: "q"})
    swapped = {v: {"p": "q", "q": "p"}[label] for v, label in labels.items()}
    assert one != longwall.graph(edges, labels=swapped)


def test_a_stored_graph_is_equal_to_the_one_in_memory(graph, tmp_path):
    graph.save(tmp_path / "store")
    assert longwall.open_graph(tmp_path / "store") == graph


@pytest.mark.parametrize("kind", EDGES)
def test_igraph_has_the_same_graph(kind):
    pytest.importorskip("igraph")
    graph = longwall.graph(
        EDGES[kind], labels={v: "even" if ord(str(v)[0]) % 2 else "odd" for e in EDGES[kind] for v in e}
    )
    made = graph.to_igraph()
    assert (made.vcount(), made.ecount()) == (len(graph), graph.num_edges)
    found = {frozenset(made.vs[end]["name"] for end in edge.tuple) for edge in made.es}
    assert found == {frozenset(edge) for edge in EDGES[kind]}
    assert longwall.graph(made, labels=dict(zip(made.vs["name"], made.vs["label"], strict=True))) == graph


def test_texts_as_labels_come_back():
    graph = longwall.graph([(0, 1), (1, 2)], labels={0: "q", 1: "p", 2: "q"})
    assert dict(graph.to_networkx().nodes(data="label")) == {0: "q", 1: "p", 2: "q"}
    payments = nx.Graph()
    payments.add_edge(0, 1, kind="pays")
    payments.add_edge(1, 2, kind="knows")
    labelled = longwall.graph(payments, edge_labels="kind")
    assert {frozenset(e[:2]): e[2] for e in labelled.to_networkx().edges(data="label")} == {
        frozenset({0, 1}): "pays",
        frozenset({1, 2}): "knows",
    }


@pytest.mark.filterwarnings("error::ResourceWarning")  # of kernels that are compiled for such arrays
@pytest.mark.parametrize("labels", [None, "club"])
def test_a_graph_comes_from_another_process_in_memory_that_is_read_only(labels):
    graph, buffers = longwall.graph(KARATE, labels), []
    sent = pickle.dumps(graph, protocol=5, buffer_callback=buffers.append)
    found = pickle.loads(sent, buffers=[bytes(one.raw()) for one in buffers])
    assert len(buffers) >= 3
    assert found == graph
    assert longwall.count(found, "triangle", engine="cpu") == sum(nx.triangles(KARATE).values()) // 3
    assert longwall.match(found, "diamond", engine="cpu").to_arrow().num_rows == longwall.count(graph, "diamond")


def test_igraph_that_is_missing_is_named(graph, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "igraph", None)
    with pytest.raises(longwall.InputError, match="pip install igraph"):
        graph.to_igraph()


def test_small_graphs_are_drawn(graph, tmp_path):
    drawing = graph.plot()
    assert isinstance(drawing, longwall.Drawing)
    root = ElementTree.fromstring(drawing.svg())
    assert len(root.findall("{*}circle")) == 34
    assert 70 <= len(root.findall("{*}line")) <= 78
    assert "currentColor" in drawing._repr_html_()
    drawing.savefig(tmp_path / "karate.svg")
    assert (tmp_path / "karate.svg").read_text() == drawing.svg()
    assert drawing.svg() == graph.plot().svg()
    assert longwall.graph([]).plot().svg()
    assert "Officer" in longwall.graph(KARATE, "club").plot().svg()


def test_large_graphs_are_not_drawn():
    with pytest.raises(longwall.InputError, match="too large for a drawing"):
        longwall.graph(nx.path_graph(400)).plot()


def test_completion_hides_arrays(graph):
    names = dir(graph)
    assert {"to_arrow", "to_networkx", "to_igraph", "plot", "save", "num_vertices", "num_edges"} <= set(names)
    assert not {"indptr", "indices", "split", "name_bytes", "files", "slices"} & set(names)
    assert not [name for name in names if name.startswith("_") or not hasattr(graph, name)]
