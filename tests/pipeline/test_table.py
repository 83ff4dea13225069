"""The tables that functions and results return: they show their rows, and go to other libraries as they are."""

import pickle
import re
from importlib.util import find_spec
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import longwall
from longwall import Table


@pytest.fixture(scope="module")
def motifs() -> Table:
    return longwall.motifs(nx.karate_club_graph(), 3)


def numbered(rows: int, columns: int = 2) -> Table:
    return Table(pa.table({f"c{at}": np.arange(at, rows + at) for at in range(columns)}))


def html_of(table: Table) -> ElementTree.Element:
    return ElementTree.fromstring(table._repr_html_())


def assorted(rows: int) -> pa.Table:
    """A table of the types that results have."""
    many = range(rows)
    return pa.table(
        {
            "vertex": pa.array([2**63 + at for at in many], pa.uint64()),
            "name": pa.array([f"n {at}" for at in many], pa.string()),
            "size": pa.array([at % 7 for at in many], pa.int32()),
            "count": pa.array([10**30 + at for at in many], pa.decimal128(38, 0)),
            "seconds": pa.array([at / 8 for at in many], pa.float64()),
            "labels": pa.array([["x", None][: at % 3] for at in many], pa.list_(pa.string())),
            "exact": pa.array([at % 2 == 0 for at in many], pa.bool_()),
        }
    )


@pytest.mark.parametrize("rows", [1, 2, 7, 10_000])
def test_constructors_of_other_libraries_take_a_table(rows):
    arrow = assorted(rows)
    table = Table(arrow)
    assert pa.table(table).equals(arrow)
    assert dict(table) == {name: arrow[name] for name in arrow.column_names}
    assert list(table) == arrow.to_pylist()
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    made = pandas.DataFrame(table)
    assert made.columns.tolist() == arrow.column_names
    assert made.to_dict("list") == arrow.to_pydict()
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert polars.DataFrame(table).equals(polars.from_arrow(arrow))


def test_a_loop_may_go_over_the_rows_from_the_last_one_on(monkeypatch):
    monkeypatch.setattr("longwall.pipeline.table._BATCH", 4)
    table = Table(pa.table({"a": range(10), "b": list("abcdefghij")}))
    assert list(reversed(table)) == [{"a": number, "b": "abcdefghij"[number]} for number in range(9, -1, -1)]


def test_numbers_are_those_of_rows():
    table = numbered(3)
    assert table[0] == {"c0": 0, "c1": 1}
    assert table[-1] == list(table)[-1] == {"c0": 2, "c1": 3}
    for number in (3, -4):
        with pytest.raises(IndexError):
            table[number]


def test_matches_name_the_calls_to_use_in_place_of_their_length():
    found = longwall.match(longwall.example("karate"), "triangle")
    for ask in (len, bool):
        with pytest.raises(TypeError, match=r"searched for: count\(\) counts them"):
            ask(found)
    assert sum(batch.num_rows for batch in list(found)) == 45
    for library, name in (("pandas", "DataFrame"), ("numpy", "asarray")):
        make = getattr(pytest.importorskip(library, reason=f"{library} is not installed"), name)
        with pytest.raises(TypeError, match=r"use to_pandas\(\)"):
            make(found)
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert polars.DataFrame(found).shape == pa.table(found).shape == (45, 3)


def test_functions_return_tables():
    graph = longwall.graph(nx.karate_club_graph())
    found = {
        "motifs": longwall.motifs(graph, 3),
        "orbits": longwall.orbits(graph, 3),
        "edges": longwall.count(graph, "cycle-4", per="edge"),
        "triangles": longwall.triangles(graph, per="vertex"),
        "sizes": longwall.cliques(graph, "all"),
        "frequent": longwall.frequent(graph, support=20, max_edges=2),
        "head": longwall.match(graph, "triangle").head(2),
        "groups": longwall.aggregate(longwall.edges(graph), labelled=False),
    }
    assert {name: type(table) for name, table in found.items()} == dict.fromkeys(found, Table)


def test_results_return_tables(tmp_path):
    config = {"graph": longwall.graph(nx.karate_club_graph()), "workload": {"kind": "triangles", "output": "vertices"}}
    result = longwall.run(config | {"run": {"directory": str(tmp_path)}})
    table = result.table("vertices")
    assert isinstance(table, Table)
    assert sum(table.column("triangles").to_pylist()) == 135


def test_text_is_aligned(motifs):
    assert repr(motifs).splitlines() == [
        "pattern      name      edges  count",
        "0-1,0-2      wedge         2    393",
        "0-1,0-2,1-2  triangle      3     45",
    ]
    assert str(motifs) == repr(motifs)


def test_text_of_long_and_wide_tables_has_their_ends(monkeypatch):
    lines = repr(numbered(1_234)).splitlines()
    assert lines[1].split() == ["0", "1"]
    assert lines[-2].split() == ["1233", "1234"]
    assert lines[-1] == "[1,234 rows, 2 columns]"
    assert len(lines) < 20
    monkeypatch.setenv("COLUMNS", "40")
    lines = repr(numbered(3, 74)).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[0].split()[0] == "c0"
    assert lines[0].split()[-2:] == ["…", "c73"]
    assert lines[1].split()[-1] == "73"
    assert lines[-1] == "[3 rows, 74 columns]"


def test_text_of_all_motifs_of_five_vertices_is_whole():
    motifs = longwall.motifs(longwall.example("karate"), 5)
    lines = repr(motifs).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == [str(count) for count in motifs["count"].to_pylist()]


