"""One random graph, written in every format and given as every object: vertices, neighbours and labels are the same."""

import csv
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import longwall

NAMES = ["ann", "Bob B.", "é", "x,y", "1", "007", 'the "5"', "n0", "-3", "a'b", "# c", "a & <b>"]
CASES = ("ids", "names")


@dataclass(frozen=True)
class Content:
    """A graph with loops, repeated edges and vertices without an edge."""

    vertices: list[Any]
    edges: list[tuple[Any, Any]]
    kinds: list[str]
    """The label of each edge; both of a repeated one have the same."""
    groups: dict[Any, str]
    """The label of each vertex."""

    @property
    def facts(self) -> tuple[dict[Any, tuple[str, dict[Any, str]]], dict[str, int]]:
        """Each vertex with an edge, its label, its neighbours, and the labels of the edges to them; and the notes."""
        found: dict[Any, tuple[str, dict[Any, str]]] = {}
        for (u, v), kind in zip(self.edges, self.kinds, strict=True):
            for one, other in ((u, v), (v, u)):
                if u != v:
                    found.setdefault(one, (self.groups[one], {}))[1][other] = kind
        loops = sum(u == v for u, v in self.edges)
        distinct = len({frozenset(edge) for edge in self.edges if edge[0] != edge[1]})
        numbers = {"isolated": len(self.vertices) - len(found), "loops": loops}
        numbers["repeated"] = len(self.edges) - loops - distinct
        return found, {kind: count for kind, count in numbers.items() if count}

    def renamed(self, names: dict[Any, Any]) -> "Content":
        """Return the graph with other names."""
        edges = [(names[u], names[v]) for u, v in self.edges]
        groups = {names[vertex]: group for vertex, group in self.groups.items()}
        return Content([names[vertex] for vertex in self.vertices], edges, self.kinds, groups)

    @property
    def simple(self) -> "Content":
        """The graph without loops and repetitions, for formats that refuse them."""
        kept = {frozenset(edge): kind for edge, kind in zip(self.edges, self.kinds, strict=True) if len({*edge}) == 2}
        return replace(self, edges=[tuple(edge) for edge in kept], kinds=list(kept.values()))

    @property
    def network(self) -> nx.MultiGraph:
        """The graph as one of networkx."""
        graph = nx.MultiGraph()
        graph.add_nodes_from((vertex, {"group": self.groups[vertex]}) for vertex in self.vertices)
        graph.add_edges_from((u, v, {"kind": kind}) for (u, v), kind in zip(self.edges, self.kinds, strict=True))
        return graph

    @property
    def igraph(self) -> igraph.Graph:
        """The graph as one of igraph."""
        places = {vertex: at for at, vertex in enumerate(self.vertices)}
        graph = igraph.Graph(len(places), [(places[u], places[v]) for u, v in self.edges])
        graph.vs["name"], graph.vs["group"] = self.vertices, [self.groups[vertex] for vertex in self.vertices]
        graph.es["kind"] = self.kinds
        return graph

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The edges as columns."""
        return {"source": [u for u, _ in self.edges], "target": [v for _, v in self.edges], "kind": self.kinds}


def content_of(case: str, seed: int) -> Content:
    rng = random.Random(seed)
    vertices: list[Any] = list(NAMES) if case == "names" else rng.sample(range(100), 12)
    rng.shuffle(vertices)
    edges = [(rng.choice(vertices[:9]), rng.choice(vertices[:9])) for _ in range(14)]
    edges += [(vertices[2], vertices[2]), edges[0], edges[1][::-1]]
    kinds = {frozenset(edge): rng.choice(["pays", "lives in", "3"]) for edge in edges}
    groups = {vertex: rng.choice(["red", 'a "b"', "7"]) for vertex in vertices}
    return Content(vertices, edges, [kinds[frozenset(edge)] for edge in edges], groups)


def facts_of(graph: longwall.Graph) -> tuple[dict[Any, tuple[str, dict[Any, str]]], dict[str, int]]:
    def named(numbers: Any, names: tuple[str, ...] | None) -> list[str]:
        return [str(number) if names is None else names[number] for number in numbers]

    ids = graph.all_ids().to_pylist()
    groups = [""] * len(ids) if graph.labels is None else named(graph.labels.tolist(), graph.label_names)
    found: dict[Any, tuple[str, dict[Any, str]]] = {
        vertex: (group, {}) for vertex, group in zip(ids, groups, strict=True)
    }
    table = graph.to_arrow()
    kinds = [""] * table.num_rows
    if "label" in table.column_names:
        kinds = named(table["label"].to_pylist(), graph.edge_label_names)
    for u, v, kind in zip(table["source"].to_pylist(), table["target"].to_pylist(), kinds, strict=True):
        found[u][1][v] = found[v][1][u] = kind
    return found, {note.kind: note.count for note in graph.notes if note.kind not in ("choice", "comments")}


def delimited(content: Content, folder: Path, suffix: str, separator: str) -> longwall.Graph:
    """Write two tables of text: edges and vertices."""
    tables = {"edges": content.columns, "vertices": {"id": content.vertices, "label": list(content.groups.values())}}
    for name, columns in tables.items():
        with (folder / f"{name}{suffix}").open("w", newline="") as file:
            rows = csv.writer(file, delimiter=separator, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
            rows.writerow(columns)
            rows.writerows(zip(*columns.values(), strict=True))
    kind = "names" if isinstance(content.vertices[0], str) else "auto"
    options: Any = {"edge_label": "kind", "ids": kind}
    return longwall.open_graph(folder / f"edges{suffix}", folder / f"vertices{suffix}", **options)


def parquet(content: Content, folder: Path) -> longwall.Graph:
    pq.write_table(pa.table(content.columns), folder / "edges.parquet")
    table = pa.table({"id": content.vertices, "label": list(content.groups.values())})
    pq.write_table(table, folder / "vertices.parquet")
    return longwall.open_graph(folder / "edges.parquet", folder / "vertices.parquet", edge_label="kind")


def write_json(network: nx.MultiGraph, path: Path) -> None:
    path.write_text(json.dumps(nx.node_link_data(network, edges="edges")))


def network_file(content: Content, folder: Path, suffix: str) -> longwall.Graph:
    write: Any = {".graphml": nx.write_graphml_xml, ".gexf": nx.write_gexf, ".gml": nx.write_gml, ".json": write_json}[
        suffix
    ]
    write(content.network, folder / f"g{suffix}")
    kind: Any = "names" if isinstance(content.vertices[0], str) else "integers"
    if (suffix, kind) == (".gml", "integers"):  # their labels are the ids
        graph = content.network
        nx.set_node_attributes(graph, {vertex: vertex for vertex in graph}, "number")
        write(graph, folder / f"g{suffix}")
        kind = "auto"
        return longwall.open_graph(folder / f"g{suffix}", edge_label="kind", vertex_label="group", vertex_name="number")
    return longwall.open_graph(folder / f"g{suffix}", edge_label="kind", vertex_label="group", ids=kind)


def igraph_file(content: Content, folder: Path) -> longwall.Graph:
    content.igraph.write_graphml(str(folder / "i.graphml"))
    kind: Any = "names" if isinstance(content.vertices[0], str) else "integers"
    options: Any = {"vertex_name": "name", "vertex_label": "group", "edge_label": "kind", "ids": kind}
    return longwall.open_graph(folder / "i.graphml", **options)


def objects_of(content: Content) -> dict[str, Callable[[], longwall.Graph]]:
    frame, groups = pd.DataFrame(content.columns), content.groups
    pairs = list(content.edges)
    return {
        "networkx": lambda: longwall.graph(content.network, "group", edge_labels="kind"),
        "igraph": lambda: longwall.graph(content.igraph, "group", edge_labels="kind"),
        "pandas": lambda: longwall.graph(frame.sample(frac=1, random_state=1), groups, edge_labels="kind"),
        "polars": lambda: longwall.graph(pl.DataFrame(content.columns), groups, edge_labels="kind"),
        "arrow": lambda: longwall.graph(pa.table(content.columns), groups, edge_labels="kind"),
        "pairs": lambda: longwall.graph(pairs, groups),
        "tuples": lambda: longwall.graph([(u, v) for u, v in pairs], groups),
    }


FILES: dict[str, Callable[[Content, Path], longwall.Graph]] = {
    "csv": lambda content, folder: delimited(content, folder, ".csv", ","),
    "tsv": lambda content, folder: delimited(content, folder, ".tsv", "\t"),
    "semicolons": lambda content, folder: delimited(content, folder, ".txt", ";"),
    "parquet": parquet,
    "graphml": lambda content, folder: network_file(content, folder, ".graphml"),
    "gexf": lambda content, folder: network_file(content, folder, ".gexf"),
    "gml": lambda content, folder: network_file(content, folder, ".gml"),
    "json": lambda content, folder: network_file(content, folder, ".json"),
    "graphml of igraph": igraph_file,
}
LISTS = ("csv", "tsv", "semicolons", "parquet", "pandas", "polars", "arrow", "pairs", "tuples")
"""Ways that know vertices without an edge from their labels only."""
WITHOUT_KINDS = ("pairs", "tuples")


def require_same(way: str, graph: longwall.Graph, content: Content) -> None:
    wanted, numbers = content.facts
    if way in WITHOUT_KINDS:
        wanted = {vertex: (group, dict.fromkeys(others, "")) for vertex, (group, others) in wanted.items()}
    if way in LISTS:
        numbers = {{"isolated": "unused-labels"}.get(kind, kind): count for kind, count in numbers.items()}
    assert facts_of(graph) == (wanted, numbers)


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", FILES)
def test_every_file_is_the_graph(way: str, case: str, tmp_path: Path) -> None:
    for seed in range(2):
        content = content_of(case, seed)
        graph = FILES[way](content, tmp_path)
        require_same(way, graph, content)
        graph.save(tmp_path / f"{seed}.zarr")
        assert facts_of(longwall.open_graph(tmp_path / f"{seed}.zarr")) == facts_of(graph)


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@pytest.mark.parametrize("case", CASES)
def test_every_object_is_the_graph(case: str) -> None:
    for seed in range(3):
        content = content_of(case, seed)
        for way, make in objects_of(content).items():
            require_same(way, make(), content)


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@pytest.mark.parametrize("case", CASES)
def test_relations_of_duckdb_are_the_graph(case: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    content = content_of(case, 1)
    edges = pa.table(content.columns)  # noqa: F841 - DuckDB finds it by its name
    relation = duckdb.connect().sql("FROM edges")
    require_same("arrow", longwall.graph(relation, content.groups, edge_labels="kind"), content)


def lg(content: Content) -> str:
    vertices = [f"v {vertex} {group}" for vertex, group in content.groups.items()]
    edges = [f"e {u} {v} {kind}" for (u, v), kind in zip(content.edges, content.kinds, strict=True)]
    return "\n".join(["t # 1", *vertices, *edges, ""])


def graph_lines(content: Content) -> str:
    vertices = [f"v {vertex} {group} 0" for vertex, group in content.groups.items()]
    edges = [f"e {u} {v}" for u, v in content.edges]
    return "\n".join([f"t {len(vertices)} {len(edges)}", *vertices, *edges, ""])


def matrix_market(content: Content) -> str:
    size, edges = len(content.vertices), content.edges
    header = ["%%MatrixMarket matrix coordinate pattern symmetric", f"{size} {size} {len(edges)}"]
    return "\n".join([*header, *(f"{max(edge)} {min(edge)}" for edge in edges), ""])


def dimacs(content: Content) -> str:
    header = f"p edge {len(content.vertices)} {len(content.edges)}"
    return "\n".join(["c a graph", header, *(f"e {u} {v}" for u, v in content.edges), ""])


def metis(content: Content) -> str:
    others: dict[int, list[int]] = {vertex: [] for vertex in content.vertices}
    for u, v in content.edges:
        others[u].append(v)
        others[v].append(u)
    lines = [" ".join(map(str, others[vertex])) for vertex in sorted(others)]
    return "\n".join(["% a graph", f"{len(others)} {len(content.edges)}", *lines, ""])


def pajek(content: Content) -> str:
    edges = [f"{u} {v} 0.5" for u, v in content.edges]
    return "\n".join([f"*Vertices {len(content.vertices)}", "*Edges", *edges, ""])


NUMBERED: dict[str, tuple[Callable[[Content], str], bool, bool]] = {
    "g.lg": (lg, True, True),
    "g.gspan": (lg, True, True),
    "g.graph": (graph_lines, True, False),
    "g.mtx": (matrix_market, False, False),
    "g.col": (dimacs, False, False),
    "g.metis": (metis, False, False),
    "g.net": (pajek, False, False),
}
"""How a format without names is written, and whether it has labels of vertices and of edges."""


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@pytest.mark.parametrize("name", NUMBERED)
def test_every_format_of_numbers_is_the_graph(name: str, tmp_path: Path) -> None:
    write, of_vertices, of_edges = NUMBERED[name]
    content = content_of("ids", 5)
    content = content.renamed({vertex: at + (not of_vertices) for at, vertex in enumerate(content.vertices)})
    words = {'a "b"': "blue", "lives in": "lives"}
    content = replace(
        content,
        kinds=[words.get(kind, kind) if of_edges else "" for kind in content.kinds],
        groups={vertex: words.get(group, group) if of_vertices else "" for vertex, group in content.groups.items()},
    )
    content = content.simple if name in ("g.gspan", "g.metis") else content
    (tmp_path / name).write_text(write(content))
    assert facts_of(longwall.open_graph(tmp_path / name)) == content.facts


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
def test_matrices_and_arrays_are_the_graph() -> None:
    content = content_of("ids", 7)
    content = content.renamed({vertex: at for at, vertex in enumerate(content.vertices)})
    content = replace(content, kinds=[""] * len(content.kinds), groups=dict.fromkeys(content.vertices, ""))
    ends = np.array(content.edges)
    wanted, numbers = content.facts
    isolated = numbers.pop("isolated")
    for source in (ends, (ends[:, 0], ends[:, 1])):
        assert facts_of(longwall.graph(source)) == (wanted, numbers)
    both = np.concatenate((ends, ends[:, ::-1]))
    matrix = scipy.sparse.coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(12, 12)).tocsr()
    numbers = {"isolated": isolated, "loops": len({u for u, v in content.edges if u == v})}
    assert facts_of(longwall.graph(matrix)) == (wanted, numbers)
