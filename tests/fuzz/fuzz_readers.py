"""Graph, label, transaction and pattern files of all formats: read as a slow reader reads them, or refused.

Text is mutated by bytes, tokens and lines, Parquet by bytes and by the claims of its headers, compressed files by
bytes.
"""

import bz2
import gzip
import io
import json
import lzma
import random
import re
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive_lists
import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from budgets import make_budgets

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.readers.edge_stream import EdgeStream, FileRequest
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest
from longwall.storage.ingest.tables.edge_list import LabelList, open_edge_list
from longwall.storage.ingest.tables.table_options import TableOptions
from longwall.storage.ingest.text import text_file
from longwall.storage.memory.spill_folder import SpillFolder

SECONDS = 10.0
BYTES = 96 * 2**20
_HOST = 64 * 2**20
_READER = 2**22
_INTEGERS = ColumnRequest(EDGES, ids="integers")  # what else may be a list of names is no case here
_BLOCK = text_file.LEAST_BLOCK, text_file.LARGEST_BLOCK
_TOKENS = [
    *(b" ", b"\t", b",", b";", b"|", b"\r", b"\n", b"\r\n", b"#", b"%", b'"', b"-", b"+", b".", b"0", b"7", b"1e3"),
    *(b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"2147483648", b"00000000000000000001"),
    *(b",,", b"\t\t", b"  ", b"\x00", b"\x1a", b"\x7f", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"t # 1", b"t # -1"),
    *(b"v 0 1", b"e 0 1", b"source", b"target", b"1 2", b"1,2", b"nan", b"\x0b", b"\x0c", b"1" * 40),
]
_COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tar.bz2")
_HEADERS = [["source", "target"], ["u", "v"], ["id_1", "id_2"], ["a", "b"], ["From", "To"], ["v", "label"]]

Pairs = list[tuple[int, int]]


@dataclass
class State:
    """What all cases share."""

    tables: list[bytes]
    """Parquet files of `ROWS`."""


ROWS: Pairs = [(u, (7 * u + 1) % 40) for u in range(60)]


def prepare(folder: Path) -> State:
    """Write the Parquet files, and compile every parser."""
    tables = []
    columns = {"source": [u for u, _ in ROWS], "target": [v for _, v in ROWS], "weight": [0.5] * len(ROWS)}
    for codec in ("none", "snappy", "zstd", "gzip", "lz4", "brotli"):
        for options in (
            {},
            {"use_dictionary": False, "write_page_checksum": True},
            {"use_dictionary": False, "column_encoding": {"source": "DELTA_BINARY_PACKED"}},
            {"use_dictionary": False, "column_encoding": {"target": "BYTE_STREAM_SPLIT"}, "row_group_size": 25},
            {"data_page_version": "2.0", "row_group_size": 7, "data_page_size": 10},
        ):
            pq.write_table(pa.table(columns), folder / "t", compression=codec, **options)
            tables.append((folder / "t").read_bytes())
    state = State(tables)
    for number in range(40):
        place = folder / str(number)
        place.mkdir()
        with suppress(InputError, RunError, AssertionError):  # findings are those of the cases
            run(state, random.Random(number), place)
    return state


def run(state: State, rng: random.Random, folder: Path) -> None:
    """Read one file."""
    text_file.LEAST_BLOCK, text_file.LARGEST_BLOCK = _BLOCK
    rng.choice(KINDS)(state, rng, folder)


def read_list(state: State, rng: random.Random, folder: Path) -> None:
    """Read a list of edges, or of labels, with any separators and headers."""
    name = rng.choice(["g.txt", "g.csv", "g.tsv", "g.edges"])
    content = mutated(_list_text(rng), rng)
    path = _written(folder, name, content, rng)
    # A row with quotes may have many lines.
    longest = (len(content) if b'"' in content else max(map(len, content.split(b"\n")))) + 1
    text_file.LEAST_BLOCK = text_file.LARGEST_BLOCK = longest + rng.choice([0, 1, 7, 60, 2**16])
    read, wide = rng.choice([(_edges_of, 2), (_labels_of, 1)])
    try:
        expected: naive_lists.Rows | int = naive_lists.read_rows(content, name, wide=wide)
    except naive_lists.BadLine as error:
        expected = error.number
    try:
        found = read(path)
    except InputError as error:
        if content and f", line {expected}: " not in str(error):
            raise AssertionError(f"expected {expected}") from error
        raise
    assert not isinstance(expected, int), f"read, but line {expected} is wrong"
    assert found == [(u, v) for u, v, _ in expected]


