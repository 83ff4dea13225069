"""GraphML, GEXF, GML and node-link JSON: files of networkx are its graphs; all else is refused with its line."""

import gzip
import json
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.readers import gml
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.readers.json_elements import JsonElements
from longwall.storage.ingest.readers.xml_elements import GRAPHML, XmlElements
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest
from longwall.storage.ingest.tables.table_options import TableOptions

WRITERS: dict[str, Callable[[nx.Graph, Path], None]] = {
    ".graphml": lambda graph, path: nx.write_graphml_xml(graph, path),
    ".gexf": lambda graph, path: nx.write_gexf(graph, path),
    ".gml": lambda graph, path: nx.write_gml(graph, path),
    ".json": lambda graph, path: _write_json(graph, path, "links"),
}


def _write_json(graph: nx.Graph, path: Path, links: str, **options: Any) -> None:
    path.write_text(json.dumps(nx.node_link_data(graph, edges=links), **options))


def edges_of(graph: longwall.Graph) -> set[frozenset[Any]]:
    table = graph.to_arrow()
    return {frozenset(edge) for edge in zip(*(table[name].to_pylist() for name in ("source", "target")), strict=True)}


def network(named: bool, kind: type[nx.Graph] = nx.Graph) -> nx.Graph:
    graph = nx.gnp_random_graph(60, 0.1, seed=2, directed=kind is nx.DiGraph)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    nx.set_edge_attributes(graph, {edge: "ab"[sum(edge) % 2] for edge in graph.edges()}, "kind")
    nx.set_node_attributes(graph, 0.5, "weight")
    return nx.relabel_nodes(graph, {v: f"v & <{v}>" for v in graph}) if named else graph


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("suffix", WRITERS)
def test_what_networkx_writes(tmp_path: Path, suffix: str, named: bool) -> None:
    graph = network(named)
    WRITERS[suffix](graph, tmp_path / f"g{suffix}")
    table = TableOptions(edge_label="kind", ids="names" if named else "integers")
    found = load_graph(tmp_path / f"g{suffix}", table=table)
    assert edges_of(found) == {frozenset(edge) for edge in graph.edges()}
    assert found.edge_label_names is not None
    assert sorted(found.edge_label_names) == ["a", "b"]
    labels = {
        frozenset((u, v)): found.edge_label_names[label]
        for u, v, label in zip(
            *(found.to_arrow()[name].to_pylist() for name in ("source", "target", "label")), strict=True
        )
    }
    assert labels == {frozenset((u, v)): label for u, v, label in graph.edges(data="kind")}
    (tmp_path / f"g{suffix}.gz").write_bytes(gzip.compress((tmp_path / f"g{suffix}").read_bytes()))
    ingest(tmp_path / f"g{suffix}.gz", tmp_path / "g.zarr", table=table)
    assert longwall.open_graph(tmp_path / "g.zarr").content_hash == found.content_hash


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_first_edges_say_what_vertices_are(tmp_path: Path, suffix: str) -> None:
    for named in (False, True):
        path = tmp_path / f"{named}{suffix}"
        WRITERS[suffix](network(named), path)
        assert load_graph(path).has_names == (named or suffix == ".gml")


@pytest.mark.parametrize("suffix", WRITERS)
def test_directions_are_dropped_and_noted(tmp_path: Path, suffix: str) -> None:
    graph = network(False, nx.DiGraph)
    WRITERS[suffix](graph, tmp_path / f"g{suffix}")
    found = load_graph(tmp_path / f"g{suffix}", table=TableOptions(ids="integers"))
    assert edges_of(found) == {frozenset(edge) for edge in graph.edges()}
    assert {note.kind: note.count for note in found.notes}["directions"] == graph.number_of_edges()


@pytest.mark.parametrize(
    ("name", "graph", "edges", "directions"),
    [
        ("g.graphml", 'edgedefault="directed"', ['source="1" target="2"', 'source="2" target="1"'], 2),
        ("g.graphml", 'edgedefault="directed"', ['source="1" target="2" directed="false"', 'source="3" target="2"'], 1),
        (
            "g.graphml",
            'edgedefault="undirected"',
            ['source="1" target="2" directed="true"', 'source="3" target="2"'],
            1,
        ),
        ("g.graphml", 'edgedefault="directed"', ['source="1" target="2"', 'source="3" target="3"'], 1),
        ("g.graphml", 'edgedefault="undirected"', ['source="1" target="2"'], 0),
        ("g.gexf", 'defaultedgetype="directed"', ['source="1" target="2"', 'source="3" target="2" type="mutual"'], 1),
        ("g.gexf", "", ['source="1" target="2" type="directed"', 'source="3" target="2" type="undirected"'], 1),
        ("g.gexf", "", ['source="1" target="2"'], 0),
    ],
)
def test_edges_say_whether_they_have_directions(
    tmp_path: Path, name: str, graph: str, edges: list[str], directions: int
) -> None:
    root = Path(name).suffix[1:]
    listed = "".join(f"<edge {edge}/>" for edge in edges)
    (tmp_path / name).write_text(f"<{root}><graph {graph}>{listed}</graph></{root}>")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = longwall.open_graph(tmp_path / name).notes
    assert sum(note.count for note in notes if note.kind == "directions") == directions
    warned = [one.message.numbers.get("directions", 0) for one in caught]  # type: ignore[union-attr]
    assert sum(warned) == directions
    assert not [note for note in load_graph(tmp_path / name, directed=True).notes if "directions" in note.text][1:]


