"""Damaged copies of a file of every format and compression: read, or refused in one line that names a file."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case
from mutations import refusals

from longwall.storage.ingest.tables.table_options import TableOptions

EDGES = [(u, v) for u, v in nx.gnp_random_graph(40, 0.1, seed=3).edges() if u and v]
NAMED = [(f"v & <{u}>", f"v & <{v}>") for u, v in EDGES]
NODES = sorted({end for edge in EDGES for end in edge})


def network() -> nx.Graph:
    graph = nx.Graph(NAMED)
    nx.set_edge_attributes(graph, {edge: "ab"[len(edge[0]) % 2] for edge in graph.edges()}, "kind")
    nx.set_node_attributes(graph, {node: "red" if "1" in node else "blue" for node in graph}, "group")
    return graph


def of_networkx(write: Callable[[nx.Graph, Any], None]) -> bytes:
    made = io.BytesIO()
    write(network(), made)
    return made.getvalue()


def parquet(*columns: pa.Array, **options: Any) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table(columns, ["source", "target"]), made, **options)
    return made.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def lines(rows: list[str]) -> bytes:
    return "\n".join([*rows, ""]).encode()


def tagged(header: str, vertex: str) -> bytes:
    vertices = [vertex.format(node, "blue" if node % 2 else "red") for node in range(40)]
    return lines([header, *vertices, *(f"e {u} {v} 1" for u, v in EDGES)])


def metis() -> bytes:
    graph = nx.Graph(EDGES)
    neighbours = [" ".join(f"{other} 7" for other in graph.adj.get(node, ())) for node in range(1, 40)]
    return lines(["% c", f"39 {len(EDGES)} 011 2", *(f"1 2 {line}" for line in neighbours)])


def names_of(rows: list[tuple[str, str]], separator: str) -> bytes:
    return lines([f"source{separator}target", *(f'"{u}"{separator}"{v}"' for u, v in rows)])


LIST = lines([f"{u} {v}" for u, v in EDGES])
ARCHIVE = tarred("a/out.a", LIST)
TU = {
    "A": lines([f"{u}, {v}" for edge in EDGES for u, v in (edge, edge[::-1])]),
    "graph_indicator": b"1\n" * 40,
    "node_labels": b"0\n1\n" * 20,
    "edge_labels": b"0\n" * (2 * len(EDGES)),
}


@dataclass(frozen=True)
class Case:
    """A file that is damaged."""

    name: str
    content: bytes
    beside: dict[str, bytes] = field(default_factory=dict)
    """Files beside it; the first of them, or else the file, is the graph."""
    options: dict[str, Any] = field(default_factory=dict)
    """Those of `load_graph`; paths are below the folder."""


ATTRIBUTES = {"table": TableOptions(edge_label="kind", vertex_label="group")}
CASES = [
    Case("g.txt", LIST),
    Case("out.konect", b"% asym weighted\n" + LIST),
    Case("g.csv", names_of(NAMED, ",")),
    Case("g.tsv", names_of(NAMED, "\t")),
    Case("integers.parquet", parquet(*map(pa.array, zip(*EDGES, strict=True)))),
    Case("names.parquet", parquet(*map(pa.array, zip(*NAMED, strict=True)))),
    Case("plain.parquet", parquet(*map(pa.array, zip(*NAMED, strict=True)), use_dictionary=False)),
    Case(
        "dictionary.parquet",
        parquet(*(pa.array(column).dictionary_encode() for column in zip(*NAMED, strict=True))),
    ),
    Case("g.mtx", lines(["%%MatrixMarket matrix coordinate real general", f"40 40 {len(EDGES)}"]) + LIST),
    Case("g.col", lines(["c a", f"p edge 40 {len(EDGES)}", *(f"e {u} {v}" for u, v in EDGES)])),
    Case("g.gr", lines(["c a", f"p sp 40 {len(EDGES)}", *(f"a {u} {v} 3" for u, v in EDGES)])),
    Case("g.metis", metis()),
    Case("g.lg", tagged("t # 1", "v {} {}")),
    Case("g.graph", tagged(f"t 40 {len(EDGES)}", "v {} {} 2")),
    Case("g.gspan", tagged("t # 0", "v {} {}") + tagged("t # 1", "v {} {}")),
    Case(
        "g.net",
        lines(
            [
                *("*Vertices 39", *(f'{node} "v {node}" 0.5' for node in range(1, 40)), "*Arcs"),
                *(f"{u} {v} 2" for u, v in EDGES),
                *("% c", "*Edgeslist", "1 2 3 4"),
            ]
        ),
    ),
    *(
        Case(f"{at}.{suffix}", content, options=options)
        for suffix, content in {
            "graphml": of_networkx(nx.write_graphml_xml),
            "gexf": of_networkx(nx.write_gexf),
            "gml": of_networkx(nx.write_gml),
            "json": json.dumps(nx.node_link_data(network(), edges="links")).encode(),
        }.items()
        for at, options in enumerate(({}, ATTRIBUTES))
    ),
    *(
        Case(
            f"S_{name}.txt",
            TU[name],
            {f"S_{other}.txt": content for other, content in TU.items() if other != name},
        )
        for name in TU
    ),
    Case("labels.txt", lines([f"{node} {node % 3}" for node in NODES]), {"g.txt": LIST}, {"labels": "labels.txt"}),
    Case("groups.txt", lines([f"{node} 7" for node in NODES]), {"g.txt": LIST}, {"transactions": "groups.txt"}),
    Case("g.txt.gz", gzip.compress(LIST)),
    Case("g.txt.bz2", bz2.compress(LIST)),
    Case("g.txt.xz", lzma.compress(LIST)),
    Case("g.txt.zst", pa.compress(LIST, codec="zstd", asbytes=True)),
    Case("g.zip", zipped({"a/g.txt": LIST, "readme": b"a"})),
    Case("set.zip", zipped({f"S/S_{name}.txt": content for name, content in TU.items()})),
    Case("g.tar", ARCHIVE),
    Case("g.tar.gz", gzip.compress(ARCHIVE)),
    Case("g.tar.bz2", bz2.compress(ARCHIVE)),
]


def require_sentences(case: Case, folder: Path, copies: int) -> None:
    """Require one line of each refusal, which begins with a file."""
    for name, content in {case.name: case.content, **case.beside}.items():
        (folder / name).write_bytes(content)
    options = {key: folder / value if isinstance(value, str) else value for key, value in case.options.items()}
    source = next((folder / name for name in (*case.beside, case.name) if name.endswith(("_A.txt", "g.txt"))), None)
    refused = refusals(folder / case.name, copies, source, **options)
    assert refused
    wrong = [text for text in refused if not text.startswith(str(folder)) or not text.isprintable() or len(text) > 1000]
    assert not wrong


@each_case("case", CASES, ids=[case.name for case in CASES])
def test_damaged_files(tmp_path: Path, case: Case) -> None:
    require_sentences(case, tmp_path, 12)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_thousand_damaged_files(tmp_path: Path, case: Case) -> None:
    require_sentences(case, tmp_path, 1000)
