"""Graphs of what is in memory: arrays, matrices, tables, and graphs of other libraries."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cases import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.build import build_graph
from longwall.storage.ingest.objects import arrays, graph_of

Edges = list[tuple[int, int]]


def scipy_matrix(edges: Edges) -> Any:
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    pairs = np.array(edges)
    n = int(pairs.max()) + 1
    return sparse.coo_array((np.ones(len(edges)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()


def polars_table(edges: Edges) -> Any:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.DataFrame({"src": [u for u, _ in edges], "dst": [v for _, v in edges], "weight": [0.5] * len(edges)})


class OnDevice:
    """An array that has to be fetched, as CuPy's."""

    def __init__(self, array: Any):
        self._array = array
        self.dtype, self.shape, self.ndim, self.size = array.dtype, array.shape, array.ndim, array.size
        self.__cuda_array_interface__: dict[str, Any] = {}  # by which CuPy's are known

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> OnDevice:
        return OnDevice(self._array[key])

    def get(self) -> Any:
        return self._array


def chunks(edges: Edges) -> pa.Table:
    """A table whose columns are in several chunks, of a type that is not int64."""
    halves = [edges[: len(edges) // 2], edges[len(edges) // 2 :]]
    u, v = (
        pa.chunked_array([[edge[end] for edge in half] for half in halves], kind)
        for end, kind in ((0, pa.uint32()), (1, pa.int64()))
    )
    return pa.table({"u": u, "v": v})


FORMS: dict[str, Callable[[Edges], Any]] = {
    "list of pairs": list,
    "array": np.array,
    "array of bytes": lambda edges: np.array(edges, np.uint8),
    "array in Fortran's order": lambda edges: np.asfortranarray(np.array(edges)),
    "array on a device": lambda edges: OnDevice(np.array(edges)),
    "two arrays": lambda edges: (np.array(edges)[:, 0], np.array(edges)[:, 1]),
    "sparse matrix": scipy_matrix,
    "pandas": lambda edges: pd.DataFrame(edges, columns=["source", "target"]),
    "polars": polars_table,
    "Arrow": chunks,
    "networkx": nx.Graph,
    "directed networkx": nx.DiGraph,
    "multigraph": nx.MultiGraph,
    "igraph": lambda edges: igraph.Graph(edges=edges),
}
SMALL = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3), (1, 0)]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=5, deadline=None)
@given(edges=st.lists(st.tuples(st.integers(0, 20), st.integers(21, 40)), min_size=1, max_size=60))
def test_all_forms_make_the_graph_that_files_make(form: str, edges: Edges) -> None:
    pairs = np.array(edges)
    expected = build_graph(pairs[:, 0], pairs[:, 1])
    assert longwall.graph(FORMS[form](edges)).content_hash == expected.content_hash


