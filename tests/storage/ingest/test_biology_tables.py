"""Tables as databases of proteins write them: fields with blanks and bars, names of columns in a comment, SIF."""

import csv
import gzip
from pathlib import Path

import igraph
import networkx as nx
import pyarrow.csv
import pytest
from cases import each_case
from mutations import refusals

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.tables.table_options import TableOptions

NETWORK = nx.relabel_nodes(nx.davis_southern_women_graph(), lambda name: name.replace(" ", "-"))
NUMBERED = nx.convert_node_labels_to_integers(nx.karate_club_graph(), first_label=5)
NAMES = ("Interaction ID", "Entrez A", "Entrez B", "Symbol A", "Symbol B", "Synonyms A", "Author")


def edges_of(graph: longwall.Graph) -> set[frozenset[object]]:
    table = graph.to_arrow()
    return {frozenset(edge) for edge in zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)}


def expected(network: nx.Graph) -> set[frozenset[object]]:
    return set(map(frozenset, network.edges))


def interactions(path: Path, head: str = "#") -> None:
    """Write a table of interactions: bars and blanks in some fields, names of columns with blanks."""
    synonyms = ("-", "CYC2'|p34 kinase", "YNL245C|A|2',3'-x", "one two three")
    lines = [head + "\t".join(NAMES)] if head != "none" else []
    for number, (u, v) in enumerate(NUMBERED.edges):
        row = (number + 700, u, v, f"G{u}", f"G{v}", synonyms[number % 4], "Marti A (1997)")
        lines.append("\t".join(map(str, row)))
    path.write_text("\n".join(lines) + "\n")


@each_case("suffix", ["txt", "tsv", "tab", "txt.gz"])
@each_case("head", ["#", "", "# "])
def test_tabs_separate_fields_with_blanks_and_bars(tmp_path: Path, suffix: str, head: str) -> None:
    plain = tmp_path / "plain.tsv"
    interactions(plain, head)
    path = tmp_path / f"interactions.{suffix}"
    content = plain.read_bytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    for chosen in (("Entrez A", "Entrez B"), (2, 3)):
        assert edges_of(load_graph(path, table=TableOptions(chosen))) == expected(NUMBERED)
    symbols = load_graph(path, table=TableOptions(("Symbol A", "Symbol B")))
    assert edges_of(symbols) == expected(nx.relabel_nodes(NUMBERED, "G{}".format))
    table = pyarrow.csv.read_csv(plain, parse_options=pyarrow.csv.ParseOptions(delimiter="\t"))
    pairs = zip(table["Symbol A"].to_pylist(), table["Symbol B"].to_pylist(), strict=True)
    assert edges_of(symbols) == set(map(frozenset, pairs))


@each_case("head", ["#", "", "# "])
def test_many_columns_without_a_known_pair_are_refused(tmp_path: Path, head: str) -> None:
    """To read the first two of them would be another graph: numbers of interactions and one of their ends."""
    interactions(tmp_path / "g.txt", head)
    with pytest.raises(InputError, match="it is not clear which columns are meant: Interaction ID, Entrez A, Entrez B"):
        load_graph(tmp_path / "g.txt")
    with pytest.raises(InputError, match="there is no column Entrez C; the columns are Interaction ID, Entrez A"):
        load_graph(tmp_path / "g.txt", table=TableOptions(("Entrez A", "Entrez C")))


def test_rows_without_names_of_columns(tmp_path: Path) -> None:
    interactions(tmp_path / "g.txt", "none")
    assert edges_of(load_graph(tmp_path / "g.txt", table=TableOptions((2, 3)))) == expected(NUMBERED)


@each_case(
    ("content", "edges"),
    [
        ("# made by a tool\n1 2 5\n2 3 5\n", {(1, 2), (2, 3)}),
        ("# Nodes: 3, Edges: 2\n1 2 5\n2 3 5\n", {(1, 2), (2, 3)}),
        ("# FromNodeId\tToNodeId\n1\t2\n2\t3\n", {(1, 2), (2, 3)}),
        ("# FromNodeId\tToNodeId\tSign\n1\t2\t1\n2\t3\t1\n", {(1, 2), (2, 3)}),
        ("#when\tsource\ttarget\n7\t1\t2\n7\t2\t3\n", {(1, 2), (2, 3)}),
        ("#when\tsource\ttarget\n# made by a tool\n1\t2\t7\n2\t3\t7\n", {(1, 2), (2, 3)}),
        ("#a\tb\tc\n1\t2\n2\t3\n", {(1, 2), (2, 3)}),
        ("1\t\t2\n2\t\t3\n", {(1, 2), (2, 3)}),
        ("#p\tq\tr\nwhen\tsource\ttarget\n7\t1\t2\n7\t2\t3\n", {(1, 2), (2, 3)}),
        ("#p\tq\tr\na\tb\tx\nb\tc\tx\n", {("a", "b"), ("b", "c")}),
        ("1\t2\tx,y\n2\t3\tz\n", {(1, 2), (2, 3)}),
        ("Ann Lee\tBo\nBo\tCy Day\n", {("Ann Lee", "Bo"), ("Bo", "Cy Day")}),
    ],
)
def test_other_comments_and_tabs_are_read_as_ever(
    tmp_path: Path, content: str, edges: set[tuple[object, object]]
) -> None:
    (tmp_path / "g.txt").write_text(content)
    assert edges_of(load_graph(tmp_path / "g.txt")) == set(map(frozenset, edges))


