"""Objects that were silently read as another graph, or refused without advice."""

import decimal
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.objects import tables


def edges_of(graph: longwall.Graph) -> set[frozenset[Any]]:
    table = graph.to_arrow()
    return {frozenset(pair) for pair in zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)}


def payments() -> pd.DataFrame:
    names = {"payer": ["a", "b", "a", "c"], "payee": ["b", "c", "c", "d"]}
    return pd.DataFrame({"tx_id": [7, 5, 3, 9], **names, "amount": [0.1, 0.9, 0.8, 0.7]})


NAMED_INDEX = payments().set_index("tx_id").assign(count=[1, 2, 3, 4])


@pytest.mark.parametrize(
    ("frame", "listed"),
    [
        (payments()[payments().amount > 0.3], "tx_id, payer, payee, amount (double)"),
        (NAMED_INDEX, "payer, payee, amount (double), count"),
        (payments().assign(step=[1, 2, 3, 4]), "tx_id, payer, payee, amount (double), step"),
        (payments()[["tx_id", "amount"]][payments().amount > 0.3], "tx_id, amount (double)"),
        (payments().set_index(["payer", "payee"])[["tx_id"]], "tx_id"),
    ],
)
def test_an_index_is_no_end_of_an_edge(frame: pd.DataFrame, listed: str, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "frame.parquet")
    readers = (
        lambda: longwall.graph(frame),
        lambda: longwall.graph(pa.Table.from_pandas(frame)),
        lambda: longwall.open_graph(tmp_path / "frame.parquet"),
    )
    for read in readers:
        with pytest.raises(InputError, match="columns") as refused:
            read()
        assert f": {listed};" in f"{refused.value};" or f"are {listed};" in f"{refused.value};"
        assert "__index" not in str(refused.value)


def test_an_index_beside_an_edge_is_ignored_and_may_be_chosen(tmp_path: Path) -> None:
    frame = payments()[payments().amount > 0.3]
    right = {frozenset("bc"), frozenset("ac"), frozenset("cd")}
    assert edges_of(longwall.graph(frame[["payer", "payee"]])) == right
    assert edges_of(longwall.graph(frame, columns=("payer", "payee"))) == right
    indexed = frame.set_index("payer")
    assert edges_of(longwall.graph(indexed, columns=("payer", "payee"))) == right
    indexed.to_parquet(tmp_path / "frame.parquet")
    assert edges_of(longwall.open_graph(tmp_path / "frame.parquet", columns=("payer", "payee"))) == right


def test_two_columns_of_integers_beside_one_of_texts_are_the_edge() -> None:
    frame = pd.DataFrame({"one": [1, 2], "other": [2, 3], "kind": ["x", "y"]})
    assert edges_of(longwall.graph(frame)) == {frozenset((1, 2)), frozenset((2, 3))}


