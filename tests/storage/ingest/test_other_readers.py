"""The same file read by Longwall, and by networkx, igraph, SciPy or pandas: the same edges."""

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pandas as pd
import pytest
import scipy.io

import longwall

Reader = Callable[[Path], Iterable[tuple[Any, Any]]]


def of_igraph(read: Callable[[str], igraph.Graph], key: str = "name", first: int = 0) -> Reader:
    """Read edges between values of an attribute, or numbers of vertices from `first` on."""

    def edges(path: Path) -> list[tuple[Any, Any]]:
        graph = read(str(path))
        names = graph.vs[key] if key else range(first, first + graph.vcount())
        return [(names[u], names[v]) for u, v in graph.get_edgelist()]

    return edges


def of_networkx(read: Callable[[Path], nx.Graph]) -> Reader:
    return lambda path: [(u, v) for u, v, *_ in read(path).edges]


def write(graph: nx.Graph, path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join([*lines, ""]))


def write_matrix(graph: nx.Graph, path: Path) -> None:
    entries = [f"{max(edge)} {min(edge)} 0.5" for edge in graph.edges()]
    header = "%%MatrixMarket matrix coordinate real symmetric"
    write(graph, path, [header, "% c", f"{len(graph)} {len(graph)} {len(entries)}", *entries])


def write_dimacs(graph: nx.Graph, path: Path) -> None:
    header = f"p edge {len(graph)} {graph.number_of_edges()}"
    write(graph, path, ["c a graph", header, *(f"e {u} {v}" for u, v in graph.edges())])


def write_json(graph: nx.Graph, path: Path) -> None:
    path.write_text(json.dumps(nx.node_link_data(graph, edges="links")))


def numbered(graph: nx.Graph) -> igraph.Graph:
    return igraph.Graph(len(graph), [(u - 1, v - 1) for u, v in graph.edges()])


def named(graph: nx.Graph) -> igraph.Graph:
    made = numbered(graph)
    made.vs["name"] = [f"v {node}" for node in graph]
    return made


def texts(graph: nx.Graph) -> nx.Graph:
    return nx.relabel_nodes(graph, "v {}".format)


def matrix_edges(path: Path) -> list[tuple[int, int]]:
    matrix = scipy.io.mmread(path).tocoo()
    return [(int(u) + 1, int(v) + 1) for u, v in zip(matrix.row, matrix.col, strict=True)]


def table_edges(read: Callable[[Path], pd.DataFrame]) -> Reader:
    return lambda path: read(path)[["source", "target"]].itertuples(index=False, name=None)


def read_dimacs(path: str) -> Any:
    return igraph.GraphBase.Read_DIMACS(path, False)[0]  # `Graph` requires capacities


def json_graph(path: Path) -> nx.Graph:
    return nx.node_link_graph(json.loads(path.read_text()), edges="links")


def as_table(graph: nx.Graph) -> pd.DataFrame:
    return nx.to_pandas_edgelist(graph)


WAYS: dict[str, tuple[str, Callable[[nx.Graph, Path], Any], Reader, dict[str, Any]]] = {
    "edge list, networkx": (
        "g.edges",
        nx.write_edgelist,
        of_networkx(lambda path: nx.read_edgelist(path, nodetype=int, data=False)),
        {"columns": (1, 2)},
    ),
    "edge list, igraph": (
        "g.txt",
        lambda graph, path: numbered(graph).write_edgelist(str(path)),
        of_igraph(lambda path: igraph.Graph.Read_Edgelist(path, directed=False), ""),
        {},
    ),
    "names, igraph": (
        "g.ncol",
        lambda graph, path: nx.write_edgelist(nx.relabel_nodes(graph, "v{}".format), path, data=False),
        of_igraph(igraph.Graph.Read_Ncol),
        {},
    ),
    "csv, pandas": (
        "g.csv",
        lambda graph, path: as_table(texts(graph)).to_csv(path, index=False),
        table_edges(pd.read_csv),
        {},
    ),
    "parquet, pandas": (
        "g.parquet",
        lambda graph, path: as_table(texts(graph)).to_parquet(path),
        table_edges(pd.read_parquet),
        {},
    ),
    "Matrix Market, SciPy": ("g.mtx", write_matrix, matrix_edges, {}),
    "DIMACS, igraph": ("g.col", write_dimacs, of_igraph(read_dimacs, "", 1), {}),
    "GraphML, networkx": (
        "g.graphml",
        lambda graph, path: nx.write_graphml_xml(texts(graph), path),
        of_networkx(nx.read_graphml),
        {},
    ),
    "GraphML, igraph": (
        "g.graphml",
        lambda graph, path: named(graph).write_graphml(str(path)),
        of_igraph(igraph.Graph.Read_GraphML),
        {"vertex_name": "name"},
    ),
    "GEXF, networkx": (
        "g.gexf",
        lambda graph, path: nx.write_gexf(texts(graph), path),
        of_networkx(nx.read_gexf),
        {},
    ),
    "GML, networkx": ("g.gml", lambda graph, path: nx.write_gml(texts(graph), path), of_networkx(nx.read_gml), {}),
    "GML, igraph": (
        "g.gml",
        lambda graph, path: named(graph).write_gml(str(path)),
        of_igraph(igraph.Graph.Read_GML),
        {"vertex_name": "name"},
    ),
    "Pajek, networkx": (
        "g.net",
        lambda graph, path: nx.write_pajek(texts(graph), path),
        of_networkx(nx.read_pajek),
        {},
    ),
    "Pajek, igraph": (
        "g.net",
        lambda graph, path: named(graph).write_pajek(str(path)),
        of_igraph(igraph.Graph.Read_Pajek),
        {},
    ),
    "JSON, networkx": ("g.json", write_json, of_networkx(json_graph), {}),
}
"""Format and other reader -> name of the file, what writes it, the other reader, and options of `open_graph`."""


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@pytest.mark.parametrize("way", WAYS)
def test_another_reader_finds_the_same_edges(way: str, tmp_path: Path) -> None:
    name, make, read, options = WAYS[way]
    for seed in range(3):
        graph = nx.relabel_nodes(
            nx.gnm_random_graph(30, random.Random(seed).randint(1, 80), seed=seed), lambda u: u + 1
        )
        make(graph, tmp_path / name)
        table = longwall.open_graph(tmp_path / name, **options).to_arrow()
        found = {frozenset(edge) for edge in zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)}
        assert found == {frozenset(edge) for edge in read(tmp_path / name)}
        assert len(found) == graph.number_of_edges()