@each_case(
    "names",
    [
        ("protein1", "protein2", "combined_score"),
        ("Score", "Protein A", "Protein B"),
        ("gene_a", "score", "gene_b"),
        ("#node1", "node2", "node1_string_id", "node2_string_id", "score"),
        ("interactor_A", "interactor_B", "method"),
    ],
)
@each_case("delimiter", [" ", "\t", ","])
def test_pairs_of_names(tmp_path: Path, names: tuple[str, ...], delimiter: str) -> None:
    if delimiter == " ":
        names = tuple(name.replace(" ", "_") for name in names)
    first, second = (at for at, name in enumerate(names) if name.strip("#")[-1] in "12abAB")
    with (tmp_path / "g.txt").open("w", newline="") as file:
        file.write(delimiter.join(names) + "\n")
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        for u, v in NETWORK.edges:
            row = ["7"] * len(names)
            row[first], row[second] = u, v
            writer.writerow(row)
    assert edges_of(load_graph(tmp_path / "g.txt")) == expected(NETWORK)


@each_case("delimiter", [" ", "\t"])
@each_case("suffix", ["sif", "SIF", "sif.gz"])
def test_a_sif_file_has_its_edges_in_the_first_and_the_third_column(
    tmp_path: Path, delimiter: str, suffix: str
) -> None:
    lines = [delimiter.join((u, "pd" if len(v) % 2 else "pp", v)) for u, v in NETWORK.edges]
    path = tmp_path / f"g.{suffix}"
    content = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert edges_of(load_graph(path)) == expected(NETWORK)
    labelled = load_graph(path, table=TableOptions(edge_label=2))
    assert sorted(labelled.edge_label_names or ()) == ["pd", "pp"]
    ends = igraph.Graph.TupleList([(line.split(delimiter)[0], line.split(delimiter)[2]) for line in lines])
    assert labelled.num_edges == ends.ecount()


@each_case(
    ("row", "says"),
    [("c pp d e", "the number of fields changes from 3 to 4"), ("c", "too few columns|the number of fields changes")],
)
def test_other_lines_of_sif_files_are_refused(tmp_path: Path, row: str, says: str) -> None:
    (tmp_path / "g.sif").write_text(f"a pp b\n{row}\n")
    with pytest.raises(InputError, match=f"line 2: ({says})"):
        load_graph(tmp_path / "g.sif")
    (tmp_path / "h.sif").write_text("a pp b c\n")
    with pytest.raises(InputError, match="line 1: 4 fields in 'a pp b c'; this format has 3 a row"):
        load_graph(tmp_path / "h.sif")


@pytest.mark.slow
@each_case("name", ["g.sif", "g.txt"])
def test_mutated_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "g.sif":
        path.write_text("\n".join(f"{u}\tpp\t{v}" for u, v in NETWORK.edges))
    else:
        interactions(path)
    options = {} if name == "g.sif" else {"table": TableOptions(("Entrez A", "Entrez B"))}
    refused = refusals(path, 500, **options)
    assert refused
    assert not [message for message in refused if "\n" in message]


@each_case("numbers", [False, True])
def test_labels_of_other_vertices_are_not_called_missing(tmp_path: Path, numbers: bool) -> None:
    """As where igraph numbers the vertices, and the table of labels has their names."""
    network = igraph.Graph.from_networkx(nx.convert_node_labels_to_integers(NETWORK))
    network.vs["name"] = [
        "9" * numbers + f"{100 + vertex.index}" if numbers else f"P{vertex.index}" for vertex in network.vs
    ]
    network.write_graphml(str(tmp_path / "g.graphml"))
    (tmp_path / "go.tsv").write_text("id\tlabel\n" + "".join(f"{name}\tGO:1\n" for name in network.vs["name"]))
    first = network.vs["name"][0]
    says = (
        rf"go\.tsv: none of its vertices, such as {first}, has an edge in the graph, whose vertices are such as n\d+; "
    )
    with pytest.raises(InputError, match=says + r"write .*graph\.vertex_name"):
        load_graph(tmp_path / "g.graphml", tmp_path / "go.tsv")
    named = load_graph(tmp_path / "g.graphml", tmp_path / "go.tsv", table=TableOptions(vertex_name="name"))
    assert named.num_edges == NETWORK.number_of_edges()