def read_matrix(state: State, rng: random.Random, folder: Path) -> None:
    """Read a Matrix Market file."""
    field = rng.choice(["pattern", "real", "integer"])
    rows = [f"{u + 1} {v + 1}" + ("" if field == "pattern" else " 3") for u, v in ROWS[: rng.randrange(12)]]
    lines = [f"%%MatrixMarket matrix coordinate {field} general", "% c", f"60 60 {len(rows)}", *rows, ""]
    content = mutated("\n".join(lines).encode(), rng)
    graph = _graph(_written(folder, "g.mtx", content, rng), folder)
    below = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    sizes = next(at for at, line in enumerate(below) if line.strip() and line.strip()[:1] not in b"#%")
    rows_found = naive_lists.read_rows(b"\n".join(below[sizes + 1 :]), "g.mtx")
    _compare(graph, [(u, v) for u, v, _ in rows_found])
    assert len(rows_found) == int(below[sizes].split()[2])


def read_tagged(state: State, rng: random.Random, folder: Path) -> None:
    """Read a .lg, .graph or .gspan file."""
    suffix = rng.choice(["lg", "graph", "gspan"])
    edges = [(u, v) for u, v in ROWS[: rng.randrange(1, 12)] if u < v < 12]
    vertices = [f"v {v} {v % 3}" + (" 2" if suffix == "graph" else "") for v in range(12)]
    lines = [*vertices, *(f"e {u} {v} 1" for u, v in edges)]
    header = {"lg": "t # 1", "gspan": "t # 0", "graph": rng.choice([f"t 12 {len(edges)}", "t 99 12", "t # 5"])}[suffix]
    more = ["t # 1", *vertices[:4], "e 2 0 1"] if suffix == "gspan" and rng.random() < 0.5 else []
    content = mutated("\n".join([header, *lines, *more, rng.choice(["", "t # -1"])]).encode(), rng)
    graph = _graph(_written(folder, f"g.{suffix}", content, rng), folder)
    _compare(graph, _tagged_edges(content, suffix))


def read_table(state: State, rng: random.Random, folder: Path) -> None:
    """Read a Parquet file."""
    original = rng.choice(state.tables)
    content = bytearray(original)
    deed = rng.choice(["bytes", "bytes", "claim", "cut", "footer", "none"])
    if deed == "bytes":
        for _ in range(rng.choice([1, 1, 2, 8])):
            content[rng.randrange(len(content))] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    elif deed == "claim":  # a number somewhere claims to be large
        at = rng.randrange(len(content))
        large = _varint(rng.choice([2**31 - 1, 2**32 - 2, 2**20, 2**62, 255]))
        content[at : at + rng.choice([1, 2, len(large)])] = large
    elif deed == "cut":
        del content[rng.randrange(len(content)) :]
    elif deed == "footer":
        footer = int.from_bytes(content[-8:-4], "little")
        at = len(content) - 8 - rng.randrange(1, footer)
        large = b"\xfc" + _varint(rng.choice([10**3, 999_999, 2**31 - 1]))
        content[at : at + 1] = large
        content[-8:-4] = (footer + len(large) - 1).to_bytes(4, "little")
    path = folder / "g.parquet"
    path.write_bytes(bytes(content))
    graph = _graph(path, folder)
    if bytes(content) == original:
        _compare(graph, ROWS)


