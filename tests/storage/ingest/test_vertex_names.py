"""The attribute of nodes that names the vertices, in files and in graphs of networkx and igraph."""

import json
import warnings
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest
from longwall.storage.ingest.names.vertex_names import SAMPLE
from longwall.storage.ingest.tables.table_options import TableOptions

NAMES = ("ann", "bob", "eve")


def network(names: tuple[Any, ...] = NAMES, attribute: str = "name") -> nx.Graph:
    """Return a triangle with a loop, whose nodes are numbered as igraph does."""
    graph = nx.Graph([("n0", "n1"), ("n1", "n2"), ("n0", "n2"), ("n2", "n2")])
    nx.set_node_attributes(graph, dict(zip(graph, names, strict=True)), attribute)
    nx.set_node_attributes(graph, {node: f"kind {at % 2}" for at, node in enumerate(graph)}, "kind")
    return graph


def written(folder: Path, suffix: str, graph: nx.Graph) -> Path:
    path = folder / f"g{suffix}"
    if suffix == ".gml":
        numbered = nx.convert_node_labels_to_integers(graph)
        lines = list(nx.generate_gml(numbered))
        path.write_text("\n".join(line for line in lines if not line.strip().startswith("label ")))
    else:
        {".graphml": nx.write_graphml_xml, ".gexf": nx.write_gexf}[suffix](graph, path)
    return path


def notes_of(graph: longwall.Graph) -> dict[str, int]:
    return {note.kind: note.count for note in graph.notes if note.kind == "names"}


SUFFIXES = (".graphml", ".gexf", ".gml")


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_attribute_names_the_vertices_of_a_file(suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path, suffix, network())
    graph = longwall.open_graph(path, vertex_name="name", vertex_label="kind")
    assert sorted(graph.all_ids().to_pylist()) == list(NAMES)
    assert graph.labels is not None
    assert graph.label_names is not None
    labels = [graph.label_names[label] for label in graph.labels.tolist()]
    assert dict(zip(graph.all_ids().to_pylist(), labels, strict=True)) == {
        "ann": "kind 0",
        "bob": "kind 1",
        "eve": "kind 0",
    }
    assert notes_of(graph) == {}
    pairs = [("ann", "bob"), ("bob", "eve"), ("ann", "eve")]
    assert longwall.open_graph(path, vertex_name="name").content_hash == longwall.graph(pairs).content_hash
    ingest(path, tmp_path / "store", table=TableOptions(vertex_name="name"))
    assert longwall.open_graph(tmp_path / "store").content_hash == longwall.graph(pairs).content_hash


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_are_integers_are_ids(suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path, suffix, network((30, 10, 20)))
    assert sorted(longwall.open_graph(path, vertex_name="name").all_ids().to_pylist()) == [10, 20, 30]


def test_what_igraph_writes(tmp_path: Path) -> None:
    graph = igraph.Graph.TupleList([("ann", "bob"), ("bob", "eve"), ("ann", "eve")])
    graph.write_graphml(str(tmp_path / "g.graphml"))
    graph.write_gml(str(tmp_path / "g.gml"))
    for name in ("g.graphml", "g.gml"):
        found = longwall.open_graph(tmp_path / name, vertex_name="name")
        assert found.content_hash == longwall.graph(graph).content_hash


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_are_not_read_are_said_once(suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path, suffix, network())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = longwall.open_graph(path)
    assert notes_of(graph) == {"names": 3}
    said = [str(one.message) for one in caught]
    assert len(said) == (2 if suffix == ".gml" else 1), "GML without labels is a guess, too"
    assert "".join(said).count('set graph.vertex_name = "name"') == 1


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
def test_what_does_not_look_like_names_is_not_said(tmp_path: Path) -> None:
    other = [
        (network(("a", "a", "b")), {}),
        (network(attribute="city"), {}),
        (nx.relabel_nodes(network(), dict(zip(("n0", "n1", "n2"), NAMES, strict=True))), {}),
        (network(("3", "1", "2"), "label"), {}),
        (network(attribute="label"), {"vertex_label": "label"}),
        (network(), {"vertex_label": "name"}),
        (nx.convert_node_labels_to_integers(network()), {"ids": "integers"}),
    ]
    for graph, options in other:
        path = written(tmp_path, ".graphml", graph)
        assert notes_of(longwall.open_graph(path, **options)) == {}
        if "ids" not in options:
            assert notes_of(longwall.graph(graph, options.get("vertex_label"))) == {}
    assert notes_of(longwall.open_graph(written(tmp_path, ".gexf", network(attribute="city")))) == {}


