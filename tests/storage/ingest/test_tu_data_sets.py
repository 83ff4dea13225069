"""Data sets of TU Dortmund: the graphs that were written are the transactions; all else is refused with its line."""

import random
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.text import text_file


def random_graphs(seed: int, count: int = 60) -> list[nx.Graph]:
    """Make graphs with labels of nodes and edges, and nodes without an edge; no graph is empty."""
    rng = random.Random(seed)
    graphs = []
    for _ in range(count):
        graph = nx.gnp_random_graph(rng.randrange(1, 9), 0.4, seed=rng.randrange(2**30))
        nx.set_node_attributes(graph, {node: rng.randrange(3) for node in graph}, "label")
        nx.set_edge_attributes(graph, {edge: rng.randrange(2) for edge in graph.edges()}, "label")
        graphs.append(graph)
    graphs[0].add_edge(90, 91, label=1)
    graphs[0].nodes[90]["label"] = graphs[0].nodes[91]["label"] = 0
    return graphs


def write(graphs: list[nx.Graph], folder: Path, rng: random.Random, *, nodes: bool, edges: bool) -> nx.Graph:
    """Write a data set, and return the union of its graphs with the numbers of the file as nodes."""
    folder.mkdir()
    whole = nx.Graph()
    for number, graph in enumerate(graphs, 1):
        names = {node: len(whole) + at for at, node in enumerate(graph, 1)}
        whole.add_nodes_from((names[node], {"graph": number, "label": graph.nodes[node]["label"]}) for node in graph)
        whole.add_edges_from((names[u], names[v], {"label": label}) for u, v, label in graph.edges(data="label"))
    entries = [(*ends, label) for u, v, label in whole.edges(data="label") for ends in ((u, v), (v, u))]
    rng.shuffle(entries)
    columns: dict[str, list[Any]] = {
        "A": [f"{u}, {v}" for u, v, _ in entries],
        "graph_indicator": [whole.nodes[node]["graph"] for node in whole],
        "graph_labels": [1] * len(graphs),
    }
    if nodes:
        columns["node_labels"] = [whole.nodes[node]["label"] for node in whole]
    if edges:
        columns["edge_labels"] = [label for _, _, label in entries]
    for name, lines in columns.items():
        (folder / f"SET_{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "README.txt").write_text("a data set\n")
    return whole


@each_case("seed", range(40))
def test_random_data_sets(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    of_nodes, of_edges = rng.random() < 0.7, rng.random() < 0.7
    whole = write(random_graphs(seed, rng.choice([1, 5, 60])), tmp_path / "SET", rng, nodes=of_nodes, edges=of_edges)
    block = rng.choice([16, 40, 2**16])
    monkeypatch.setattr(text_file, "LEAST_BLOCK", block)
    monkeypatch.setattr(text_file, "LARGEST_BLOCK", block)
    graph = load_graph(tmp_path / "SET" / rng.choice(["", "SET_A.txt"]))
    table = graph.to_arrow().to_pydict()
    labels = table.get("label", [None] * graph.num_edges)
    found = {frozenset(edge): label for *edge, label in zip(table["source"], table["target"], labels, strict=True)}
    assert found == {frozenset((u, v)): label if of_edges else None for u, v, label in whole.edges(data="label")}
    ids = graph.original_ids.tolist()
    assert graph.transaction_ids[graph.transactions].tolist() == [whole.nodes[node]["graph"] for node in ids]
    assert graph.num_transactions == whole.nodes[max(whole)]["graph"]
    if of_nodes:
        assert graph.labels.tolist() == [whole.nodes[node]["label"] for node in ids]
    isolated = nx.number_of_isolates(whole)
    assert {note.kind: note.count for note in graph.notes} == ({"isolated": isolated} if isolated else {})


def test_frequent_patterns_are_those_of_the_same_graphs_in_gspan_format(tmp_path: Path) -> None:
    graphs = random_graphs(1)
    write(graphs, tmp_path / "SET", random.Random(1), nodes=True, edges=True)
    lines = []
    for number, graph in enumerate(graphs):
        places = {node: at for at, node in enumerate(graph)}
        lines += [f"t # {number}", *(f"v {places[node]} {graph.nodes[node]['label']}" for node in graph)]
        lines += [f"e {places[u]} {places[v]} {label}" for u, v, label in graph.edges(data="label")]
    (tmp_path / "g.gspan").write_text("\n".join(lines))
    found = []
    for at, path in enumerate((tmp_path / "SET", tmp_path / "g.gspan")):
        config: dict[str, Any] = {"graph": {"path": path}, "run": {"directory": tmp_path / f"runs {at}"}}
        config["workload"] = {"kind": "transactions", "min_support": 2, "max_edges": 3}
        result = longwall.run(config)
        found.append(sorted((one.pattern, one.count) for one in result.patterns))
    assert found[0] == found[1]
    assert len(found[0]) > 5


def test_a_store_has_the_transactions(tmp_path: Path) -> None:
    write(random_graphs(2), tmp_path / "SET", random.Random(1), nodes=True, edges=True)
    ingest(tmp_path / "SET", tmp_path / "g.zarr")
    made, read = longwall.open_graph(tmp_path / "g.zarr"), load_graph(tmp_path / "SET")
    assert (made.num_transactions, made.content_hash) == (read.num_transactions, read.content_hash)


def zipped(folder: Path, path: Path, root: str = "SET/") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{root}{file.name}")
    return path


@each_case("root", ["SET/", "", "a/b c/"])
def test_a_data_set_in_a_zip_archive(tmp_path: Path, root: str) -> None:
    write(random_graphs(2), tmp_path / "SET", random.Random(1), nodes=True, edges=True)
    made, read = load_graph(zipped(tmp_path / "SET", tmp_path / "g.zip", root)), load_graph(tmp_path / "SET")
    assert (made.num_transactions, made.content_hash) == (read.num_transactions, read.content_hash)
    ingest(tmp_path / "g.zip", tmp_path / "g.zarr")
    assert longwall.open_graph(tmp_path / "g.zarr").content_hash == read.content_hash
    config: dict[str, Any] = {"graph": {"path": tmp_path / "g.zip"}, "run": {"directory": tmp_path / "runs"}}
    config["workload"] = {"kind": "transactions", "min_support": 2, "max_edges": 2}
    assert longwall.run(config).patterns


def test_a_damaged_file_in_a_zip_archive_is_named(tmp_path: Path) -> None:
    (small(tmp_path) / "SET_node_labels.txt").write_text("1\nx\n1\n")
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    with zipfile.ZipFile(tmp_path / "g.zip", "w") as archive:
        for file in files:
            archive.write(file, f"SET/{file.name}")
    with pytest.raises(InputError) as refused:
        load_graph(tmp_path / "g.zip")
    assert f"{tmp_path}/g.zip/SET/SET_node_labels.txt, line 2: 'x' is not an integer" in str(refused.value)


@each_case("root", ["/", "../", "a/../", "a//"])
def test_paths_in_an_archive_lead_nowhere_else(tmp_path: Path, root: str) -> None:
    small(tmp_path)
    with zipfile.ZipFile(tmp_path / "g.zip", "w") as archive:
        for name, content in SMALL.items():
            archive.writestr(f"{root}SET_{name}.txt", content)
    with pytest.raises(InputError, match=r"the archive has (no file|4 files); give an archive of one file"):
        load_graph(tmp_path / "g.zip")


REFUSED = {
    "an entry that is too large": ("A", "1, 2\n2, 1\n2, 4\n", "SET_A.txt, line 3: the entry 2 4 is outside 1..3"),
    "an entry of 0": ("A", "1, 0\n", "SET_A.txt, line 1: the entry 1 0 is outside 1..3"),
    "half an entry": ("A", "1, 2\n2\n", "SET_A.txt, line 2: too few columns"),
    "a word": ("A", "1, 2\n2, x\n", "SET_A.txt, line 2: 'x' is not an integer"),
    "no entries": ("A", "", "SET_A.txt: the file is empty"),
    "two graphs for a vertex": ("graph_indicator", "1\n1 2\n1\n", "SET_graph_indicator.txt, line 2: the number of"),
    "a graph that is a word": ("graph_indicator", "1\nx\n1\n", "SET_graph_indicator.txt, line 2: 'x' is not"),
    "an edge between graphs": ("graph_indicator", "1\n2\n2\n", "SET_graph_indicator.txt"),
    "labels that are missing": (
        "node_labels",
        "1\n2\n",
        "SET_node_labels.txt, line 2: 2 labels end here, and",
    ),
    "too many labels": ("node_labels", "1\n2\n3\n4\n", "SET_node_labels.txt"),
    "a label below 0": ("node_labels", "1\n-2\n3\n", "SET_node_labels.txt, line 2: negative number -2"),
    "a large label": (
        "node_labels",
        f"1\n{2**31}\n3\n",
        "SET_node_labels.txt, line 2: label 2147483648 is",
    ),
    "labels of edges that are missing": (
        "edge_labels",
        "1\n1\n",
        "SET_edge_labels.txt, line 2: 2 labels end here",
    ),
    "too many labels of edges": ("edge_labels", "1\n1\n1\n1\n1\n", "SET_edge_labels.txt, line 5: 5 labels end here"),
    "a large label of an edge": ("edge_labels", f"1\n1\n{2**31}\n1\n", "SET_edge_labels.txt, line 3: label 2147483648"),
    "two labels for an edge": ("edge_labels", "1\n2\n1\n1\n", "edge 1-2 is given twice with different labels"),
}
SMALL = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n",
    "graph_indicator": "1\n1\n1\n",
    "node_labels": "1\n2\n1\n",
    "edge_labels": "1\n" * 4,
}


def small(folder: Path) -> Path:
    for name, content in SMALL.items():
        (folder / f"SET_{name}.txt").write_text(content)
    return folder


@each_case("case", REFUSED)
def test_files_that_are_refused(tmp_path: Path, case: str) -> None:
    name, content, says = REFUSED[case]
    (small(tmp_path) / f"SET_{name}.txt").write_text(content)
    with pytest.raises(InputError) as refused:
        load_graph(tmp_path)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_of_other_files_is_a_list_of_tables(tmp_path: Path) -> None:
    (tmp_path / "x_A.txt").write_text("1 2\n")
    (tmp_path / "y_A.txt").write_text("2 3\n")
    assert load_graph(tmp_path).num_edges == 2
