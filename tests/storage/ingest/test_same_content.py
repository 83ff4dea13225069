"""The same content given in two ways is the same graph, with the same notes of dropped data."""

import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
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
from hypothesis import given
from hypothesis import strategies as st

import longwall

pytestmark = pytest.mark.slow

Pairs = list[tuple[Any, Any]]

IDS = st.one_of(st.integers(0, 6), st.sampled_from([-(2**63), -1, 2**32, 2**62]))
NAMES = st.sampled_from(["a", "b", "c d", '"', "é", "1", "x,y", "007"])


def pairs_of(vertices: st.SearchStrategy[Any]) -> st.SearchStrategy[Pairs]:
    """Draw lists of pairs, loops and repetitions among them, with an edge at least."""
    pair = st.tuples(vertices, vertices)
    return st.lists(pair, min_size=1, max_size=12).filter(lambda pairs: any(u != v for u, v in pairs))


def igraph_of(pairs: Pairs) -> igraph.Graph:
    names = list(dict.fromkeys(end for pair in pairs for end in pair))
    place = {name: number for number, name in enumerate(names)}
    made = igraph.Graph(len(names), [(place[u], place[v]) for u, v in pairs])
    made.vs["name"] = names
    return made


def frame_of(pairs: Pairs) -> pd.DataFrame:
    frame = pd.DataFrame(pairs, columns=["source", "target"])
    return frame.set_axis(range(5, 5 + len(pairs))[::-1], axis=0)


def columns_of(pairs: Pairs) -> dict[str, list[Any]]:
    return {"source": [u for u, _ in pairs], "target": [v for _, v in pairs]}


def dictionary_of(pairs: Pairs) -> pa.Table:
    table = pa.table(columns_of(pairs))
    chunks = [table.slice(0, 1), table.slice(1)]
    parts = [
        pa.table([part[name].combine_chunks().dictionary_encode() for name in part.column_names], part.column_names)
        for part in chunks
    ]
    return pa.concat_tables(parts, promote_options="permissive").unify_dictionaries()


OBJECTS: dict[str, Callable[[Pairs], Any]] = {
    "networkx": networkx.MultiGraph,
    "igraph": igraph_of,
    "pandas": frame_of,
    "polars": lambda pairs: pl.DataFrame(columns_of(pairs)),
    "arrow": lambda pairs: pa.table(columns_of(pairs)),
    "dictionaries": dictionary_of,
    "lists": lambda pairs: [list(pair) for pair in pairs],
}


def read(source: Any, **options: Any) -> longwall.Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", longwall.DataNote)
        return longwall.open_graph(source, **options) if isinstance(source, Path) else longwall.graph(source)


def facts(graph: longwall.Graph) -> tuple[Any, ...]:
    """Return the facts that do not depend on the order of the vertices."""
    table = graph.to_arrow()
    ends = zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)
    notes = {note.kind: note.count for note in graph.notes if note.kind in ("loops", "repeated", "directions")}
    return sorted(map(sorted, ends)), sorted(graph.all_ids().to_pylist()), notes


def right(pairs: Pairs) -> tuple[Any, ...]:
    edges = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    loops = sum(u == v for u, v in pairs)
    numbers = {"loops": loops, "repeated": len(pairs) - loops - len(edges)}
    return sorted(map(sorted, edges)), sorted(set().union(*edges)), {kind: n for kind, n in numbers.items() if n}


@pytest.mark.parametrize("name", OBJECTS)
@given(st.one_of(pairs_of(IDS), pairs_of(NAMES)))
def test_objects_are_the_graph_of_their_pairs(name: str, pairs: Pairs) -> None:
    assert facts(read(OBJECTS[name](pairs))) == right(pairs)
    if isinstance(pairs[0][0], int):
        assert read(OBJECTS[name](pairs)).content_hash == read(pairs).content_hash


@given(st.one_of(pairs_of(IDS), pairs_of(NAMES)))
def test_files_and_stores_are_the_graph_of_their_pairs(pairs: Pairs) -> None:
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("g.csv", "g.parquet", "pandas.parquet", "store")]
        frame = frame_of(pairs)
        frame.to_csv(paths[0], index=False)
        pq.write_table(pa.table(columns_of(pairs)), paths[1])
        frame.to_parquet(paths[2])
        made = read(frame)
        made.save(paths[3])
        text = read(paths[0], ids="names" if isinstance(pairs[0][0], str) else "auto")  # a text has no types
        found = [text, *map(read, paths[1:])]
    assert facts(made) == right(pairs)
    for graph in found:
        assert facts(graph) == facts(made)
        assert graph.content_hash == made.content_hash


@given(pairs_of(st.integers(0, 6)))
def test_matrices_and_arrays_are_the_graph_of_their_pairs(pairs: Pairs) -> None:
    ends = np.array(pairs)
    for array in (ends, ends.astype(np.uint8), np.asfortranarray(ends), (ends[:, 0], ends[:, 1]), np.ma.array(ends)):
        assert facts(read(array)) == right(pairs)
    both = np.concatenate((ends, ends[:, ::-1]))
    wanted = right(pairs)
    loops = len({u for u, v in pairs if u == v})
    matrix = scipy.sparse.coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(7, 7))
    for form in ("coo", "csr", "csc", "lil", "dok", "bsr", "dia"):
        edges, ids, numbers = facts(read(matrix.asformat(form)))
        assert (edges, ids) == wanted[:2]
        assert numbers == ({"loops": loops} if loops else {})


@given(pairs_of(NAMES), st.data())
def test_labels_by_object_table_and_file_are_the_same(pairs: Pairs, data: st.DataObject) -> None:
    names = list(dict.fromkeys(end for pair in pairs for end in pair))
    labels = {name: data.draw(st.sampled_from(["red", 'a "b"', "3"])) for name in names}
    nodes, vertices = networkx.MultiGraph(pairs), igraph_of(pairs)
    networkx.set_node_attributes(nodes, labels, "label")
    vertices.vs["label"] = [labels[name] for name in vertices.vs["name"]]
    table = pa.table({"vertex": list(labels), "label": list(labels.values())})
    given_ways = (
        (nodes, "label"),
        (vertices, "label"),
        (frame_of(pairs), labels),
        (pl.DataFrame(columns_of(pairs)), table),
    )
    found = []
    for source, way in given_ways:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", longwall.DataNote)
            graph = longwall.graph(source, way)
        assert graph.labels is not None
        assert graph.label_names is not None
        of_vertices = [graph.label_names[label] for label in graph.labels.tolist()]
        found.append(dict(zip(graph.all_ids().to_pylist(), of_vertices, strict=True)))
    assert found == [{name: labels[name] for name in right(pairs)[1]}] * 4


@given(pairs_of(st.integers(0, 4)))
def test_a_pattern_is_the_same_by_all_its_ways(pairs: Pairs) -> None:
    edges = sorted({(min(u, v), max(u, v)) for u, v in pairs if u != v})
    ends = sorted({end for edge in edges for end in edge})
    plain = [(ends.index(u), ends.index(v)) for u, v in edges]
    if not networkx.is_connected(networkx.Graph(plain)):
        return
    text = ", ".join(f"(v{u})-(v{v})" for u, v in plain)
    ways = (networkx.Graph(plain), igraph.Graph(plain), plain, text, ",".join(f"{u}-{v}" for u, v in plain))
    for way in ways:
        assert networkx.is_isomorphic(networkx.Graph(longwall.pattern(way).edges), networkx.Graph(plain))
