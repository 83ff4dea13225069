"""Vertices with names, and labels that are texts: the graph that the input has, whatever the format or the budget."""

import csv
import gzip
import io
import uuid
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cases import each_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.names.name_table import NameTable
from longwall.storage.ingest.names.texts import Texts, hash_texts
from longwall.storage.ingest.readers.edge_stream import EdgeNames, EdgeStream
from longwall.storage.ingest.tables.table_options import TableOptions
from longwall.storage.memory.resources import open_resources

Edges = list[tuple[str, str]]
NAMES = TableOptions(ids="names")


def edges_of(graph: longwall.Graph) -> set[frozenset[str]]:
    table = graph.to_arrow()
    ends = zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)
    return {frozenset(edge) for edge in ends}


def expected(edges: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in edges if edge[0] != edge[1]}


def random_edges(vertices: int, edges: int, seed: int = 1) -> Edges:
    random = np.random.default_rng(seed)
    names = [f"näme {number:x}" * (1 + number % 3) for number in range(vertices)]
    pairs = random.integers(0, vertices, (edges, 2)).tolist()
    return [(names[u], names[v]) for u, v in pairs]


def written_as_csv(edges: Edges, path: Path, delimiter: str = ",", header: Iterable[str] = ()) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(header)
    writer.writerows(edges)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def as_table(edges: Edges, kind: pa.DataType) -> pa.Table:
    return pa.table({"source": pa.array([u for u, _ in edges]).cast(kind), "target": [v for _, v in edges]}).cast(
        pa.schema([("source", kind), ("target", kind)])
    )


def test_the_hash_is_siphash() -> None:
    """Against the vectors of its reference implementation, whose key is 0, 1, ..., 15."""
    from longwall.storage.ingest.names import texts

    for content, word, more in (
        (b"", "a3817f04ba25a8e6", "6df67214c7550293"),
        (bytes(range(8)), "3b62a9ba6258f561", "0f83e264f31497b4"),
    ):
        data = np.frombuffer(content, np.uint8)
        ids, checks = np.empty(1, np.int64), np.empty(1, np.uint64)
        keys = (np.uint64(0x0706050403020100), np.uint64(0x0F0E0D0C0B0A0908))
        texts._sip_hash(data, np.array([0]), np.array([len(content)]), *keys, ids, checks)
        assert int(ids[0]) == int.from_bytes(bytes.fromhex(word), "little") >> 1
        assert int(checks[0]).to_bytes(8, "little").hex() == more


WRITERS: dict[str, Callable[[Edges, Path], None]] = {
    "g.csv": lambda edges, path: written_as_csv(edges, path),
    "g.csv.gz": lambda edges, path: written_as_csv(edges, path, header=("source", "target")),
    "g.tsv": lambda edges, path: written_as_csv(edges, path, "\t"),
    "g.txt": lambda edges, path: written_as_csv(edges, path, "\t"),
    "g.edges": lambda edges, path: written_as_csv(edges, path, ";"),
    "string.parquet": lambda edges, path: pq.write_table(as_table(edges, pa.string()), path, row_group_size=700),
    "large.parquet": lambda edges, path: pq.write_table(as_table(edges, pa.large_string()), path),
    "plain.parquet": lambda edges, path: pq.write_table(as_table(edges, pa.string()), path, use_dictionary=False),
    "dictionary.parquet": lambda edges, path: pq.write_table(
        as_table(edges, pa.dictionary(pa.int32(), pa.string())), path
    ),
}


@each_case("name", WRITERS)
def test_every_format_has_the_same_graph(tmp_path: Path, name: str) -> None:
    edges = random_edges(300, 2000)
    WRITERS[name](edges, tmp_path / name)
    graph = load_graph(tmp_path / name)
    assert edges_of(graph) == expected(edges)
    assert graph.names is not None
    # Numbers are given in the order of the input.
    assert graph.names.to_pylist() == list(dict.fromkeys(end for edge in edges for end in edge))
    ingest(tmp_path / name, tmp_path / "g.zarr")
    stored = longwall.open_graph(tmp_path / "g.zarr")
    assert stored.content_hash == graph.content_hash
    assert edges_of(stored) == expected(edges)


