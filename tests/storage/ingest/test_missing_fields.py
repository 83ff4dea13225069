"""Rows of text tables with missing fields, names that look like comments, and the two sides of bipartite graphs."""

import csv
import random
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.tables.table_options import TableOptions


def read(tmp_path: Path, name: str, content: str, **options: object) -> Graph:
    (tmp_path / name).write_text(content)
    return load_graph(tmp_path / name, table=TableOptions(**options))  # type: ignore[arg-type]


def refusal(tmp_path: Path, name: str, content: str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        read(tmp_path, name, content, **options)
    return str(caught.value)


TRIANGLES = {
    "an empty column": "source,target,type,id,label,w\n1,2,U,0,,1.0\n2,3,U,1,,1.0\n1,3,U,2,,1.0\n",
    "an empty last field": "source,target,note\n1,2,\n2,3,x\n1,3,\n",
    "no names of columns": "1,2,\n2,3,x\n1,3,\n",
    "empty alone": "1,2,,\n2,3,,\n1,3,,\n",
    "ahead of the ends": "note,source,target\n,1,2\nx,2,3\n,1,3\n",
}


@each_case("ends", [str, lambda text: text.translate(str.maketrans("123", "xyz"))], ids=["ids", "names"])
@each_case("separator", [",", ";", "|", "\t"])
@each_case("case", TRIANGLES)
def test_fields_that_are_not_read_may_be_empty(tmp_path: Path, case: str, separator: str, ends: object) -> None:
    content = TRIANGLES[case].replace(",", separator)
    content = ends(content) if callable(ends) else content
    graph = read(tmp_path, "g.tsv" if separator == "\t" else "g.csv", content)
    assert (graph.num_vertices, graph.num_edges) == (3, 3)


def test_tabs_of_any_file_separate_fields_of_which_the_last_is_empty(tmp_path: Path) -> None:
    content = "source\ttarget\tnote\n1\t2\t\n2\t3\tx\n1\t3\t\n"
    assert read(tmp_path, "g.txt", content).num_edges == 3


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("source,target,w\n1,,3\n", {}, "line 2: an empty field"),
        ("source,target\n1,\n", {}, "line 2: an empty field"),
        ("note,source,target\nx,1,\n", {}, "line 2: an empty field"),
        ("1,2,a\n2,3,\n", {"edge_label": 3}, "line 2: the label is missing"),
        ("1,2,a\n2,3\n", {"edge_label": 3}, "line 2: the label is missing"),
    ],
)
def test_missing_fields_are_named(tmp_path: Path, content: str, options: dict[str, object], says: str) -> None:
    said = refusal(tmp_path, "g.csv", content, **options)
    assert says in said
    assert "graph.ids" not in said


def gaps_of(content: str, separator: str, columns: tuple[int, int]) -> list[int]:
    """The lines with an empty end, by the reader of Python's library."""
    rows = csv.reader(content.splitlines(), delimiter=separator)
    return [line for line, row in enumerate(rows, 1) if any(not row[at].strip() for at in columns)]


@each_case("ends", ["123", "xyz"], ids=["ids", "names"])
@each_case("separator", [",", ";", "\t"])
@each_case("seed", range(3))
def test_rows_with_empty_ends_are_counted_at_once(tmp_path: Path, seed: int, separator: str, ends: str) -> None:
    draw = random.Random(seed)
    cells = [*ends, *ends, "", " " if separator != "\t" else ""]
    rows = [["source", "note", "target"], [ends[0], "x", ends[1]]]
    rows += [[draw.choice(cells), draw.choice(["a", "", f'"a{separator}b"']), draw.choice(cells)] for _ in range(20)]
    content = "\n".join(separator.join(row) for row in rows) + "\n"
    name = "g.tsv" if separator == "\t" else "g.csv"
    gaps = gaps_of(content, separator, (0, 2))
    said = refusal(tmp_path, name, content)
    assert f"line {gaps[0]}: an empty field in " in said
    assert f", and in {len(gaps) - 1} more rows up to line 22, as far as it was read; " in said
    assert 'graph.empty = "drop"' in said
    kept = [line for at, line in enumerate(content.splitlines(), 1) if at not in gaps]
    assert read(tmp_path, name, "\n".join(kept)).num_edges > 0