@each_case("form", FORMS)
def test_input_of_many_blocks(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("arrays", "networks"):
        monkeypatch.setattr(f"longwall.storage.ingest.objects.{module}._BLOCK", 7)
    monkeypatch.setattr("longwall.storage.ingest.objects.tables._LARGEST_BATCH", 7)
    edges = list(nx.gnp_random_graph(20, 0.4, seed=2).edges)
    pairs = np.array(edges)
    assert longwall.graph(FORMS[form](edges)).content_hash == build_graph(pairs[:, 0], pairs[:, 1]).content_hash


LABELS = {0: 3, 1: 1, 2: 3, 3: 0}


def labelled_networkx() -> nx.Graph:
    graph = nx.Graph(SMALL[:4])
    nx.set_node_attributes(graph, LABELS, "kind")
    nx.set_edge_attributes(graph, {edge: 10 + at for at, edge in enumerate(SMALL[:4])}, "bond")
    return graph


def labelled_igraph() -> igraph.Graph:
    graph = igraph.Graph(edges=SMALL[:4])
    graph.vs["kind"], graph.es["bond"] = [LABELS[v] for v in range(4)], [10, 11, 12, 13]
    return graph


TABLE = pa.table({"u": [u for u, _ in SMALL[:4]], "v": [v for _, v in SMALL[:4]], "bond": [10, 11, 12, 13]})
VERTICES, VALUES = np.array(list(LABELS)), np.array(list(LABELS.values()), np.int8)
LABELLED: dict[str, tuple[Any, Any, Any]] = {
    "networkx": (labelled_networkx(), "kind", "bond"),
    "networkx and a mapping": (labelled_networkx(), LABELS, "bond"),
    "igraph": (labelled_igraph(), "kind", "bond"),
    "table": (TABLE, pa.table({"vertex": VERTICES, "label": VALUES}), "bond"),
    "pandas": (TABLE.to_pandas(), pd.DataFrame({"id": VERTICES, "label": VALUES}), "bond"),
    "arrays": (np.array(SMALL[:4]), (VERTICES, VALUES), np.array([10, 11, 12, 13])),
    "lists": (SMALL[:4], LABELS | {77: 5}, [10, 11, 12, 13]),
}


@each_case("form", LABELLED)
def test_labels_come_along(form: str) -> None:
    source, labels, edge_labels = LABELLED[form]
    back = longwall.graph(source, labels, edge_labels=edge_labels).to_networkx()
    assert dict(back.nodes(data="label")) == LABELS
    assert {frozenset(edge): label for *edge, label in back.edges(data="label")} == {
        frozenset(edge): 10 + at for at, edge in enumerate(SMALL[:4])
    }


def test_zeros_of_a_matrix_are_no_edges() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    matrix = sparse.csr_array(([1.0, 0.0, 2.0], ([0, 0, 1], [1, 2, 3])), shape=(4, 4))
    assert {frozenset(edge) for edge in longwall.graph(matrix).to_networkx().edges} == {
        frozenset((0, 1)),
        frozenset((1, 3)),
    }


def test_columns_may_be_named() -> None:
    table = pa.table({"a": [0, 1], "b": [1, 2], "c": [5, 5]})
    assert {frozenset(edge) for edge in longwall.graph(table, columns=("a", "c")).to_networkx().edges} == {
        frozenset((0, 5)),
        frozenset((1, 5)),
    }


def same_names() -> igraph.Graph:
    graph = igraph.Graph.Full(3)
    graph.vs["name"] = ["a", "a", "b"]
    return graph


def strange(**attributes: Any) -> Any:
    return SimpleNamespace(**attributes)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a number": ({"source": 7}, "source: expected a graph of networkx or igraph.*, not int; longwall.open_graph"),
    "a path": ({"source": "graph.txt"}, "not str; longwall.open_graph reads files"),
    "triples": ({"source": [(0, 1, 2)]}, r"an array of shape \(edges, 2\) is needed, not \(1, 3\)"),
    "rows of two lengths": ({"source": [(0, 1), (2,)]}, "its rows have different lengths"),
    "floats": ({"source": np.ones((2, 2))}, "expected integers, not float64 numbers"),
    "bools": ({"source": np.ones((2, 2), bool)}, "expected integers, not bools"),
    "texts": ({"source": np.array([("a", "b")])}, "expected integers, not texts; number the vertices first"),
    "objects": ({"source": np.array([[None, 1]])}, "not objects such as None"),
    "large numbers": ({"source": [(0, 2**64)]}, "the edges: 18446744073709551616; use integers of 64 bits"),
    "negative and huge ids": (
        {"source": (np.array([1, 2**63], np.uint64), np.array([2, -5]))},
        r"the edges, entry 1: -5, and other ids from 2\^63 on; use integers of 64 bits",
    ),
    "negative and huge ids in a list": ({"source": [(1, 2**63), (2, -5)]}, "-5 and 9223372036854775808 do not fit"),
    "arrays of two lengths": (
        {"source": (np.arange(3), np.arange(2))},
        r"two arrays of one length .*\(3,\) and \(2,\)",
    ),
    "nodes of two types": (
        {"source": nx.Graph([("a", 1)])},
        "the nodes of the graph: all must be integers, or all texts, not 1",
    ),
    "huge nodes": ({"source": nx.Graph([(0, 2**70)])}, "the nodes of the graph: 1180591620717411303424; use"),
    "a wide matrix": ({"source": strange(tocsr=None, shape=(3, 4))}, "a square one is needed"),
    "a column of floats as ids": ({"source": pa.table({"a": [0.5], "b": [1]})}, "two columns of integers or texts"),
    "a null": ({"source": pa.table({"u": [1, None], "v": [2, 3]})}, "the edges, row 2: column u is empty"),
    "a column that is not there": ({"source": TABLE, "columns": ("u", "w")}, "there is no column w"),
    "columns of an array": ({"source": SMALL, "columns": ("u", "v")}, "only a table has columns"),
    "columns of a path": ({"source": "g.csv", "columns": ("u", "v")}, "not str; longwall.open_graph reads files"),
    "a name for a path": ({"source": Path("g.gml"), "vertex_name": "n"}, "Path; longwall.open_graph reads files"),
    "labels of a list": ({"source": SMALL, "labels": [1, 2]}, "labels: expected a mapping from vertices"),
    "a name for an array": ({"source": SMALL, "labels": "kind"}, "labels: expected a mapping from vertices"),
    "texts and numbers": ({"source": SMALL, "labels": {0: "red", 1: 1, 2: 1, 3: 1}}, "some are texts, and 1 is int"),
    "a vertex without label": ({"source": SMALL, "labels": {0: 1}}, "has an edge but no label"),
    "large labels": ({"source": SMALL, "labels": (np.arange(4), np.arange(4) + 2**31)}, "2147483648"),
    "labels of two lengths": ({"source": SMALL, "labels": (np.arange(4), np.arange(3))}, "two arrays of one length"),
    "no such attribute": (
        {"source": labelled_igraph(), "labels": "colour"},
        "no attribute 'colour'; there are: 'kind'",
    ),
    "no attribute at all": (
        {"source": nx.Graph(SMALL), "labels": "kind"},
        "no node of the graph has the attribute 'kind'; there are: none",
    ),
    "array for igraph": (
        {"source": labelled_igraph(), "edge_labels": [1]},
        "edge_labels: expected the name of the attr",
    ),
    "too few edge labels": ({"source": SMALL, "edge_labels": [1]}, "edge_labels: 6 are needed, one for each edge"),
    "negative edge label": ({"source": [(0, 1)], "edge_labels": [-1]}, "the edges: the labels, entry 0: -1"),
    "labels of a matrix": ({"source": strange(tocsr=None, shape=(3, 3)), "edge_labels": [1]}, "a matrix has none"),
    "no such column": ({"source": TABLE, "edge_labels": "order"}, "no column order"),
    "a column of floats": (
        {"source": TABLE.append_column("w", pa.array([0.5] * 4)), "edge_labels": "w"},
        "column w holds double; choose a column of integers or texts",
    ),
    "two vertices of one name": ({"source": same_names()}, "two vertices of the graph are named 'a'; give"),
    "a masked array": (
        {"source": np.ma.array([(0, 1), (1, 2)], mask=[(0, 0), (0, 1)])},
        "some entries are masked; fill them",
    ),
    "one column": ({"source": pd.Series([1, 2])}, r"the edges: this is one column, and no table; .*reset_index\(\)"),
    "labels in one column": ({"source": SMALL, "labels": pd.Series([0, 1])}, "the labels: this is one column, and no"),
    "triples of texts": ({"source": [("a", "b", "c")]}, "entry 0 has 3 values: give pairs of vertices"),
    "a name among pairs": ({"source": [("a", "b"), "cd"]}, "entry 1 has 'cd': give pairs of vertices"),
    "one text as columns": ({"source": TABLE, "columns": "ab"}, "columns: give two different names, .*, not 'ab'"),
    "one column of a list": ({"source": TABLE, "columns": ["u"]}, "columns: give two different names, .*, not u"),
    "a column of two kinds": (
        {"source": pd.DataFrame({"source": [1, "a"], "target": [2, 3]})},
        "the edges: the table cannot be read .*Could not convert 'a'",
    ),
    "a large edge label": (
        {"source": TABLE.append_column("w", pa.array([0, 0, 2**40, 0])), "edge_labels": "w"},
        "row 3: column w holds 1099511627776; use labels below",
    ),
}


