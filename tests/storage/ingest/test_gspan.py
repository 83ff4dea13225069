"""Databases of graphs in gSpan's format, and transactions of the vertices of any graph: what is read and refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from budgets import make_budgets
from cases import each_case
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import open_store
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.ingest.build import build_in_memory
from longwall.storage.ingest.formats import detect_format
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.readers.gspan import open_transactions
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder

Transaction = tuple[int, list[int], dict[tuple[int, int], int]]
"""Id, labels of the vertices, edges with their labels."""
Database = list[Transaction]

TWO = "t # 4\nv 0 7\nv 1 8\nv 2 7\ne 0 1 3\ne 2 1 5\nt # 9\nv 0 8\nv 1 8\ne 1 0 3\n"


def text_of(database: Database) -> str:
    """Write a database as its field does."""
    lines = []
    for number, labels, edges in database:
        lines.append(f"t # {number}")
        lines += [f"v {vertex} {label}" for vertex, label in enumerate(labels)]
        lines += [f"e {u} {v} {label}" for (u, v), label in edges.items()]
    return "\n".join([*lines, "t # -1", ""])


def facts_of(graph: Graph) -> tuple[dict[int, tuple[int, int]], dict[tuple[int, int], int]]:
    """Return original id -> (transaction's id, label), and edge of original ids -> label."""
    assert graph.labels is not None
    assert graph.edge_labels is not None
    assert graph.transactions is not None
    assert graph.transaction_ids is not None
    ids, owners = graph.original_ids, graph.transaction_ids[graph.transactions]
    rows = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    arcs = zip(ids[rows].tolist(), ids[graph.indices].tolist(), graph.edge_labels.tolist(), strict=True)
    edges = {(u, v): label for u, v, label in arcs}
    assert all(edges[v, u] == label for (u, v), label in edges.items())
    vertices = zip(owners.tolist(), graph.labels.tolist(), strict=True)
    return dict(zip(ids.tolist(), vertices, strict=True)), {(u, v): x for (u, v), x in edges.items() if u < v}


def expected_of(database: Database) -> tuple[dict[int, tuple[int, int]], dict[tuple[int, int], int]]:
    vertices: dict[int, tuple[int, int]] = {}
    wanted: dict[tuple[int, int], int] = {}
    first = 0
    for number, labels, edges in database:
        used = {vertex for edge in edges for vertex in edge}
        vertices |= {first + vertex: (number, labels[vertex]) for vertex in used}
        wanted |= {(first + min(edge), first + max(edge)): label for edge, label in edges.items()}
        first += len(labels)
    return vertices, wanted


def refusal(path: Path, **arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_graph(path, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


@st.composite
def databases(draw: st.DrawFn) -> Database:
    """Databases with at least one edge; transactions without edges or vertices, ids in any order."""
    numbers = draw(st.lists(st.integers(0, 2**62), min_size=1, max_size=6, unique=True))
    database: Database = []
    for number in numbers:
        labels = draw(st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 3), max_size=6))
        pairs = [(u, v) for u in range(len(labels)) for v in range(len(labels)) if u < v]
        chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        edges = {}
        for u, v in chosen:
            edges[(u, v) if draw(st.booleans()) else (v, u)] = draw(st.integers(0, 2**31 - 1) | st.integers(0, 3))
        database.append((number, labels, edges))
    if not any(edges for _, _, edges in database):
        database.append((2**62 + 1, [1, 2], {(0, 1): 3}))
    return database


@given(databases())
@settings(max_examples=50, deadline=None)
def test_a_database_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, database: Database) -> None:
    path = tmp_path_factory.mktemp("database") / "graphs.gspan"
    path.write_text(text_of(database))
    graph = load_graph(path)
    assert facts_of(graph) == expected_of(database)
    assert graph.transaction_ids is not None
    assert graph.transaction_ids.tolist() == sorted(number for number, _, _ in database)
    assert graph.num_transactions == len(database)