def test_one_row_with_an_empty_end_is_named_alone(tmp_path: Path) -> None:
    said = refusal(tmp_path, "g.csv", "source,target\n1,2\n1,\n2,3\n")
    assert "line 3: an empty field in '1,'; fill it, or set graph.empty = \"drop\" (--empty drop, or " in said


@each_case(
    ("content", "says"),
    [
        ("1,2\n,3\n4,\n5,6\n", "line 2: an empty field in ',3', and in 1 more row up to line 4"),
        (
            "1,2\nNaN,3\n4,NaN\n5,\n",
            "line 2: NaN in 'NaN,3' stands for a missing value, as in 2 more rows up to line 4",
        ),
        ("a,b\nNaN,b\na,c\nc,nan\n", "line 2: NaN stands for a missing value, as in 1 more row up to line 4"),
        ('a,b\nb,c\n,c\na,""\nc,d', "line 3: an empty field in ',c', and in 1 more row up to line 5"),
    ],
)
def test_missing_ends_of_all_forms_are_counted(tmp_path: Path, content: str, says: str) -> None:
    said = refusal(tmp_path, "g.csv", content)
    assert says in said
    assert 'graph.empty = "drop"' in said


def test_a_wide_table_of_vertices_says_how_to_narrow_it(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "people.csv").write_text("login,age,field\n1,30,x\n2,40,y\n")
    with pytest.raises(
        InputError, match=r"people\.csv, line 1: .*; leave two columns, the vertex and its label, or name them"
    ):
        load_graph(tmp_path / "g.txt", tmp_path / "people.csv")
    (tmp_path / "people.csv").write_text("login,field\n1,x\n2,y\n")
    assert load_graph(tmp_path / "g.txt", tmp_path / "people.csv").label_names == ("x", "y")


def test_missing_labels_are_counted(tmp_path: Path) -> None:
    said = refusal(tmp_path, "g.csv", "1,2,a\n2,3,\n3,4,b\n4,5,\n", edge_label=3)
    assert "line 2: the label is missing in '2,3,', and in 1 more row up to line 4, as far as it was read; " in said


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_nulls_of_a_column_are_counted_at_once(tmp_path: Path, kind: pa.DataType) -> None:
    values = ["1", None, "2", None, None, "3"]
    column = pa.array(values).cast(pa.int64()) if kind == pa.int64() else pa.array(values).cast(kind)
    table = pa.table({"src": column, "dst": column.take(pa.array([0, 0, 2, 2, 0, 2]))})
    pq.write_table(table, tmp_path / "g.parquet")
    says = "row 2: column src is empty, and in 2 more rows up to row 6, as far as it was read; fill them, or "
    for source, advice in ((table, "dropna"), (tmp_path / "g.parquet", 'graph.empty = "drop"')):
        with pytest.raises(InputError, match=says) as caught:
            longwall.triangles(source)
        assert advice in str(caught.value)


def test_integers_that_gaps_made_floats_are_explained() -> None:
    frame = pandas.DataFrame({"src": [1, None, 3], "dst": [2, 3, 1]})
    with pytest.raises(InputError, match=r"src \(double\).*pandas makes floats of integers.*dropna.*astype"):
        longwall.triangles(frame)
    assert longwall.triangles(frame.dropna().astype(int)) == 0


def test_a_missing_label_of_a_vertex_is_named(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "labels.csv").write_text("id,label\n1,\n2,3\n")
    with pytest.raises(InputError, match="line 2: the label is missing in '1,'"):
        load_graph(tmp_path / "g.txt", tmp_path / "labels.csv")