@each_case("case", WRONG)
def test_what_cannot_be_a_graph_is_refused(case: str) -> None:
    arguments, says = WRONG[case]
    with pytest.raises(longwall.InputError, match=says) as refused:
        longwall.graph(**arguments)
    assert "\n" not in str(refused.value)


def test_the_example_of_the_help_text_works() -> None:
    assert doctest.testmod(graph_of) == doctest.TestResults(failed=0, attempted=3)


def test_blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """No copy is as large as the input."""
    monkeypatch.setattr(arrays, "_BLOCK", 10)
    sizes = [len(block.src) for block in arrays.edge_blocks("the edges", np.arange(95), np.arange(95) + 1)]
    assert sizes == [10] * 9 + [5]


@settings(max_examples=30, deadline=None)
@given(edges=st.sets(st.tuples(st.integers(0, 9), st.integers(10, 30)), min_size=1, max_size=60))
def test_a_graph_comes_back(edges: set[tuple[int, int]]) -> None:
    graph = longwall.graph(list(edges))
    table = graph.to_arrow()
    rows = zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)
    assert sorted(tuple(sorted(row)) for row in rows) == sorted(edges)
    assert {frozenset(edge) for edge in graph.to_networkx().edges} == {frozenset(edge) for edge in edges}


def test_a_graph_is_saved_and_opened(tmp_path: Any) -> None:
    graph = longwall.graph(SMALL, LABELS)
    graph.save(tmp_path / "graph.zarr")
    assert longwall.open_graph(tmp_path / "graph.zarr").content_hash == graph.content_hash
    with pytest.raises(longwall.InputError, match="exists already"):
        graph.save(tmp_path / "graph.zarr")