@each_case(
    "content",
    [
        TWO,
        TWO + "t # -1\n",
        TWO + "t # -1",
        TWO.replace("\n", "\r\n"),
        "\n" + TWO.replace("t #", "\n  t  #") + "\n\n",
        "# a comment\n" + TWO.replace("e 0", "% another\ne 0"),
        TWO.replace("t # 9", "t # 9 * 25"),
        TWO.replace("v 0 7", "v\t0\t7").replace("t # 4", "t\t#\t4"),
        "\ufeff" + TWO,
    ],
)
@each_case("compression", ["", ".gz", ".zst"])
def test_ways_of_writing_a_database(tmp_path: Path, content: str, compression: str) -> None:
    path = tmp_path / f"graphs.gspan{compression}"
    data = content.encode()
    if compression == ".gz":
        data = gzip.compress(data)
    elif compression == ".zst":
        data = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(data)
    assert facts_of(load_graph(path)) == (
        {0: (4, 7), 1: (4, 8), 2: (4, 7), 3: (9, 8), 4: (9, 8)},
        {(0, 1): 3, (1, 2): 5, (3, 4): 3},
    )


def test_a_database_of_one_transaction(tmp_path: Path) -> None:
    path = tmp_path / "one.gspan"
    path.write_text("t # 0\nv 0 1\nv 1 1\ne 0 1 2\n")
    graph = load_graph(path)
    assert facts_of(graph) == ({0: (0, 1), 1: (0, 1)}, {(0, 1): 2})
    assert graph.num_transactions == 1


def test_transactions_without_edges_count(tmp_path: Path) -> None:
    path = tmp_path / "few.gspan"
    path.write_text("t # 8\nt # 3\nv 0 1\nt # 5\nv 0 1\nv 1 1\ne 0 1 2\nt # 1\n")
    graph = load_graph(path)
    assert graph.transaction_ids is not None
    assert graph.transaction_ids.tolist() == [1, 3, 5, 8]
    assert facts_of(graph) == ({1: (5, 1), 2: (5, 1)}, {(1, 2): 2})


def test_the_compounds_have_their_published_size(data: Path) -> None:
    path = data / "transactions" / "Compound_422.gz"
    graph = load_graph(path, file_format="transactions")
    assert graph.transactions is not None
    with gzip.open(path, "rt") as file:
        first = [line.split()[0] for line in file if line.strip()]
    assert graph.num_transactions == first.count("t") - 1 == 422  # the last line ends the file
    assert graph.num_edges == first.count("e")
    assert graph.num_vertices <= first.count("v")
    assert len(np.unique(graph.transactions)) == 422