MARKERS = [
    *("NaN", "nan", "NAN", "-NaN", "-nan", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA"),
    *("null", "NULL", "Null", "None", "none"),
]


@each_case("marker", MARKERS)
def test_a_marker_of_missing_values_is_no_vertex(tmp_path: Path, marker: str) -> None:
    said = refusal(tmp_path, "g.csv", f"source,target\na,b\nb,{marker}\n{marker},a\n")
    assert f"line 3: {marker} stands for a missing value" in said
    assert 'graph.ids = "names"' in said
    said = refusal(tmp_path, "g.csv", f"source,target\n1,2\n2,{marker}\n")
    assert f"line 3: {marker} in '2,{marker}' stands for a missing value" in said
    for content in (
        f"source,target\n{marker}a,b\n",
        f'source,target\n"{marker}",b\n',
        f"source,target,x\na,b,{marker}\n",
    ):
        assert read(tmp_path, "g.csv", content).num_edges == 1
    graph = read(tmp_path, "g.csv", f"source,target\na,b\nb,{marker}\n", ids="names")
    assert sorted(graph.all_ids().to_pylist()) == sorted(["a", "b", marker])


def test_rows_below_names_of_columns_are_no_comments(tmp_path: Path) -> None:
    graph = read(tmp_path, "tags.csv", "# made today\nsource,target\n#ai,news\nnews,user\n#ai,user\n%off,user\n")
    assert sorted(graph.all_ids().to_pylist()) == ["#ai", "%off", "news", "user"]
    assert graph.num_edges == 4
    assert [(note.kind, note.count) for note in graph.notes if note.kind == "comments"] == [("comments", 1)]
    said = refusal(tmp_path, "g.csv", "source,target\n1,2\n# a comment\n2,3\n")
    assert "line 3: '# a comment' is a row: below names of columns there are no comments" in said


@pytest.mark.parametrize("ends", ["1 2\n# a\n2 3\n  % b\n", "x y\n# a\ny z\n  % b\n"])
def test_comments_are_counted(tmp_path: Path, ends: str) -> None:
    graph = read(tmp_path, "g.txt", "# a\n\n%\n" + ends)
    assert graph.num_edges == 2
    assert [(note.kind, note.count) for note in graph.notes if note.kind == "comments"] == [("comments", 4)]
    assert not [note for note in read(tmp_path, "g.txt", "\n1 2\n\n").notes if note.kind == "comments"]


SIDES = "1 1\n1 2\n2 1\n2 3\n3 1\n3 2\n"


def test_the_two_sides_of_a_bipartite_graph_of_konect_are_apart(tmp_path: Path) -> None:
    for header in ("% bip unweighted\n% 6 3 3\n", "% bip\n", "%bip weighted\r\n"):
        graph = read(tmp_path, "out.demo", header + SIDES)
        assert sorted(graph.all_ids().to_pylist()) == [-3, -2, -1, 1, 2, 3]
        assert (graph.num_edges, longwall.count(graph, "triangle")) == (6, 0)
        assert not [note for note in graph.notes if note.kind in ("loops", "directions", "repeated")]
        assert any("two sets of vertices" in note.text for note in graph.notes)
    graph = read(tmp_path, "out.demo", "% bip unweighted\n" + SIDES, columns=(2, 1))
    assert sorted(graph.all_ids().to_pylist()) == [-3, -2, -1, 1, 2, 3]
    assert "begin with 1" in refusal(tmp_path, "out.demo", "% bip unweighted\n0 1\n")
    assert 'leave out graph.ids = "names"' in refusal(tmp_path, "out.demo", "% bip\n1 1\n", ids="names")


@pytest.mark.parametrize(("kind", "directions"), [("sym", 0), ("asym", 5)])
def test_other_graphs_of_konect_have_one_set_of_vertices(tmp_path: Path, kind: str, directions: int) -> None:
    graph = read(tmp_path, "out.demo", f"% {kind} unweighted\n" + SIDES)
    assert graph.num_vertices == 3
    assert sum(note.count for note in graph.notes if note.kind == "directions") == directions
    assert read(tmp_path, "g.txt", "% a bip\n" + SIDES).num_vertices == 3


@pytest.mark.parametrize("content", ["1 1 2\n2 2 3\n", "id,group\n1,1\n2,2\n"])
def test_loops_alone_in_guessed_columns_say_how_to_choose(tmp_path: Path, content: str) -> None:
    notes = [note.text for note in read(tmp_path, "g.csv", content).notes]
    assert any("every edge is a loop in the columns that are read; say which two to read" in note for note in notes)
    assert not any("columns" in note.text for note in read(tmp_path, "g.txt", "1 1\n2 2\n").notes)


INDEXED = {
    "pandas": ",a,b\n0,{0},{1}\n1,{1},{2}\n",
    "written twice": ",Unnamed: 0,a,b\n0,0,{0},{1}\n1,1,{1},{2}\n",
    "two levels": ",,a,b\n0,8,{0},{1}\n1,9,{1},{2}\n",
    "read and written": "Unnamed: 0,a,b\n0,{0},{1}\n1,{1},{2}\n",
    "R": '"","a","b"\n"1",{0},{1}\n"2",{1},{2}\n',
    "numbers as names": ",0,1\n5,{0},{1}\n9,{1},{2}\n",
    "texts in the index": ",a,b\nx,{0},{1}\ny,{1},{2}\n",
}


@each_case("ends", [(1, 2, 3), ("k", "l", "m")], ids=["ids", "names"])
@each_case("separator", [",", ";", "\t"])
@each_case("case", INDEXED)
def test_an_index_in_a_text_is_no_end_of_an_edge(
    tmp_path: Path, case: str, separator: str, ends: tuple[object, ...]
) -> None:
    name = "g.tsv" if separator == "\t" else "g.csv"
    content = INDEXED[case].format(*ends).replace(",", separator)
    assert sorted(read(tmp_path, name, content).all_ids().to_pylist()) == list(ends)
    lines = [line.rpartition(separator)[0] for line in content.splitlines()]
    said = refusal(tmp_path, name, "\n".join(lines))
    assert "line 1: an index is no end of an edge, and two other columns are needed" in said
    assert "graph.columns" in said
    chosen = read(tmp_path, name, INDEXED["pandas"].format(1, 2, 3).replace(",", separator), columns=(1, 3))
    assert sorted(chosen.all_ids().to_pylist()) == [0, 1, 2, 3]


def test_an_index_may_hold_the_vertices_of_labels(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "labels.csv").write_text(",label\n1,x\n2,y\n")
    assert load_graph(tmp_path / "g.txt", tmp_path / "labels.csv").label_names == ("x", "y")


@pytest.mark.parametrize(
    "content", ["007 8\n7 8\n00 1\n0 2\n", "source,target\n007,8\n7,8\n00,1\n0,2\n", '"007",8\n7,8\n"00",1\n0,2\n']
)
def test_ids_with_leading_zeros_are_counted(tmp_path: Path, content: str) -> None:
    graph = read(tmp_path, "g.csv", content)
    assert sorted(graph.all_ids().to_pylist()) == [0, 1, 2, 7, 8]
    assert [(note.kind, note.count) for note in graph.notes if note.kind == "zeros"] == [("zeros", 2)]
    named = read(tmp_path, "g.csv", content, ids="names")
    assert sorted(named.all_ids().to_pylist()) == ["0", "00", "007", "1", "2", "7", "8"]
    assert not [note for note in named.notes if note.kind == "zeros"]


@each_case("width", range(1, 21))
def test_zeros_are_counted_in_numbers_of_any_length(tmp_path: Path, width: int) -> None:
    rows = [(row, row + 1) for row in range(100)]
    content = "".join(f"{u:0{width}d} {v}\n" for u, v in rows)
    graph = read(tmp_path, "g.txt", content)
    assert graph.num_edges == 100
    padded = sum(len(str(u)) < width for u, _ in rows)
    assert sum(note.count for note in graph.notes if note.kind == "zeros") == padded


FORMS = ["1.0", "+1", "1e3", "1.", "1.5", "1E5", '"1,234"', "1_000", "1'000", "1.000"]


@each_case("form", FORMS)
def test_numbers_in_other_forms_are_refused(tmp_path: Path, form: str) -> None:
    for rows in ((f"{form},2", "2,3"), ("2,3", f"{form},2"), (f"{form},{form}", f"{form},{form}", f"2,{form}")):
        content = "source,target\n" + "\n".join(rows) + "\n"
        said = refusal(tmp_path, "g.csv", content)
        assert "is not an integer; write whole numbers, or set graph.ids" in said
        assert form in said
        assert form.strip('"') in read(tmp_path, "g.csv", content, ids="names").all_ids().to_pylist()


def test_names_may_have_commas_and_digits(tmp_path: Path) -> None:
    graph = read(tmp_path, "g.csv", '"1,2","1,3"\n"1,3","0x10"\n')
    assert sorted(graph.all_ids().to_pylist()) == ["0x10", "1,2", "1,3"]


@pytest.mark.parametrize("separator", [",", " ", "\t"])
def test_labels_are_texts_if_one_of_the_first_is(tmp_path: Path, separator: str) -> None:
    content = "# c\n1,2,5\n# c\n2,3,a\n3,4,5\n".replace(",", separator)
    for ends in (content, content.translate(str.maketrans("1234", "klmn"))):
        graph = read(tmp_path, "g.txt", ends, edge_label=3)
        assert graph.edge_label_names is not None
        assert sorted(graph.edge_label_names) == ["5", "a"]
    (tmp_path / "g.txt").write_text(content)
    (tmp_path / "labels.txt").write_text("1,5\n2,a\n3,5\n4,b\n".replace(",", separator))
    labelled = load_graph(tmp_path / "g.txt", tmp_path / "labels.txt")
    assert labelled.label_names is not None
    assert sorted(labelled.label_names) == ["5", "a", "b"]


def test_a_late_text_among_labels_is_refused(tmp_path: Path) -> None:
    content = "".join(f"{row} {row + 1} 5\n" for row in range(400_000)) + "1 3 a\n"
    said = refusal(tmp_path, "g.txt", content, edge_label=3)
    assert "line 400001: the label a is no integer, as that of the first row is" in said
    assert "graph.ids" not in said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.lg", "t # 1\nv a 1\nv b 2\ne a b\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 x\n"),
        ("g.col", "p edge 3 1\ne 1 x\n"),
    ],
)
def test_messages_for_formats_without_names_do_not_advise_names(tmp_path: Path, name: str, content: str) -> None:
    said = refusal(tmp_path, name, content)
    assert "is not an integer; write whole numbers from 0 up" in said
    assert "graph.ids" not in said