@each_case(
    ("content", "edges"),
    [
        ("alice bob\nbob carol\n", [("alice", "bob"), ("bob", "carol")]),
        ("# friends\nalice bob\n\nbob  carol\n", [("alice", "bob"), ("bob", "carol")]),
        ('"Smith, J",Ann\nAnn,"say ""hi"""\n', [("Smith, J", "Ann"), ("Ann", 'say "hi"')]),
        ("a , b \nb,c\n", [("a", "b"), ("b", "c")]),
        ("source,weight,target\nx,1,y\ny,2,z\n", [("x", "y"), ("y", "z")]),
        ("10.1000/182 10.1000/5\n10.1000/5 10.1000/a\n", [("10.1000/182", "10.1000/5"), ("10.1000/5", "10.1000/a")]),
        ("person,friend\n1,2\n", None),
        ("a b\n1 2\n", None),
        ("1 2\n2 3\n", None),
    ],
)
def test_what_text_means(tmp_path: Path, content: str, edges: Edges | None) -> None:
    (tmp_path / "g.txt").write_text(content)
    graph = load_graph(tmp_path / "g.txt")
    assert graph.has_names == (edges is not None)
    if edges is not None:
        assert edges_of(graph) == expected(edges)


@pytest.mark.parametrize("separator", [",", ";", "|", "\t", " "])
@pytest.mark.parametrize("header", [None, True, False])
def test_a_first_line_that_may_name_columns_is_mentioned(tmp_path: Path, header: bool | None, separator: str) -> None:
    """If no word of the line is in a row, it names the columns; in lists with blanks, it is a row."""
    path = tmp_path / "women.txt"
    rows = [("woman", "friend"), ("ann", "bob"), ("bob", "eve")]
    for names_columns, more in ((True, []), (False, [("eve", "friend")])):
        path.write_text("\n".join(separator.join(row) for row in [*rows, *more]))
        notes: list[str] = []
        graph = load_graph(path, table=TableOptions(header=header), note=notes.append)
        taken = header if header is not None else names_columns and separator != " "
        assert graph.num_edges == 3 + len(more) - taken
        said = "names the columns, as none of its words is in a row; if it is a row, set graph.header = false"
        if not taken:
            said = "is read as a row; if it names the columns, set graph.header = true"
        beginning = f"{path}: the first line ('woman', 'friend') {said}"
        assert [note for note in notes if note.startswith(beginning)] == notes[:1] * (header is None)


def test_names_of_unknown_columns_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("payer,payee,currency\nann,bob,EUR\nbob,cy,USD\n")
    with pytest.raises(InputError, match="line 1: it is not clear which columns are meant: payer, payee, currency"):
        load_graph(path)
    path.write_text("ann,bob,EUR\nbob,cy,USD\n")
    assert edges_of(load_graph(path)) == expected([("ann", "bob"), ("bob", "cy")])