def test_the_first_nodes_are_looked_at(tmp_path: Path) -> None:
    graph = nx.path_graph(2 * SAMPLE)
    nx.set_node_attributes(graph, {node: f"name {min(node, 1200)}" for node in graph}, "label")
    path = written(tmp_path, ".graphml", graph)
    with pytest.warns(longwall.DataNote, match=r"2,000 vertices may have names that are not read"):
        longwall.open_graph(path)
    with pytest.raises(InputError, match="two nodes have the label 'name 1200'"):
        longwall.open_graph(path, vertex_name="label")


REFUSED = {
    "no such attribute": (network(), "title", "title"),
    "a name twice": (network(("a", "b", "a")), "name", "two nodes have the name 'a'|duplicated"),
    "no name": (network((*NAMES[:2], "")), "name", "has an edge but no name|one is an empty text"),
}


@each_case("suffix", SUFFIXES)
@each_case("case", REFUSED)
def test_attributes_that_are_no_names_are_refused(case: str, suffix: str, tmp_path: Path) -> None:
    graph, attribute, says = REFUSED[case]
    with pytest.raises(InputError, match=says) as refused:
        longwall.open_graph(written(tmp_path, suffix, graph), vertex_name=attribute)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["g.txt", "g.mtx", "g.lg"])
def test_other_formats_have_no_attributes(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("1 2\n")
    with pytest.raises(InputError, match=r"leave .*out"):
        longwall.open_graph(tmp_path / name, vertex_name="name")


def test_names_that_memory_has_no_room_for_are_refused(tmp_path: Path) -> None:
    from longwall.storage.ingest.readers.node_names import NodeNames
    from longwall.storage.ingest.readers.xml_elements import GRAPHML_NETWORK

    path = written(tmp_path, ".graphml", network())
    with pytest.raises(InputError, match=r"raise memory\.host, or leave out graph\.vertex_name"):
        NodeNames(path, GRAPHML_NETWORK, "name", 10, 900).read()


def igraph_of(graph: nx.Graph) -> igraph.Graph:
    made = igraph.Graph.from_networkx(graph)
    del made.vs["_nx_name"]
    return made


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
def test_an_attribute_names_the_vertices_of_an_object() -> None:
    wanted = longwall.graph([("ann", "bob"), ("bob", "eve"), ("ann", "eve")]).content_hash
    for source in (network(attribute="title"), igraph_of(network(attribute="title"))):
        assert longwall.graph(source, vertex_name="title").content_hash == wanted
        labelled = longwall.graph(source, "kind", vertex_name="title")
        assert sorted(labelled.all_ids().to_pylist()) == list(NAMES)
        assert labelled.label_names == ("kind 0", "kind 1")
        for attribute, says in (("none", "attribute 'none'"), ("kind", "two vertices of the graph are named 'kind 0'")):
            with pytest.raises(InputError, match=says):
                longwall.graph(source, vertex_name=attribute)
    with pytest.raises(InputError, match="vertex_name: only graphs of networkx and igraph"):
        longwall.graph([(1, 2)], vertex_name="name")


def test_names_of_objects_that_are_not_read_are_said() -> None:
    for source in (network(attribute="label"), igraph_of(network(attribute="label"))):
        with pytest.warns(longwall.DataNote, match='vertex_name="label" in Python'):
            assert notes_of(longwall.graph(source)) == {"names": 3}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "may have names")
        warnings.filterwarnings("ignore", "1 loop")
        longwall.graph(igraph_of(network()))


def test_the_key_of_a_config_and_the_option_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, ".graphml", network())
    run = CliRunner().invoke
    made = run(app, ["ingest", "g.graphml", "store", "--vertex-name", "name"])
    assert made.exit_code == 0, made.output
    assert sorted(longwall.open_graph("store").all_ids().to_pylist()) == list(NAMES)  # type: ignore[attr-defined]
    facts = json.loads(run(app, ["info", "g.graphml", "--vertex-name", "name", "--json"]).stdout)
    assert "may have names" not in str(facts["notes"])
    config = {"graph": {"path": "g.graphml", "vertex_name": "name"}, "workload": {"kind": "triangles"}}
    config["workload"]["output"] = "embeddings"
    config["run"] = {"directory": "runs", "name": "one"}
    assert longwall.run(config).count == 1
    with pytest.raises(InputError, match="a generated graph has no vertex_name"):
        longwall.run(
            config | {"graph": {"generator": {"kind": "rmat", "scale": 3, "edge_factor": 2}, "vertex_name": "x"}}
        )
