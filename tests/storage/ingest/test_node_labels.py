"""Labels of vertices that are attributes of nodes: in GraphML, GEXF and GML, and of graphs of networkx and igraph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.readers import network_edges
from longwall.storage.ingest.tables.table_options import TableOptions

WRITERS: dict[str, Callable[[nx.Graph, Path], None]] = {
    ".graphml": lambda graph, path: nx.write_graphml_xml(graph, path),
    ".gexf": lambda graph, path: nx.write_gexf(graph, path),
    ".gml": lambda graph, path: nx.write_gml(graph, path),
}
GROUP = TableOptions(vertex_label="group")


def network(named: bool, texts: bool) -> nx.Graph:
    """Nodes and edges have an attribute of the same name each, and the first nodes one more."""
    graph = nx.gnp_random_graph(60, 0.1, seed=2)
    graph.add_node(99)
    nx.set_node_attributes(graph, {v: f"g{v % 3}" if texts else v % 3 + 5 for v in graph if v != 99}, "group")
    nx.set_node_attributes(graph, dict.fromkeys(range(9), "x"), "age")
    nx.set_edge_attributes(graph, {edge: f"e{sum(edge) % 2}" for edge in graph.edges}, "group")
    return nx.relabel_nodes(graph, {v: f"v{v}" for v in graph}) if named else graph


def labels_of(graph: longwall.Graph) -> dict[Any, Any]:
    assert graph.labels is not None
    names = graph.label_names
    found = graph.labels.tolist() if names is None else [names[label] for label in graph.labels]
    return dict(zip(graph.all_ids().to_pylist(), found, strict=True))


def expected(graph: nx.Graph) -> dict[Any, Any]:
    return {v: label for v, label in graph.nodes(data="group") if graph.degree[v]}


@each_case("named", [False, True])
@each_case("texts", [False, True])
@each_case("suffix", WRITERS)
def test_what_networkx_writes(tmp_path: Path, suffix: str, named: bool, texts: bool) -> None:
    graph, path = network(named, texts), tmp_path / f"g{suffix}"
    WRITERS[suffix](graph, path)
    both = TableOptions(vertex_label="group", edge_label="group", ids="auto" if named else "integers")
    found = load_graph(path, table=both)
    assert labels_of(found) == expected(graph)
    assert sorted(found.edge_label_names or ()) == ["e0", "e1"]
    ingest(path, tmp_path / "g.zarr", table=both)
    assert longwall.open_graph(tmp_path / "g.zarr").content_hash == found.content_hash
    assert longwall.graph(graph, "group", edge_labels="group").content_hash == found.content_hash


@pytest.mark.parametrize("suffix", [".graphml", ".gexf"])
def test_blocks_of_any_size_have_the_same_labels(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_edges, "_EDGES", 1)
    monkeypatch.setattr(network_edges, "_LEAST_EDGES", 1)
    WRITERS[suffix](network(True, True), tmp_path / f"g{suffix}")
    assert labels_of(load_graph(tmp_path / f"g{suffix}", table=GROUP)) == expected(network(True, True))


def test_a_config_and_the_command_line_name_the_attribute(tmp_path: Path) -> None:
    graph, path = network(True, True), tmp_path / "g.graphml"
    nx.write_graphml(graph, path)
    config = {
        "graph": {"path": str(path), "vertex_label": "group"},
        "workload": {"kind": "match", "pattern": "(a:g0)-(b:g1)"},
        "run": {"directory": str(tmp_path / "runs")},
    }
    label = expected(graph)
    assert longwall.run(config).count == sum({label[u], label[v]} == {"g0", "g1"} for u, v in graph.edges)
    shown = CliRunner().invoke(app, ["ingest", str(path), str(tmp_path / "g.zarr"), "--vertex-label", "group"])
    assert shown.exit_code == 0, shown.output
    assert labels_of(longwall.open_graph(tmp_path / "g.zarr")) == label
    config["graph"] = {"path": str(path), "labels": "group"}
    with pytest.raises(InputError, match=r"an attribute of nodes is named as graph\.vertex_label") as caught:
        longwall.run(config)
    assert "\n" not in str(caught.value)


def test_a_column_of_a_table_of_vertices(tmp_path: Path) -> None:
    graph = network(True, True)
    pq.write_table(
        pa.table({"source": [u for u, _ in graph.edges], "target": [v for _, v in graph.edges]}), tmp_path / "e.pq"
    )
    label = expected(graph)
    columns = {"label": ["no"] * len(label), "group": list(label.values()), "age": [1] * len(label), "id": list(label)}
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    pa.csv.write_csv(pa.table(columns), tmp_path / "v.csv")
    for name in ("v.parquet", "v.csv"):
        assert labels_of(load_graph(tmp_path / "e.pq", tmp_path / name, table=GROUP)) == label
    with pytest.raises(InputError, match=r"v.csv, line 1: there is no column colour; the columns are label, group"):
        load_graph(tmp_path / "e.pq", tmp_path / "v.csv", table=TableOptions(vertex_label="colour"))
    pq.write_table(pa.table({"a": [1], "b": [1], "group": [1]}), tmp_path / "v.parquet")
    with pytest.raises(InputError, match="not clear which column holds the vertices: a, b, group; name one of them id"):
        load_graph(tmp_path / "e.pq", tmp_path / "v.parquet", table=GROUP)


def test_defaults_nested_nodes_and_classes(tmp_path: Path) -> None:
    (tmp_path / "g.graphml").write_text(
        '<graphml><key id="k" for="node" attr.name="group"><default> red </default></key>'
        '<key id="e" for="edge" attr.name="group"><default>thin</default></key><graph edgedefault="undirected">'
        '<node id="a"><data key="k">blue</data><graph><node id="b"/><edge source="b" target="c"><data key="k">no</data>'
        '<data key="e">thick</data></edge></graph></node><node id="c"/><edge source="a" target="b"/></graph></graphml>'
    )
    graph = load_graph(tmp_path / "g.graphml", table=TableOptions(vertex_label="group", edge_label="group"))
    assert labels_of(graph) == {"a": "blue", "b": "red", "c": "red"}
    assert graph.edge_label_names == ("thick", "thin")
    (tmp_path / "g.gexf").write_text(
        '<gexf xmlns="http://gexf.net/1.3"><graph><attributes class="node"><attribute id="0" title="group">'
        '<default>red</default></attribute></attributes><attributes class="edge"><attribute id="0" title="kind"/>'
        '<attribute id="1" title="group"/></attributes><nodes><node id="a" label="A"><attvalues>'
        '<attvalue for="0" value="blue"/></attvalues><nodes><node id="b" label="B"/></nodes></node></nodes><edges>'
        '<edge id="0" source="a" target="b"><attvalues><attvalue for="0" value="thick"/>'
        '<attvalue for="1" value="long"/></attvalues></edge></edges></graph></gexf>'
    )
    for edge_label, label in (("kind", "thick"), ("group", "long")):
        graph = load_graph(tmp_path / "g.gexf", table=TableOptions(vertex_label="group", edge_label=edge_label))
        assert labels_of(graph) == {"a": "blue", "b": "red"}
        assert graph.edge_label_names == (label,)
    # What Gephi shows is an attribute of XML.
    assert labels_of(load_graph(tmp_path / "g.gexf", table=TableOptions(vertex_label="label"))) == {"a": "A", "b": "B"}


def without(graph: nx.Graph, node: Any) -> nx.Graph:
    del graph.nodes[node]["group"]
    return graph


REFUSED: dict[str, tuple[nx.Graph, TableOptions, str]] = {
    "no such attribute": (
        network(True, True),
        TableOptions(vertex_label="colour"),
        "no node .*has .* attribute 'colour'; .*'(group|age)', '(group|age)'",
    ),
    "a node without": (without(network(True, True), "v7"), GROUP, "vertex v7 has an edge but no label"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("suffix", WRITERS)
def test_what_is_refused(tmp_path: Path, suffix: str, case: str) -> None:
    graph, table, says = REFUSED[case]
    path = tmp_path / f"g{suffix}"
    WRITERS[suffix](graph, path)
    with pytest.raises(InputError, match=says) as caught:
        load_graph(path, table=table)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_labels_of_two_types_and_formats_without_nodes(tmp_path: Path) -> None:
    lines = "\n".join(f'<node id="{v}"><data key="k">{v if v < 1500 else "x"}</data></node>' for v in range(1501))
    (tmp_path / "g.graphml").write_text(
        f'<graphml><key id="k" for="node" attr.name="group"/><graph>\n{lines}\n<edge source="0" target="1"/>'
        "</graph></graphml>"
    )
    with pytest.raises(InputError, match="line 1502: the label x is no integer, as others are; give all nodes labels"):
        load_graph(tmp_path / "g.graphml", table=GROUP)
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "g.lg").write_text("t # 1\nv 0 1\nv 1 1\ne 0 1\n")
    for name in ("g.txt", "g.lg"):
        with pytest.raises(InputError, match="vertex_label") as caught:
            load_graph(tmp_path / name, table=GROUP)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="vertex_label is read from one file"):
        load_graph([tmp_path / "g.graphml", tmp_path / "g.graphml"], table=GROUP)


def test_nodes_of_libraries_without_the_attribute() -> None:
    graph = without(network(True, True), "v7")
    graph.remove_node("v99")
    as_igraph = igraph.Graph.from_networkx(graph)
    as_igraph.vs["name"] = as_igraph.vs["_nx_name"]
    for one in (graph, as_igraph):
        with pytest.raises(InputError, match="vertex v7 has an edge but no label"):
            longwall.graph(one, "group")
        with pytest.raises(InputError, match="attribute 'colour'"):
            longwall.graph(one, "colour")
    del graph.edges["v0", next(iter(graph["v0"]))]["group"]
    with pytest.raises(InputError, match="an edge of the graph has no attribute 'group'"):
        longwall.graph(graph, edge_labels="group")