@pytest.mark.parametrize("content", ["e 1 2\ne 2 3\n", "v 0 1\nv 1 1\ne 0 1\n", "# x\na 1 2 5\na 2 1 5"])
def test_a_letter_ahead_of_numbers_is_no_vertex(tmp_path: Path, content: str) -> None:
    assert "begins with a letter, as lines of DIMACS" in refusal(tmp_path, "g.txt", content)
    assert read(tmp_path, "g.txt", "e 1 2\ne 2 3\n", columns=(2, 3)).num_edges == 2
    assert read(tmp_path, "g.txt", "e 1\nf 2\n").num_edges == 2


@pytest.mark.parametrize("content", ["1 0\n2 x\n", "1 x\n2 0\n", "id,transaction\n1,x\n2,x\n"])
def test_transactions_are_integers(tmp_path: Path, content: str) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "t.txt").write_text(content)
    with pytest.raises(InputError, match="the transaction x is no integer; number the transactions from 0 up"):
        load_graph(tmp_path / "g.txt", transactions=tmp_path / "t.txt")
    pq.write_table(pa.table({"id": [1, 2], "transaction": ["x", "x"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column transaction holds string; number the transactions from 0 up"):
        load_graph(tmp_path / "g.txt", transactions=tmp_path / "t.parquet")