@each_case(
    ("content", "says"),
    [
        ("v 0 1\nv 1 1\ne 0 1 2\n", ", line 1: this line stands ahead of the first transaction"),
        ("\n# c\ne 0 1 2\nt # 0\n", ", line 3: this line stands ahead of the first transaction"),
        (
            "# c\n0 1\n1 2\n",
            ", line 2: '0 1' looks like an edge list, and the file is read in the format transactions: give a database",
        ),
        ("t # 0\n0 1\n1 2\n", ", line 2: '0 1' is neither a vertex (v ...) nor an edge (e ...)"),
        ("t # 0\nv 0 1\nhello\n", ", line 3: 'hello' is neither"),
        ("t # 0\nv 0 1\nv 0 1\n", ", line 3: vertex 0 of transaction 0 is declared a second time"),
        ("t # 0\nv 0 1\nv 1 1\ne 0 1 2\nv 1 3\n", ", line 5: vertex 1 of transaction 0 is declared a second time"),
        ("t # 6\nv 1 1\nv 0 1\n", ", line 2: vertex 1 of transaction 6 stands where vertex 0 is due"),
        ("t # 6\nv 0 1\nt # 7\nv 1 1\n", ", line 4: vertex 1 of transaction 7 stands where vertex 0 is due"),
        (
            "t # 0\nv 0 1\nv 1 1\ne 0 2 2\n",
            ", line 4: vertex 2 of transaction 0 is not declared; add a line 'v 2 LABEL'",
        ),
        ("t # 0\nv 0 1\nv 1 1\ne 5 1 2\n", ", line 4: vertex 5 of transaction 0 is not declared"),
        ("t # 0\nv 0 1\ne 0 1 2\nv 1 1\n", ", line 3: vertex 1 of transaction 0 is not declared"),
        ("t # 0\nv 0 1\nv 1 1\nt # 1\ne 0 1 2\n", ", line 5: vertex 0 of transaction 1 is not declared"),
        ("t # 0\nv 0 1\nv 1 1\ne 1 1 2\n", ", line 4: this edge joins vertex 1 of transaction 0 to itself"),
        ("t # 0\nv 0 1\nv 1 1\ne 0 1\n", ", line 4: this edge has no label; write 'e VERTEX VERTEX LABEL'"),
        ("t # 0\nv 0\n", ", line 2: the label is missing in 'v 0'"),
        ("t # 0\nv 0 1\nv 1 1\ne 0\n", ", line 4: too few columns in 'e 0'"),
        ("t # 0\nv 0 -1\n", ", line 2: negative number -1"),
        ("t # 0\nv 0 1\nv 1 1\ne 0 1 -2\n", ", line 4: negative number -2"),
        ("t # -2\nv 0 1\n", ", line 1: negative number -2"),
        (f"t # {2**64}\nv 0 1\n", f", line 1: {2**64} is 2^63 or more"),
        (f"t # 0\nv 0 {2**31}\n", ", line 2: this line has a label >= 2^31"),
        (f"t # 0\nv 0 1\nv 1 1\ne 0 1 {2**31}\n", ", line 4: this line has a label >= 2^31"),
        ("t # 0\nv C 0\n", ", line 2: 'C' is not an integer"),
        ("t # x\nv 0 1\n", ", line 1: 'x' is not an integer"),
        ("t #\nv 0 1\n", ", line 1: 't #' does not begin a transaction; write 't # NUMBER'"),
        ("t 0\nv 0 1\n", ", line 1: 't 0' does not begin a transaction"),
        ("t 5 4\nv 0 9 0\n", ", line 1: 't 5 4' does not begin a transaction"),
        ("t #0\nv 0 1\n", ", line 1: 't #0' does not begin a transaction"),
        ("t", ", line 1: 't' does not begin a transaction"),
        ("", ": the file is empty"),
        ("# nothing\n\n", ": there are no transactions; begin each with a line 't # NUMBER'"),
        ("t # -1\n", ": there are no transactions"),
        ("t # 0\nv 0 1\nv 1 1\ne 0 1 2\ne 0 1 2\n", ", line 5: this edge is given a second time in its transaction"),
        ("t # 0\nv 0 1\nv 1 1\ne 0 1 2\ne 1 0 3\n", ", line 5: this edge is given a second time in its transaction"),
        ("t # 3\nv 0 1\nv 1 1\ne 0 1 2\nt # 4\nt # 3\n", ", line 6: transaction 3 begins a second time"),
        ("t # 3\nv 0 1\nv 1 1\ne 0 1 2\nt # 5\nt # 4\nt # 5\nt # 3\n", ", line 7: transaction 5 begins a second time"),
    ],
)
def test_a_wrong_database_is_refused_with_its_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "graphs.gspan"
    path.write_text(content)
    assert refusal(path).startswith(f"{path}{says}")


def long_database(transactions: int) -> str:
    one = "v 0 1\nv 1 2\nv 2 1\ne 0 1 0\ne 1 2 1\n"
    return "".join(f"t # {number}\n{one}" for number in range(transactions))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("v 3 1\nv 3 1\n", ", line 60002: vertex 3 of transaction 9999 is declared a second time"),
        ("e 0 2 1\ne 2 0 1\n", ", line 60002: this edge is given a second time"),
        ("t # 77\n", ", line 60001: transaction 77 begins a second time"),
    ],
)
def test_lines_are_counted_over_many_blocks_of_text(tmp_path: Path, more: str, says: str) -> None:
    path = tmp_path / "graphs.gspan"
    path.write_text(long_database(10_000) + more)
    with SpillFolder(tmp_path / "spill") as spill, pytest.raises(InputError) as caught:
        build_in_memory(open_transactions(FileRequest(path, 2**21, 2)), make_budgets(2**26).at(spill))
    assert str(caught.value).startswith(f"{path}{says}")