def read_damaged_compression(state: State, rng: random.Random, folder: Path) -> None:
    """Read a compressed list with changed bytes."""
    plain = "".join(f"{u} {v}\n" for u, v in ROWS).encode() * rng.choice([1, 50])
    suffix = rng.choice([*_COMPRESSIONS, *_ARCHIVES])
    content = bytearray(_compressed(plain, suffix))
    for _ in range(rng.choice([0, 1, 1, 2])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    path = folder / f"g.txt{suffix}"
    path.write_bytes(bytes(content))
    graph = _graph(path, folder)
    if suffix in (".gz", ".bz2", ".xz"):  # they have checksums; an archive may name another format
        _compare(graph, ROWS)


def read_metis(state: State, rng: random.Random, folder: Path) -> None:
    """Read a METIS file."""
    graph = networkx.relabel_nodes(networkx.Graph(ROWS[:12]), lambda node: node + 1)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    weighted = rng.random() < 0.5
    lines = ["% c", f"60 {graph.number_of_edges()}" + " 1" * weighted]
    for node in range(1, 61):
        others = list(graph.adj.get(node, ()))
        lines.append(" ".join(f"{other} 5" if weighted else str(other) for other in others))
    content = mutated("\n".join(lines).encode(), rng)
    found = _graph(_written(folder, rng.choice(["g.metis", "g.graph"]), content, rng), folder)
    if found.labels is None:  # else it begins with a letter
        _compare(found, _metis_edges(content))


def read_pajek(state: State, rng: random.Random, folder: Path) -> None:
    """Read a Pajek network."""
    vertices = [f'{number} "v {number}" 0.5' for number in range(1, 61)] if rng.random() < 0.5 else []
    lines = ["*Network a", "*Vertices 60", *vertices, rng.choice(["*Edges", "*Arcs"])]
    lines += [f"{u + 1} {v + 1} 2" for u, v in ROWS[: rng.randrange(9)]]
    lines += ["% c", rng.choice(["*Arcslist", "*Edgeslist"]), "1 2 3 4", "5 6"]
    content = mutated("\n".join(lines).encode(), rng)
    path = _written(folder, "g.net", content, rng)
    with SpillFolder(folder / "spill") as spill:
        budgets = make_budgets(_HOST, 2**28)
        load_graph(path, resources=budgets.at(spill))
        found = load_graph(path, resources=budgets.at(spill), table=TableOptions(ids="integers"))
    _compare(found, _pajek_edges(content))


def read_json(state: State, rng: random.Random, folder: Path) -> None:
    """Read node-link JSON."""
    graph = networkx.DiGraph(ROWS[: rng.randrange(12)])
    data = networkx.node_link_data(graph, edges=(links := rng.choice(["links", "edges"])))
    content = mutated(json.dumps(data, indent=rng.choice([None, 1])).encode(), rng)
    found = _graph(_written(folder, "g.json", content, rng), folder)
    data = json.loads(content.decode("utf-8-sig"))
    if found.names is None:
        _compare(found, [(int(link["source"]), int(link["target"])) for link in data[links]])


def read_data_set(state: State, rng: random.Random, folder: Path) -> None:
    """Read a data set of TU Dortmund."""
    pairs = [(u + 1, v + 1) for u, v in ROWS[:12]]
    entries = [pair for u, v in pairs for pair in ((u, v), (v, u))]
    files = {
        "A": "".join(f"{u}, {v}\n" for u, v in entries),
        "graph_indicator": "1\n" * 60,
        "node_labels": "0\n1\n" * 30,
        "edge_labels": "0\n" * len(entries),
    }
    changed = rng.choice([*files])
    for name, text in files.items():
        content = text.encode() if name != changed else mutated(text.encode(), rng)
        (folder / f"S_{name}.txt").write_bytes(content)
        files[name] = content.decode("utf-8", "replace")
    path = folder / rng.choice(["S_A.txt", "S.zip"])
    if path.suffix == ".zip":
        path.write_bytes(_zipped({f"S/{file.name}": file.read_bytes() for file in folder.glob("S_*")}))
    found = _graph(path, folder)
    _compare(found, [(int(line[0]), int(line[1])) for line in map(_words, files["A"].split("\n")) if line])


def read_dimacs(state: State, rng: random.Random, folder: Path) -> None:
    """Read a graph of DIMACS."""
    kind, tag, more = rng.choice([("edge", "e", ""), ("col", "e", ""), ("sp", "a", " 3")])
    rows = [f"{tag} {u + 1} {v + 1}{more}" for u, v in ROWS[: rng.randrange(12)]]
    content = mutated("\n".join(["c a", f"p {kind} 60 {len(rows)}", *rows, "c b", ""]).encode(), rng)
    graph = _graph(_written(folder, rng.choice(["g.col", "g.gr", "g.dimacs"]), content, rng), folder)
    lines = map(str.split, content.decode("utf-8-sig", "replace").split("\n"))
    _compare(graph, [(int(words[1]), int(words[2])) for words in lines if words[:1] in (["e"], ["a"])])


def read_network(state: State, rng: random.Random, folder: Path) -> None:
    """Read GraphML, GEXF or GML of networkx."""
    graph = networkx.Graph(ROWS[:12])
    suffix = rng.choice([".graphml", ".gexf", ".gml"])
    made = io.BytesIO()
    {".graphml": networkx.write_graphml_xml, ".gexf": networkx.write_gexf, ".gml": networkx.write_gml}[suffix](
        graph, made
    )
    content = mutated(made.getvalue(), rng)
    with SpillFolder(folder / "spill") as spill:
        path, resources = _written(folder, f"g{suffix}", content, rng), make_budgets(_HOST, 2**28).at(spill)
        found = load_graph(path, resources=resources, table=TableOptions(ids="integers"))
    if content == made.getvalue() and suffix != ".gml":  # whose ids are other numbers than the nodes
        _compare(found, ROWS[:12])


def read_labels(state: State, rng: random.Random, folder: Path) -> None:
    """Read labels or transactions beside a graph."""
    (folder / "g.txt").write_text("".join(f"{u} {v}\n" for u, v in ROWS))
    vertices = sorted({vertex for pair in ROWS for vertex in pair})
    lines = [f"{v} {v % 3}" for v in [*vertices, *rng.choice([[], [0, 99], [2**40]])]]
    rng.shuffle(lines)
    content = mutated("\n".join(["# c", *lines, ""]).encode(), rng)
    path = _written(folder, "l.txt", content, rng)
    kind = rng.choice(["labels", "transactions"])
    if kind == "transactions":
        (folder / "g.txt").write_text("".join(f"{v} {v + 3}\n" for v in vertices[:-3]))
    graph = _graph(folder / "g.txt", folder, **{kind: path})
    try:
        given = {u: v for u, v, _ in naive_lists.read_rows(content, "l.txt", wide=1)}
    except naive_lists.BadLine as error:
        if error.text and kind == "labels" and graph.label_names is not None:
            return
        raise
    found = graph.labels if kind == "labels" else graph.transaction_ids[graph.transactions]
    assert found.tolist() == [given[vertex] for vertex in graph.original_ids.tolist()]


def read_pattern(state: State, rng: random.Random, folder: Path) -> None:
    """Read the file of a pattern."""
    house = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4)]
    suffix = rng.choice(["graph", "graphml"])
    if suffix == "graph":
        header = rng.choice([f"t 5 {len(house)}", "t 70 5", "t # 5"])
        text_of = "\n".join([header, *(f"v {v} 1 2" for v in range(5)), *(f"e {u} {v}" for u, v in house)])
    else:
        graph = networkx.Graph(house)
        if rng.random() < 0.5:
            networkx.set_node_attributes(graph, 1, "label")
        text_of = "\n".join(networkx.generate_graphml(graph))
    content = mutated(text_of.encode(), rng)
    path = folder / f"p.{suffix}"
    path.write_bytes(content)
    pattern = parse_pattern(str(path))
    if content == text_of.encode():
        assert networkx.is_isomorphic(networkx.Graph(pattern.edges), networkx.Graph(house))