def test_labels_that_are_texts_are_saved(tmp_path: Any) -> None:
    edges = nx.Graph([("a", "b", {"kind": "pays"}), ("b", "c", {"kind": "owes"})])
    graph = longwall.graph(edges, {"a": "red", "b": "blue", "c": "red"}, edge_labels="kind")
    graph.save(tmp_path / "graph.zarr")
    opened = longwall.open_graph(tmp_path / "graph.zarr")
    assert opened.label_names == graph.label_names
    assert opened.edge_label_names == graph.edge_label_names
    assert opened.content_hash == graph.content_hash
    assert longwall.count(opened, "(x:red)-[:pays]-(y:blue)") == 1


def test_a_table_that_has_no_memory_is_no_wrong_input() -> None:
    def fail(error: Exception) -> Any:
        def stream(_: Any, requested_schema: Any = None) -> Any:
            raise error

        return type("Table", (), {"__arrow_c_stream__": stream})()

    with pytest.raises(MemoryError):
        longwall.graph(fail(pa.ArrowMemoryError("malloc")))
    with pytest.raises(longwall.InputError, match=r"the table cannot be read \(ArrowInvalid\)"):
        longwall.graph(fail(pa.ArrowInvalid("")))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_of_numpy_is_an_array_of_pairs() -> None:
    assert longwall.graph(np.matrix(SMALL)).num_edges == longwall.graph(SMALL).num_edges


def test_a_large_graph_is_not_copied_to_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.storage.ingest.objects.graph_to._MOST_EDGES", 3)
    with pytest.raises(longwall.InputError, match=r"4 edges is too large for networkx.*to_arrow"):
        longwall.graph(SMALL).to_networkx()


def test_lists_of_pairs_may_have_names() -> None:
    graph = longwall.graph([("ann", "bob"), ("bob", "cid"), ("cid", "ann"), ("cid", "dan")])
    assert (graph.num_vertices, graph.num_edges, graph.has_names) == (4, 4, True)
    assert longwall.triangles(graph, per="vertex")["vertex"].to_pylist() == ["ann", "bob", "cid", "dan"]
    labelled = longwall.graph([["a", "b"], ["b", "c"]], edge_labels=np.array([3, 4]))
    assert sorted(labelled.to_arrow()["label"].to_pylist()) == [3, 4]


@pytest.mark.parametrize("pairs", [[("a", "b"), ("c",)], [("a", "b"), ("c", 4)], [("a", 1)], [("a", "b"), 5]])
def test_names_that_are_no_pairs_are_refused(pairs: list[Any]) -> None:
    with pytest.raises(InputError):
        longwall.graph(pairs)