def test_directions_in_a_graph_within_a_node(tmp_path: Path) -> None:
    inner = '<node id="9"><graph edgedefault="directed"><edge source="1" target="2"/></graph></node>'
    (tmp_path / "g.graphml").write_text(f'{HEAD}{inner}<edge source="2" target="3"/></graph></graphml>')
    notes = {note.kind: note.count for note in load_graph(tmp_path / "g.graphml").notes}
    assert notes == {"directions": 1}


@pytest.mark.parametrize("suffix", WRITERS)
def test_nodes_without_an_edge_are_counted(tmp_path: Path, suffix: str) -> None:
    graph = nx.Graph([("a", "b")])
    graph.add_nodes_from("cd")
    WRITERS[suffix](graph, tmp_path / f"g{suffix}")
    assert {note.kind: note.count for note in load_graph(tmp_path / f"g{suffix}").notes} == {"isolated": 2}


def test_a_directed_graph_of_a_config(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("1 2\n2 1\n2 3\n")
    config = {"graph": {"path": str(tmp_path / "g.txt"), "directed": True}, "workload": {"kind": "triangles"}}
    config["run"] = {"directory": str(tmp_path / "runs")}
    seen: list[str] = []

    class Notes:
        def phase(self, *arguments: object) -> None: ...
        def advance(self, *arguments: object) -> None: ...
        def near_limit(self, *arguments: object) -> None: ...
        def note(self, text: str) -> None:
            seen.append(text)

        def close(self) -> None: ...

    assert longwall.run(config, observer=Notes()).count == 0
    assert sum("the directions of 3 edges are dropped" in text for text in seen) == 1
    config["graph"]["strict"] = True
    with pytest.raises(InputError, match="the graph is directed"):
        longwall.run(config)


HEAD = '<?xml version="1.0"?>\n<graphml>\n<graph edgedefault="undirected">\n'
LINK = '{"nodes": [],\n"links":\n[{"source": 1, "target": 2}]}'
REFUSED = {
    "no XML": ("g.graphml", "1 2\n", "line 1: this is not complete XML"),
    "another format": ("g.graphml", "<gexf></gexf>", "line 1: this is <gexf>, not <graphml>"),
    "cut off": ("g.graphml", HEAD + '<edge source="1" target="2"/>\n', "line 5: this is not complete XML"),
    "half an edge": ("g.graphml", HEAD + '<edge source="1"/>\n</graph></graphml>', "line 4: an edge without source or"),
    "an empty name": (
        "g.graphml",
        HEAD + '<edge source="a" target=""/>\n</graph></graphml>',
        "line 4: an edge without source or target",
    ),
    "entities": (
        "g.graphml",
        '<!DOCTYPE x [<!ENTITY a "b">]>\n<graphml></graphml>',
        "line 1: the file declares entities or elements of its own, which are not read",
    ),
    "defaults of attributes": (
        "g.graphml",
        '<!DOCTYPE x [<!ATTLIST edge source CDATA "1">]>\n<graphml></graphml>',
        "line 1: the file declares entities or elements of its own, which are not read",
    ),
    "no edges": ("g.graphml", HEAD + "</graph></graphml>", "there are no edges"),
    "hyperedges": (
        "g.graphml",
        HEAD + '<hyperedge><endpoint node="1"/></hyperedge></graph></graphml>',
        "line 4: a hyper",
    ),
    "a long tag": (
        "g.graphml",
        HEAD + f'<edge source="{"1" * 2_000_000}"',
        "not complete XML|a tag of more",
    ),
    "no GML": ("g.gml", "graph [", "networkx cannot read this GML"),
    "lists of GML in one another": ("g.gml", "graph [ " + "a [ " * 20_000, "networkx cannot read this GML"),
    "lists of GML that end": (
        "g.gml",
        f"graph[{'a[' * 9000}{']' * 9001}",
        "networkx cannot read this GML",
    ),
    "no JSON": ("g.json", "1 2\n", "line 1: '1 2.n' stands in place of an object; write {"),
    "an unknown word of JSON": (
        "g.json",
        '{"nodes": [],\n "links": [{"source": x}]}',
        "line 2: this is not complete",
    ),
    "JSON cut off": ("g.json", LINK[:-2], "line 3: the end of the file stands in place of ',' or"),
    "JSON without links": ("g.json", '{"nodes": [], "adjacency": [[]]}', "line 1: there is no list of links"),
    "two lists of links": ("g.json", '{"links": [], "edges": []}', "has 'links' and 'edges'; give one list of links"),
    "links that are no list": ("g.json", '{"links": 7}', "line 1: '7}' stands in place of a list"),
    "a link that is no object": (
        "g.json",
        '{"links": [[1, 2]]}',
        "a list stands in place of an object in the",
    ),
    "half a link": ("g.json", '{"links": [{"source": 1}]}', "line 1: an edge without source or target"),
    "a node that is a list": (
        "g.json",
        '{"links": [{"source": [1], "target": 2}]}',
        "a list is neither an integer",
    ),
    "a node that is a float": ("g.json", '{"links": [{"source": 1.0, "target": 2}]}', "1.0 is neither an integer nor"),
    "a node that is true": ("g.json", '{"links": [{"source": true, "target": 2}]}', "True is neither an integer nor"),
    "nodes of two types": (
        "g.json",
        '{"links": [{"source": "1", "target": 2}]}',
        "some nodes are integers, and",
    ),
    "directions that are a text": ("g.json", '{"directed": "no", "links": []}', "'directed' is 'no'; write true or"),
    "two graphs": ("g.json", f"{LINK}\n{LINK}", "line 4: something follows the graph"),
    "half a surrogate pair": ("g.json", LINK.replace("1,", '"\\ud800",').replace("2", '"b"'), "a surrogate pair"),
    "a number of many digits": ("g.json", LINK.replace("1,", f"{'1' * 5000},"), "this is no JSON that can be read"),
    "lists of JSON in one another": ("g.json", '{"nodes": [' + "[" * 90_000, "lists in one another"),
    "a long link": ("g.json", LINK.replace("1,", f'"{"a" * 600_000}",'), "a value of more than 262,144 characters"),
    "binary JSON": ("g.json", b'{"a": "\xff"}', "line 1: this is not UTF-8"),
    "UTF-16": ("g.json", LINK.encode("utf-16"), "line 1: this is not UTF-8"),
    "binary GML": ("g.gml", b"\xff\xfe", "this is not UTF-8"),
}


@each_case("case", REFUSED)
def test_network_files_that_are_refused(tmp_path: Path, case: str) -> None:
    name, content, says = REFUSED[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=says) as refused:
        load_graph(tmp_path / name)
    assert str(tmp_path / name) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_json_of_any_layout_is_the_graph(tmp_path: Path) -> None:
    graph = network(False, nx.DiGraph)
    graph.graph["notes"] = {"a": [1, {"links": []}, "]}"], "links": "x" * 500_000, "b": None}
    expected = {frozenset(edge) for edge in graph.edges()}
    for at, (links, options) in enumerate([("links", {"indent": 3}), ("edges", {"separators": (",", ":")})]):
        path = tmp_path / f"{at}.json"
        _write_json(graph, path, links, **options)
        data = json.loads(path.read_text())
        for keys in (list(data), sorted(data, reverse=True)):
            path.write_text(json.dumps({key: data[key] for key in keys}, **options), "utf-8-sig")
            found = load_graph(path)
            assert edges_of(found) == expected
            assert {note.kind: note.count for note in found.notes}["directions"] == graph.number_of_edges()


def test_nodes_of_json_without_an_id_are_numbered_as_networkx_does(tmp_path: Path) -> None:
    data = {"nodes": [{"name": name} for name in "abcd"], "links": [{"source": 0, "target": 2}]}
    (tmp_path / "g.json").write_text(json.dumps(data))
    graph = nx.node_link_graph(data, edges="links")
    assert edges_of(load_graph(tmp_path / "g.json")) == {frozenset(edge) for edge in graph.edges()}
    named = load_graph(tmp_path / "g.json", table=TableOptions(vertex_name="name"))
    assert edges_of(named) == {frozenset("ac")}
    assert {note.kind: note.count for note in named.notes} == {"isolated": 2}
    noted = {note.kind: note.count for note in load_graph(tmp_path / "g.json").notes}
    assert noted == {"isolated": 2, "names": 4}


def test_texts_of_json_are_names_even_if_they_look_like_numbers(tmp_path: Path) -> None:
    _write_json(nx.Graph([("1", "02")]), tmp_path / "g.json", "links")
    assert edges_of(load_graph(tmp_path / "g.json")) == {frozenset(("1", "02"))}
    integers = load_graph(tmp_path / "g.json", table=TableOptions(ids="integers"))
    assert edges_of(integers) == {frozenset((1, 2))}
    _write_json(nx.Graph([(1, -(2**63))]), tmp_path / "g.json", "links")
    assert edges_of(load_graph(tmp_path / "g.json")) == {frozenset((1, -(2**63)))}
    assert edges_of(load_graph(tmp_path / "g.json", table=TableOptions(ids="names"))) == {
        frozenset(("1", str(-(2**63))))
    }


def test_a_part_of_a_json_file_is_in_memory(tmp_path: Path) -> None:
    node = json.dumps({"id": 7, "text": "a" * 300, "list": [[]] * 50})
    (tmp_path / "g.json").write_text(f'{{"nodes": [{",".join([node] * 20_000)}], "links": []}}')
    reader = JsonElements(tmp_path / "g.json", "edge", None, 2**10)
    tracemalloc.start()
    try:
        assert list(reader.read(None)) == []
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
    assert reader.nodes == 20_000


@pytest.mark.slow
def test_a_name_among_integers_is_refused(tmp_path: Path) -> None:
    edges = "\n".join(f'<edge source="{at}" target="{at + 1}"/>' for at in range(2**16 + 2**15))
    content = f'{HEAD}{edges}\n<edge source="a" target="1"/>\n</graph></graphml>'
    (tmp_path / "g.graphml").write_text(content)
    with pytest.raises(InputError, match=r'the vertex a is not an integer of 64 bits.*set graph.ids = "names"'):
        load_graph(tmp_path / "g.graphml")
    assert load_graph(tmp_path / "g.graphml", table=TableOptions(ids="names")).num_edges == 2**16 + 2**15 + 1


SOME = 5_000
CROWDED = {
    "elements in one another": HEAD + "<a>" * SOME,
    "nodes in one another": HEAD + '<node id="1">' * SOME,
    "names of elements": HEAD + "".join(f"<a{at}/>" for at in range(6 * SOME)),
    "names of attributes": HEAD + "".join(f'<a b{at}="1"/>' for at in range(6 * SOME)),
    "namespaces": HEAD + "".join(f'<a xmlns:b{at}="c"/>' for at in range(6 * SOME)),
    "namespaces in one another": HEAD + f'<a xmlns:b="{"c" * 2**16}">' * 100,
    "attributes": HEAD + "".join(f'<key id="{at}" for="edge" attr.name="{at}"/>' for at in range(6 * SOME)),
    "a value": HEAD
    + '<key id="v" for="edge" attr.name="v"/><edge source="1" target="2"><data key="v">'
    + "a" * 5_000_000,
}


@pytest.mark.parametrize("case", CROWDED)
def test_memory_is_bounded_while_xml_is_read(tmp_path: Path, case: str) -> None:
    (tmp_path / "g.graphml").write_text(CROWDED[case])
    with pytest.raises(InputError, match="this is no list of edges"):
        load_graph(tmp_path / "g.graphml", table=TableOptions(edge_label="v") if case == "a value" else TableOptions())


def _three_letters(number: int) -> str:
    return "".join(chr(97 + number // 26**place % 26) for place in range(3))


GML = {
    "lists in one another": ("a[" * 100 + "]" * 100 + "\n") * 15,
    "short lists in one another": "a[b[]]" * 1000,
    "keys with lists": "".join(f"{_three_letters(number)}[]" for number in range(1500)),
    "keys": "".join(f"{_three_letters(number)} 1\n" for number in range(1500)),
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("case", GML)
def test_gml_takes_no_more_memory_than_is_counted_for_it(tmp_path: Path, case: str) -> None:
    content = f"graph[node[id 0 {GML[case]}]node[id 1]edge[source 0 target 1]]"
    (tmp_path / "g.gml").write_text(content)
    request = ColumnRequest(EDGES, ids="integers")
    most = gml._BYTES_PER_BYTE * len(content)
    with pytest.raises(InputError, match=r"GML is read as a whole, which memory\.host has room for up to"):
        list(gml.open_gml(FileRequest(tmp_path / "g.gml", most - 1, 1, columns=request)).blocks)
    gml._parse(tmp_path / "g.gml", b"graph[node[id 0]]", request)  # imports
    tracemalloc.start()
    try:
        gml._parse(tmp_path / "g.gml", content.encode(), request)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_elements_with_long_names_are_handed_over_sooner(tmp_path: Path) -> None:
    edge = f'<edge source="{"a" * 2**12}" target="{"b" * 2**12}"/>\n'
    (tmp_path / "g.graphml").write_text(f"{HEAD}{edge * 2**9}</graph></graphml>")
    reader = XmlElements(tmp_path / "g.graphml", GRAPHML, "edge", None, 2**10)
    sizes = [len(block) for block in reader.read(None)]
    assert sum(sizes) == 2**9
    assert max(sizes) < 2**8