def test_integers_may_be_names(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("-1 18446744073709551615\n007 -1\n7 -1\n")
    graph = load_graph(tmp_path / "g.txt", table=NAMES)
    assert edges_of(graph) == expected([("-1", "18446744073709551615"), ("007", "-1"), ("7", "-1")])


def test_columns_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("when,who,kind,whom\n1,a,likes,b\n2,b,knows,c\n3,c,likes,a\n")
    chosen = TableOptions(("who", 4), edge_label="kind")
    graph = load_graph(tmp_path / "g.csv", table=chosen)
    assert edges_of(graph) == expected([("a", "b"), ("b", "c"), ("c", "a")])
    assert graph.edge_label_names == ("likes", "knows")
    table = graph.to_arrow()
    found = {
        frozenset((u, v)): graph.edge_label_names[label]
        for u, v, label in zip(*(table[name].to_pylist() for name in ("source", "target", "label")), strict=True)
    }
    assert found == {frozenset("ab"): "likes", frozenset("bc"): "knows", frozenset("ca"): "likes"}


@pytest.mark.parametrize("numbers", [False, True])
def test_a_table_of_vertices_labels_them(tmp_path: Path, numbers: bool) -> None:
    edges = random_edges(40, 300)
    written_as_csv(edges, tmp_path / "g.csv")
    names = sorted({end for edge in edges for end in edge})
    kinds = [number % 3 if numbers else ("person", "city", "firm")[number % 3] for number in range(len(names))]
    table = pa.table({"age": np.arange(len(names)), "id": names, "label": kinds})
    pq.write_table(table, tmp_path / "v.parquet")
    pa.csv.write_csv(table, tmp_path / "v.csv")
    for suffix in ("parquet", "csv"):
        graph = load_graph(tmp_path / "g.csv", tmp_path / f"v.{suffix}")
        assert graph.labels is not None
        found = [label if graph.label_names is None else graph.label_names[label] for label in graph.labels.tolist()]
        assert dict(zip(graph.all_ids().to_pylist(), found, strict=True)) == dict(zip(names, kinds, strict=True))
    ingest(tmp_path / "g.csv", tmp_path / "g.zarr", tmp_path / "v.csv")
    assert longwall.open_graph(tmp_path / "g.zarr").label_names == graph.label_names


def test_uuids_come_back_as_they_are_written(tmp_path: Path) -> None:
    ids = [uuid.UUID(int=2**100 * number + number) for number in range(1, 6)]
    column = pa.array([one.bytes for one in ids[:4]], pa.binary(16))
    other = pa.array([one.bytes for one in ids[1:]], pa.binary(16))
    pq.write_table(pa.table({"source": column, "target": other}), tmp_path / "g.parquet")
    graph = load_graph(tmp_path / "g.parquet")
    assert edges_of(graph) == expected([(str(u), str(v)) for u, v in pairwise(ids)])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("host", [40, 64, 1024])
def test_no_budget_changes_the_graph(tmp_path: Path, host: int) -> None:
    edges = random_edges(20_000, 120_000)
    written_as_csv(edges, tmp_path / "g.csv")
    whole = load_graph(tmp_path / "g.csv")
    spill = tmp_path / "spill"
    with open_resources(host=host << 20, disk=1 << 30, spill=spill) as resources:
        graph = load_graph(tmp_path / "g.csv", resources=resources)
        assert resources.host.peak <= host << 20
    assert graph.content_hash == whole.content_hash
    assert not spill.exists() or list(spill.iterdir()) == []


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=40), st.integers(1, 9))
def test_any_texts_are_names(edges: Edges, step: int) -> None:
    """Block by block, as no file would cut them."""

    def blocks():
        for start in range(0, len(edges), step):
            both = [end for edge in edges[start : start + step] for end in edge]
            yield EdgeNames(hash_texts(Texts.of_arrow(pa.array(both, pa.large_string()))), "row {}".format).block()

    from longwall.storage.ingest.build import build_in_memory
    from longwall.storage.memory.resources import given_or_default

    with given_or_default(None) as resources, EdgeStream("x", blocks()) as stream:
        graph = build_in_memory(stream, resources)
    assert edges_of(graph) == expected(edges)
    assert graph.names is not None
    assert graph.names.to_pylist() == list(dict.fromkeys(end for edge in edges for end in edge))


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            *[st.text(st.characters(codec="utf-8", min_codepoint=32) | st.just("\n"), min_size=1, max_size=9)] * 2
        ),
        min_size=2,
        max_size=20,
    )
)
def test_quoted_csv_is_read_as_python_reads_it(tmp_path: Path, edges: Edges) -> None:
    text = io.StringIO()
    first, *others = edges
    edges = [
        (first[0].replace("\n", " "), first[1].replace("\n", " ")),
        *others,
    ]  # the layout is that of the first line
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(edges)
    (tmp_path / "g.csv").write_text(text.getvalue(), encoding="utf-8")
    if not expected(edges):
        return
    graph = load_graph(tmp_path / "g.csv", table=TableOptions((1, 2), ids="names", header=False))
    assert edges_of(graph) == expected(edges)