def test_names_of_igraph_that_are_integers_are_ids() -> None:
    source = igraph.Graph.TupleList([(101, 102), (102, 103), (101, 103)])
    source.vs["kind"] = ["a", "b", "a"]
    graph = longwall.graph(source, labels="kind")
    assert edges_of(graph) == {frozenset((101, 102)), frozenset((102, 103)), frozenset((101, 103))}
    assert sorted(graph.all_ids().to_pylist()) == [101, 102, 103]
    source.vs["name"] = [None] * 3
    assert sorted(longwall.graph(source).all_ids().to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([1, "a", 2], r"1 \(int\)"),
        (["a", "b", None], r"None \(None\)"),
        ([1.5, 2.5, 3.5], r"1.5 \(float\)"),
        ([True, False, 3], r"True \(bool\)"),
        ([5, 6, 5], "two vertices of the graph are named 5"),
    ],
)
def test_other_names_of_igraph_are_refused_with_a_way_out(names: list[Any], says: str) -> None:
    source = igraph.Graph([(0, 1), (1, 2)])
    source.vs["name"] = names
    with pytest.raises(InputError, match=says) as refused:
        longwall.graph(source)
    assert "delete" in str(refused.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (networkx.grid_2d_graph(2, 2), r"\(0, 0\) \(tuple\)"),
        (networkx.Graph([(1, "a")]), r"1 \(int\) and 'a' \(str\)"),
        (networkx.Graph([(1.5, 2.0)]), r"1\.5 \(float\)"),
        (networkx.Graph([(True, 2)]), r"True \(bool\)"),
        (networkx.Graph([(3, 2), (2, frozenset())]), "frozenset"),
    ],
)
def test_other_nodes_of_networkx_are_refused_with_a_way_out(source: Any, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        longwall.graph(source)
    for way in ("networkx.convert_node_labels_to_integers(graph)", "networkx.relabel_nodes(graph, str)"):
        assert way in str(refused.value)
    assert longwall.graph(networkx.convert_node_labels_to_integers(source)).num_edges == source.number_of_edges()


def test_nodes_are_looked_at_beyond_the_first_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of texts in a later block were taken for integers."""
    monkeypatch.setattr("longwall.storage.ingest.objects.networks._BLOCK", 2)
    with pytest.raises(InputError, match="all must be integers, or all texts"):
        longwall.graph(networkx.Graph([(1, 2), (2, 3), ("a", "b")]))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "pandas", "arrow"])
def test_two_columns_of_one_name_are_refused_by_name(suffix: str, tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, 2], [2, 3]], columns=["id", "id"])
    arrow, path = pa.table([pa.array([1, 2]), pa.array([2, 3])], ["id", "id"]), tmp_path / f"g.{suffix}"
    frame.to_csv(tmp_path / "g.csv", index=False)
    pq.write_table(arrow, tmp_path / "g.parquet")
    read = longwall.open_graph if suffix in ("csv", "parquet") else longwall.graph
    source: Any = {"pandas": frame, "arrow": arrow}.get(suffix, path)
    with pytest.raises(InputError, match=r"\bid\b.*\bid\b"):
        read(source)


def test_a_lazy_frame_is_computed_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_LARGEST_BATCH", 100)
    table = pl.DataFrame({"source": range(1000), "target": [7 * row % 1000 for row in range(1000)]})
    table.write_parquet(tmp_path / "g.parquet")
    lazy = pl.scan_parquet(tmp_path / "g.parquet").filter(pl.col("source") > 9)
    expected = longwall.graph(lazy.collect())
    assert longwall.graph(lazy).content_hash == expected.content_hash
    assert longwall.count(lazy, "0-1") == expected.num_edges
    labels = table.lazy().select(vertex="source", label=pl.col("source") % 3)
    labelled = longwall.graph(lazy, labels)
    assert labelled.labels is not None
    assert labelled.labels.tolist() == [vertex % 3 for vertex in labelled.original_ids.tolist()]
    empty = longwall.graph(lazy.filter(pl.col("source") < 0))
    assert empty.num_edges == 0


@each_case(
    "lazy",
    [
        pl.LazyFrame({"source": [1], "target": [2]}).filter(pl.col("other") > 1),
        pl.scan_parquet("missing.parquet"),
        pl.LazyFrame({"source": ["a"] * 999, "target": [2] * 999}).with_columns(pl.col("source").cast(pl.Int64)),
    ],
    ids=["column", "file", "cast"],
)
def test_a_lazy_frame_that_cannot_be_computed(lazy: pl.LazyFrame) -> None:
    with pytest.raises(InputError, match=r"the edges: the table cannot be read \(") as refused:
        longwall.graph(lazy)
    assert "\n" not in str(refused.value)


def test_a_table_that_is_not_computed_is_refused_with_a_way_out() -> None:
    class Plan:
        def compute(self) -> None: ...

    table = pl.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    for refuse in (lambda: longwall.graph(Plan()), lambda: longwall.count(Plan(), "0-1")):
        with pytest.raises(InputError, match=r"Plan is no table yet; pass its result, \.compute\(\)"):
            refuse()
    with pytest.raises(InputError, match=r"labels: .*\.compute\(\)"):
        longwall.graph(table, labels=Plan())


WHOLE = pa.decimal128(38, 0)


def decimals(*values: int) -> pa.Array:
    return pa.array([decimal.Decimal(value) for value in values], WHOLE)


@each_case("kind", ["table", "file", "dictionary"])
@each_case("values", [(1, 2, 3), (-5, 2**62, 0), (2**64 - 1, 1, 2)])
def test_decimals_without_a_point_are_integers(kind: str, values: tuple[int, ...], tmp_path: Path) -> None:
    a, b, c = values
    table = pa.table({"source": decimals(a, b, a), "target": decimals(b, c, c)})
    if kind == "dictionary":
        table = pa.table({name: table[name].combine_chunks().dictionary_encode() for name in table.column_names})
    pq.write_table(table, tmp_path / "g.parquet")
    graph = longwall.open_graph(tmp_path / "g.parquet") if kind == "file" else longwall.graph(table)
    assert edges_of(graph) == {frozenset((a, b)), frozenset((b, c)), frozenset((a, c))}


def test_other_decimals_are_refused() -> None:
    with pytest.raises(InputError, match=rf"row 2: column source holds {2**64}"):
        longwall.graph(pa.table({"source": decimals(1, 2**64), "target": decimals(2, 3)}))
    cents = pa.array([decimal.Decimal("1.5"), decimal.Decimal(2)], pa.decimal128(5, 1))
    with pytest.raises(InputError, match=r"source \(decimal128\(5, 1\)\)"):
        longwall.graph(pa.table({"source": cents, "target": cents}))
    empty = pa.array([decimal.Decimal(1), None], WHOLE)
    with pytest.raises(InputError, match="row 2: column source is empty"):
        longwall.graph(pa.table({"source": empty, "target": decimals(1, 2)}))


def test_a_matrix_is_the_sum_of_its_entries_and_has_no_nan() -> None:
    twice = scipy.sparse.csr_array((np.array([1.0, -1.0, 2.0, 2.0]), ([0, 0, 1, 2], [1, 1, 2, 1])), shape=(3, 3))
    kept = scipy.sparse.csr_array((twice.data, twice.indices, twice.indptr), shape=(3, 3))
    apart = scipy.sparse.csr_array(
        (np.array([1.0, -1.0, 2.0, 2.0]), np.array([1, 1, 2, 1]), np.array([0, 2, 3, 4])), shape=(3, 3)
    )
    for matrix in (twice, kept, apart):
        assert edges_of(longwall.graph(matrix)) == {frozenset((1, 2))}
    assert apart.nnz == 4, "the caller's matrix stays as it is"
    with pytest.raises(InputError, match=r"the entry at \(1, 0\) is NaN"):
        longwall.graph(scipy.sparse.csr_array(np.array([[0, 1.0], [np.nan, 0]])))


def test_series_of_pandas_are_arrays() -> None:
    for kind in ("int64", "Int64", "uint8"):
        pair = pd.Series([1, 2], dtype=kind), pd.Series([2, 3], dtype=kind, index=[7, 8])
        assert edges_of(longwall.graph(pair)) == {frozenset((1, 2)), frozenset((2, 3))}
    with pytest.raises(InputError, match="expected integers"):
        longwall.graph((pd.Series([1, None], dtype="Int64"), pd.Series([2, 3], dtype="Int64")))
    with pytest.raises(InputError, match=r"not \(2, 3\); transpose it"):
        longwall.graph(np.array([[1, 2, 3], [2, 3, 4]]))


def test_lists_that_are_not_clear_are_refused() -> None:
    with pytest.raises(InputError, match="expected integers, not bools"):
        longwall.graph([(1, True), (2, 3)])
    for pair in (([1, 2], [3, 4]), ([1, 2, 3], [2, 3, 4])):
        with pytest.raises(InputError, match="give a list of pairs, or two arrays"):
            longwall.graph(pair)
    assert edges_of(longwall.graph((("a", "b"), ("b", "c")))) == {frozenset("ab"), frozenset("bc")}
    with pytest.raises(InputError, match=r"not \(2, 3\)$"):
        longwall.graph([(1, 2, 5), (2, 3, 5)])


def test_labels_of_vertices_of_another_kind_are_refused() -> None:
    with pytest.raises(InputError, match="the labelled vertices are texts, but the vertices of the graph are integers"):
        longwall.graph([(1, 2)], labels={"1": 0, "2": 1})
    with pytest.raises(InputError, match="the labelled vertices are integers, but the vertices of the graph are texts"):
        longwall.graph([("1", "2")], labels={1: 0, 2: 1})


def test_texts_that_utf_8_has_not_are_refused() -> None:
    half = "\ud800"
    labelled = networkx.Graph([(1, 2, {"kind": half}), (2, 3, {"kind": "x"})])
    for refused in (
        lambda: longwall.graph(networkx.Graph([("a", half)])),
        lambda: longwall.graph([("a", half)]),
        lambda: longwall.graph([(1, 2)], labels={1: "x", 2: half}),
        lambda: longwall.graph(labelled, edge_labels="kind"),
    ):
        with pytest.raises(InputError, match=r"'\\ud800' has a half of a surrogate pair"):
            refused()