@pytest.mark.slow
def test_transactions_and_edge_labels_survive_a_small_budget_and_a_store(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lines = []
    for number in range(3_000):
        size = int(rng.integers(2, 30))
        lines += [f"t # {3 * number}", *(f"v {v} {rng.integers(4)}" for v in range(size))]
        lines += [f"e {rng.integers(v)} {v} {rng.integers(3)}" for v in range(1, size)]
    path = tmp_path / "graphs.gspan"
    path.write_text("\n".join(lines))
    whole = load_graph(path)

    budgets = make_budgets(4 * 2**20)
    with SpillFolder(tmp_path / "spill") as spill:
        assert ingest(path, tmp_path / "store", resources=budgets.at(spill)) == whole.stats
    assert budgets.host.used == 0
    assert budgets.disk.peak > 0
    write_graph(whole, tmp_path / "copy")
    host = MemoryBudget("memory.host", 2**26)
    stored = open_store(tmp_path / "store", host)
    assert host.used == stored.nbytes
    for graph in (stored, open_store(tmp_path / "copy")):
        assert graph.content_hash == whole.content_hash
        assert graph.num_transactions == 3_000
        assert facts_of(graph) == facts_of(whole)


def test_the_hash_covers_the_transactions(tmp_path: Path) -> None:
    hashes = set()
    for number, more in ((4, ""), (5, ""), (4, "t # 10\n")):
        path = tmp_path / "graphs.gspan"
        path.write_text(TWO.replace("t # 4", f"t # {number}") + more)
        hashes.add(load_graph(path).content_hash)
    path.write_text("t # 1\nv 0 7\nv 1 8\nv 2 7\ne 0 1 3\ne 2 1 5\nv 3 8\nv 4 8\ne 4 3 3\n")
    hashes.add(load_graph(path).content_hash)
    hashes.add(load_graph(path, file_format="lg").content_hash)
    assert len(hashes) == 5


def test_a_store_with_half_of_the_transactions_is_damaged(tmp_path: Path) -> None:
    from dataclasses import replace

    path = tmp_path / "graphs.gspan"
    path.write_text(TWO)
    graph = load_graph(path)
    write_graph(replace(graph, transaction_ids=None), tmp_path / "store")
    with pytest.raises(InputError, match="damaged"):
        open_store(tmp_path / "store")


def test_the_format_is_known_by_its_extension_or_given(tmp_path: Path) -> None:
    assert detect_format("a/graphs.gspan.gz") == "transactions"
    path = tmp_path / "graphs.txt"
    path.write_text(TWO)
    assert refusal(path) == (
        f"{path}, line 1: 't # 4' is not an edge; a database of graphs is read in the format transactions"
    )
    assert refusal(path, file_format="lg").startswith(
        f"{path}, line 7: 't # 9' starts another graph; split the file, or"
    )
    assert load_graph(path, file_format="transactions").num_transactions == 2
    assert "there is no format 'gspan'; choose one of edge-list, parquet, " in refusal(path, file_format="gspan")


def test_ingest_and_info_on_the_command_line(tmp_path: Path) -> None:
    path, store = tmp_path / "graphs.txt", tmp_path / "store"
    path.write_text(TWO + "t # 11\n")
    arguments = ["ingest", str(path), str(store), "--format", "transactions", "--spill", str(tmp_path / "spill")]
    made = CliRunner().invoke(app, arguments)
    assert made.exit_code == 0, made.output
    printed = CliRunner().invoke(app, ["info", str(store), "--json"])
    facts = json.loads(printed.stdout.splitlines()[-1])
    assert (facts["num_vertices"], facts["transactions"]) == (5, 3)
    wrong = CliRunner().invoke(app, ["ingest", str(path), str(tmp_path / "other"), "--format", "lines"])
    assert wrong.exit_code == 2
    assert not (tmp_path / "other").exists()


class TestTransactionsOfAnOrdinaryGraph:
    """The key `graph.transactions`: "vertex transaction" lines."""

    @pytest.fixture
    def edges(self, tmp_path: Path) -> Path:
        path = tmp_path / "edges.txt"
        path.write_text("1 2\n2 3\n10 11\n")
        return path

    @pytest.mark.parametrize("suffix", [".txt", ".parquet"])
    def test_they_are_read_as_labels_are(self, tmp_path: Path, edges: Path, suffix: str) -> None:
        path = tmp_path / f"transactions{suffix}"
        pairs = {2: 70, 1: 70, 3: 70, 11: 5, 10: 5, 7: 100, 0: 5, 12: 5}
        if suffix == ".txt":
            path.write_text("# vertex transaction\n" + "".join(f"{v} {t}\n" for v, t in pairs.items()))
        else:
            pq.write_table(pa.table({"vertex": list(pairs), "transaction": list(pairs.values())}), path)
        graph = load_graph(edges, transactions=path)
        assert graph.transactions is not None
        assert graph.transaction_ids is not None
        assert graph.transaction_ids.tolist() == [5, 70, 100]  # vertex 7 has no edge, but its transaction counts
        owners = graph.transaction_ids[graph.transactions].tolist()
        assert dict(zip(graph.original_ids.tolist(), owners, strict=True)) == {1: 70, 2: 70, 3: 70, 10: 5, 11: 5}
        assert graph.labels is None

    @pytest.mark.parametrize(
        ("transactions", "says"),
        [
            ("1 0\n2 0\n3 8\n10 1\n11 1\n", "joins transaction"),
            ("1 0\n2 0\n10 1\n11 1\n", ": vertex 3 has an edge but no transaction"),
            (
                "1 0\n2 0\n3 0\n10 1\n11 1\n1 4\n",
                ", line 6: vertex 1 is listed a second time, with a different transaction",
            ),
            ("1 0\n2\n", ", line 2: the transaction is missing in '2'"),
            ("1 0\n2 -1\n", ", line 2: negative number -1"),
            ("", ": the file is empty"),
        ],
    )
    def test_wrong_ones_are_refused(self, tmp_path: Path, edges: Path, transactions: str, says: str) -> None:
        path = tmp_path / "transactions.txt"
        path.write_text(transactions)
        message = refusal(edges, transactions=path)
        assert message.startswith(str(path))
        assert says in message

    def test_an_edge_between_two_transactions_names_both(self, tmp_path: Path, edges: Path) -> None:
        path = tmp_path / "transactions.txt"
        path.write_text("1 6\n2 6\n3 8\n10 1\n11 1\n")
        message = refusal(edges, transactions=path)
        assert "edge 2-3 joins transaction 6 to transaction 8" in message or (
            "edge 3-2 joins transaction 8 to transaction 6" in message
        )
        with pytest.raises(InputError, match="joins transaction"):
            ingest(
                edges, tmp_path / "store", transactions=path, resources=make_budgets(2**26).at(SpillFolder(tmp_path))
            )
        assert not (tmp_path / "store").exists()

    def test_they_are_given_once(self, tmp_path: Path, edges: Path) -> None:
        path, database = tmp_path / "transactions.txt", tmp_path / "graphs.gspan"
        path.write_text("1 6\n2 6\n3 6\n10 1\n11 1\n")
        database.write_text(TWO)
        assert "transactions of its own" in refusal(database, transactions=path)
        graph = load_graph(edges, transactions=path)
        write_graph(graph, tmp_path / "store")
        assert open_store(tmp_path / "store").content_hash == graph.content_hash
        assert "keeps its own transactions" in refusal(tmp_path / "store", transactions=path)

    def test_the_config_has_the_key(self, tmp_path: Path, edges: Path) -> None:
        path = tmp_path / "transactions.txt"
        path.write_text("1 6\n2 6\n3 6\n10 1\n11 1\n")
        (tmp_path / "run.toml").write_text(
            '[graph]\npath = "edges.txt"\ntransactions = "transactions.txt"\n[workload]\nkind = "triangles"\n'
        )
        spec = load_config(tmp_path / "run.toml")
        assert spec.graph.transactions == path
        assert load_config(spec.with_absolute_paths().to_dict()).graph.transactions == path.absolute()
        with pytest.raises(InputError, match=r"graph\.transactions: a generated graph has no transactions"):
            load_config(
                {
                    "graph": {"generator": {"kind": "rmat", "scale": 4}, "transactions": str(path)},
                    "workload": {"kind": "triangles"},
                }
            )