def test_a_column_that_is_not_there_is_named_beside_those_that_are(motifs):
    with pytest.raises(KeyError, match="there is no column counts; the columns are pattern, name, edges, count"):
        motifs["counts"]


def test_text_of_empty_tables_says_so():
    assert repr(numbered(0)).splitlines() == ["c0  c1", "[0 rows, 2 columns]"]


def test_text_controls_no_terminal():
    table = Table(pa.table({"a\x1b": ["\x1b[31mred", "two\nlines", None], "list": [["a", None], None, ["\x07"]]}))
    assert "\x1b" not in repr(table)
    assert "\x07" not in repr(table)
    assert len(repr(table).splitlines()) == 4


def test_html_has_all_cells_and_aligns_numbers(motifs):
    rows = html_of(motifs.rename_columns(["edge list", "name", "edges", "count"])).findall(".//tr")
    assert [[cell.text for cell in row] for row in rows[1:]] == [
        ["0-1,0-2", "wedge", "2", "393"],
        ["0-1,0-2,1-2", "triangle", "3", "45"],
    ]
    sides = [re.search(r"text-align:(\w+)", cell.attrib["style"])[1] for cell in rows[1]]
    assert sides == ["left", "left", "right", "right"]


def test_html_of_patterns_has_their_drawings(motifs):
    drawn = html_of(motifs).findall(".//tr")[1:]
    assert [cell.text for cell in drawn[1]][1:] == ["0-1,0-2,1-2", "triangle", "3", "45"]
    assert [len(row[0].findall(".//{*}line")) for row in drawn] == [2, 3]
    labelled = longwall.frequent(longwall.graph([(0, 1), (1, 2)], labels={0: 1, 1: 2, 2: 1}), support=1, max_edges=2)
    assert len(html_of(labelled).findall(".//{*}svg")) == len(labelled)
    broken = Table(pa.table({"pattern": ["0-1", "size of cliques", None, "5-6"]}))
    assert len(html_of(broken).findall(".//{*}svg")) == 2


def test_html_of_long_and_wide_tables_is_short():
    root = html_of(numbered(1_000_000, 74))
    rows = root.findall(".//tr")
    assert len(rows) <= 16
    assert {len(row) for row in rows} == {12}
    assert rows[-1][-1].text == "1,000,072"
    assert "1,000,000 rows, 74 columns" in "".join(root.itertext())


def test_html_escapes_texts():
    table = Table(pa.table({"<b>": ["</td><script>alert(1)</script>"], "x": [["<i>", None]]}))
    assert html_of(table).find(".//script") is None
    assert "<i>, " in "".join(html_of(table).itertext())


def test_tables_are_as_arrow_tables_were(motifs):
    arrow = motifs.to_arrow()
    assert isinstance(arrow, pa.Table)
    assert motifs.num_rows == len(motifs) == arrow.num_rows == 2
    assert motifs.num_columns == 4
    assert motifs.shape == (2, 4)
    assert motifs.column_names == arrow.column_names
    assert motifs.schema == arrow.schema
    assert motifs["count"] == motifs.column(3) == motifs.column("count") == arrow["count"]
    assert motifs.columns == list(arrow.columns)
    assert "count" in motifs
    assert "counts" not in motifs
    assert motifs.to_pylist() == arrow.to_pylist()
    assert motifs.to_pydict() == arrow.to_pydict()
    assert motifs[1:].to_arrow() == motifs.slice(1).to_arrow() == arrow[1:]
    assert motifs.head(1).to_pylist() == arrow.to_pylist()[:1]
    assert motifs.select(["name"]).sort_by("name").to_pydict() == {"name": ["triangle", "wedge"]}
    assert motifs.filter(pc.field("count") > 100)["name"].to_pylist() == ["wedge"]
    assert isinstance(motifs.select(["name"]), Table)
    assert motifs.group_by("edges").aggregate([("count", "sum")]).num_rows == 2
    assert motifs.join(motifs.select(["name", "count"]), "name", right_suffix="2").num_columns == 5
    with pytest.raises(KeyError):
        motifs["none"]
    with pytest.raises(AttributeError, match=r"^a Table has no attribute 'nothing'; to_pandas\(\)"):
        motifs.nothing()


def test_tables_are_equal_if_their_rows_are(motifs):
    assert motifs == Table(motifs.to_arrow())
    assert motifs == motifs.to_arrow()
    assert motifs.equals(Table(motifs.to_arrow()))
    assert motifs != motifs[:1]
    assert motifs != "motifs"
    with pytest.raises(TypeError, match="unhashable"):
        hash(motifs)
    assert pickle.loads(pickle.dumps(motifs)) == motifs


def test_other_libraries_read_tables(motifs, monkeypatch):
    assert pa.table(motifs) == motifs.to_arrow()
    pandas = pytest.importorskip("pandas")
    assert pandas.api.types.is_integer_dtype(motifs.to_pandas()["count"])
    assert motifs.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)["count"].dtype == "Int64"
    polars = pytest.importorskip("polars")
    assert motifs.to_polars().equals(polars.DataFrame(motifs))
    if find_spec("duckdb"):
        import duckdb

        assert duckdb.connect().sql("select sum(count) from motifs").fetchall() == [(438,)]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_missing_packages_are_named(motifs, monkeypatch, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(longwall.InputError, match=f"pip install {package}"):
        getattr(motifs, f"to_{package}")()


def test_completion_has_public_names(motifs):
    names = dir(motifs)
    assert {"to_pandas", "to_polars", "to_arrow", "select", "column_names"} <= set(names)
    assert not [name for name in names if name.startswith("_")]