REFUSED = {
    "an integer file with a name": ("g.txt", "1 2\n2 x\n", TableOptions(), "line 2: 'x' is not an integer"),
    "the remedy": ("g.txt", "1 2\n2 x\n", TableOptions(), 'set graph.ids = "names"'),
    "an empty name": ("g.csv", "a,b\nb,\n", TableOptions(), "line 2: an empty field in 'b,'"),
    "an empty quoted name": ("g.csv", 'a,b\nb,""\n', TableOptions(), "line 2: an empty field"),
    "an open quote": ("g.csv", 'a,b\nb,"c\n', TableOptions(), "line 2: a quote that is not closed"),
    "a newline in the first line": (
        "g.csv",
        '"a\n","b"\n"b","c"\n',
        TableOptions(),
        "line 1: a quote that is not closed",
    ),
    "a row with more fields": ("g.csv", "a,b\nb,c,d\n", TableOptions(), "line 2: the number of fields changes"),
    "no such column": ("g.csv", "source,target\na,b\n", TableOptions(edge_label="kind"), "there is no column kind"),
    "no such number": (
        "g.csv",
        "a,b\nb,c\n",
        TableOptions((1, 3)),
        "no column 3; columns are numbered from 1",
    ),
    "no UTF-8": ("g.txt", b"a b\nb \xff\xfe\n", TableOptions(), "line 2: the name .* is not UTF-8"),
    "two labels": (
        "g.csv",
        "a,b,x\nb,a,y\n",
        TableOptions((1, 2), 3),
        r"edge [ab]-[ab] is given twice with different labels \([xy] and [xy]\)",
    ),
}


@each_case("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, case: str) -> None:
    name, content, table, says = REFUSED[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=says) as refused:
        load_graph(tmp_path / name, table=table)
    assert "\n" not in str(refused.value)
    assert str(tmp_path / name) in str(refused.value)


def test_a_name_has_a_label_once(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("ann bob\nbob eve\n")
    for content, says in (
        ("ann x\nbob y\n", "vertex eve has an edge but no label"),
        ("ann x\nbob y\nann y\neve x\n", "line 3: vertex ann is labelled a second time"),
    ):
        (tmp_path / "v.txt").write_text(content)
        with pytest.raises(InputError, match=says):
            load_graph(tmp_path / "g.txt", tmp_path / "v.txt")


def test_long_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text(f"a,b\nb,{'x' * 70_000}\n")
    with pytest.raises(InputError, match=r"line 2: a name of 70,000 bytes"):
        load_graph(tmp_path / "g.csv")


def test_two_names_with_one_hash_are_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.storage.ingest.names import texts

    hashed = texts._sip_hash

    def poor(*arguments) -> None:
        hashed(*arguments)
        arguments[-2][:] &= 7

    monkeypatch.setattr(texts, "_sip_hash", poor)
    written_as_csv(random_edges(50, 100), tmp_path / "g.csv")
    with pytest.raises(InputError, match=r"cannot tell the names .* apart"):
        load_graph(tmp_path / "g.csv")


def test_few_names_are_kept_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a table of one slot nearly all repetitions go through the sort."""
    edges = random_edges(30, 500)
    written_as_csv(edges, tmp_path / "g.csv")
    whole = load_graph(tmp_path / "g.csv")
    monkeypatch.setattr("longwall.storage.ingest.names.name_table._MOST_SLOTS", 1)
    added = 0
    add = NameTable.add

    def counted(table: NameTable, *arguments) -> None:
        nonlocal added
        add(table, *arguments)
        added = table._count

    monkeypatch.setattr(NameTable, "add", counted)
    assert load_graph(tmp_path / "g.csv").content_hash == whole.content_hash
    assert added > 400


def test_objects_have_names() -> None:
    edges = random_edges(60, 300)
    network = nx.Graph(edges)
    nx.set_node_attributes(network, {name: f"kind {len(name) % 4}" for name in network}, "kind")
    graph = longwall.graph(network, "kind")
    assert edges_of(graph) == expected(edges)
    assert graph.labels is not None
    assert graph.label_names is not None
    found = [graph.label_names[label] for label in graph.labels.tolist()]
    assert dict(zip(graph.all_ids().to_pylist(), found, strict=True)) == {
        name: kind for name, kind in network.nodes(data="kind") if set(network[name]) - {name}
    }
    back = graph.to_networkx()
    assert {frozenset(edge) for edge in back.edges()} == expected(edges)
    other = igraph.Graph.TupleList(edges)
    assert edges_of(longwall.graph(other)) == expected(edges)
    frame = as_table(edges, pa.string()).to_pandas()
    assert edges_of(longwall.graph(frame)) == expected(edges)