KINDS: list[Callable[[State, random.Random, Path], None]] = [
    *([read_list] * 4),
    *(
        read_matrix,
        read_tagged,
        read_tagged,
        read_table,
        read_table,
        read_damaged_compression,
        read_metis,
        read_pajek,
        read_json,
        read_dimacs,
        read_network,
        read_data_set,
        read_labels,
        read_pattern,
    ),
]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Change a text a little, or not at all."""
    for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
        deed = rng.choice(["insert", "insert", "delete", "replace", "line", "swap", "double", "cut"])
        at = rng.randrange(len(content) + 1)
        if deed == "insert":
            content = content[:at] + rng.choice(_TOKENS) + content[at:]
        elif deed == "delete":
            content = content[:at] + content[at + rng.choice([1, 1, 4]) :]
        elif deed == "replace":
            content = content[:at] + rng.choice([rng.choice(_TOKENS), bytes([rng.randrange(256)])]) + content[at + 1 :]
        elif deed == "cut":
            content = content[:at]
        else:
            lines = content.split(b"\n")
            one, other = (rng.randrange(len(lines)) for _ in range(2))
            if deed == "line":
                lines[one] = rng.choice(_TOKENS).join(rng.choice([lines[one].split(), [lines[one], b""]]))
            elif deed == "swap":
                lines[one], lines[other] = lines[other], lines[one]
            else:
                lines.insert(one, lines[other])
            content = b"\n".join(lines)
    return content


def _list_text(rng: random.Random) -> bytes:
    separator = rng.choice([" ", "\t", ",", ";", "|", ", ", " ; ", "   "])
    more = rng.choice([[], [], ["x"], ["0.5", "7"], ['"a, b"'], ["Ada B"], ["é"]])
    front = rng.choice([[], [], ["5"]])
    lines = [separator.join([*front, str(u), str(v), *more]) for u, v in ROWS[: rng.randrange(1, 12)]]
    if rng.random() < 0.5:
        names = rng.choice(_HEADERS)
        lines.insert(0, separator.join([*(["n"] * len(front)), *names, *(f"c{at}" for at in range(len(more)))]))
    lines = [line + rng.choice(["", "", " ", separator]) for line in lines]
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(["# c", "% 1 2", "", "  ", " # x"]))
    end = rng.choice(["\n", "\n", "\r\n"])
    return (rng.choice(["", "", "\ufeff"]) + end.join(lines) + rng.choice(["", end])).encode()


def _tagged_edges(content: bytes, suffix: str) -> Pairs:
    """Read the edges the slow way; vertices of a database are numbered through."""
    edges = []
    first = size = 0
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = [word for word in re.split(rb"[\s,;|]+", line) if word]
        if line.strip() == b"t # -1":
            break
        if words[:1] == [b"v"]:
            size += 1
        elif words[:1] == [b"t"]:
            first, size = first + size, 0
        elif words[:1] == [b"e"]:
            offset = first if suffix == "gspan" else 0
            edges.append((int(words[1]) + offset, int(words[2]) + offset))
    return edges


def _metis_edges(content: bytes) -> Pairs:
    """Read lists of neighbours the slow way."""
    lines = [line.strip() for line in content.decode("utf-8-sig", "replace").split("\n")]
    lines = [line for line in lines if not line.startswith("%")]
    while not lines[0]:
        lines.pop(0)
    header = lines[0].split()
    kind = header[2].zfill(3) if len(header) > 2 else "000"
    skipped = (kind[-3] == "1") + (kind[-2] == "1") * (int(header[3]) if len(header) > 3 else 1)
    step = 1 + (kind[-1] == "1")
    return [
        (vertex, int(other))
        for vertex, line in enumerate(lines[1 : int(header[0]) + 1], 1)
        for other in line.split()[skipped::step]
    ]


def _pajek_edges(content: bytes) -> Pairs:
    """Read sections of lines the slow way."""
    section, edges = "", []
    for line in content.decode("utf-8-sig", "replace").split("\n"):
        words = line.split()
        if not words or words[0].startswith("%"):
            continue
        if words[0].startswith("*"):
            section = re.sub(r"[^a-z].*", "", line.strip().lstrip("*").strip(" \t").lower())
        elif section.endswith("list"):
            edges += [(int(words[0]), int(other)) for other in words[1:]]
        elif section in ("edges", "arcs"):
            edges.append((int(words[0]), int(words[1])))
    return edges


def _words(line: str) -> list[str]:
    line = line.removeprefix("\ufeff").strip()
    return [] if line[:1] in "#%" else [word.strip('"') for word in re.split(r"[\s,;|]+", line) if word]


def _graph(path: Path, folder: Path, **others: Path) -> Graph:
    budgets = make_budgets(_HOST, 2**28)
    with SpillFolder(folder / "spill") as spill:
        return load_graph(path, resources=budgets.at(spill), **others)


def _compare(graph: Graph, pairs: Pairs) -> None:
    rows = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    ids = graph.original_ids
    found = set(zip(ids[rows].tolist(), ids[graph.indices].tolist(), strict=True))
    assert found == {edge for u, v in pairs if u != v for edge in ((u, v), (v, u))}


def _edges_of(path: Path) -> Pairs:
    raw: EdgeStream
    with open_edge_list(FileRequest(path, _READER, 2, columns=_INTEGERS)) as raw:
        return [
            pair
            for block in raw.blocks
            for pair in zip(*(_ids(block, ends) for ends in (block.src, block.dst)), strict=True)
        ]


def _labels_of(path: Path) -> Pairs:
    blocks: Any = LabelList(FileRequest(path, _READER, 2, columns=_INTEGERS)).blocks()
    return [pair for block in blocks for pair in zip(_ids(block, block.ids), block.values.tolist(), strict=True)]


def _ids(block: Any, words: Any) -> list[int]:
    ids: list[int] = (words.view(np.uint64) if block.unsigned else words).tolist()
    return ids


def _written(folder: Path, name: str, content: bytes, rng: random.Random) -> Path:
    suffix = rng.choice(["", "", *_COMPRESSIONS, *_ARCHIVES])
    path = folder / f"{name}{suffix}"
    path.write_bytes(_compressed(content, suffix, name) if suffix else content)
    return path


def _compressed(content: bytes, suffix: str, name: str = "g.txt") -> bytes:
    if suffix == ".zip":
        return _zipped({name: content})
    if suffix.startswith(".tar"):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            member = tarfile.TarInfo(f"folder/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        content, suffix = made.getvalue(), suffix.removeprefix(".tar")
    return _COMPRESSIONS[suffix](content) if suffix else content


def _zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])
