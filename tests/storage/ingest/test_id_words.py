"""Ids are any integers of 64 bits: they come back as they are, whatever reads, stores and lists them."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longwall
from longwall.storage.errors import InputError

SHIFTS = {"negative": -7, "smallest": -(2**63), "hashes": 2**63 + 5, "largest": 2**64 - 40, "snowflakes": 2**59}


def shifted(shift: int) -> list[tuple[int, int]]:
    """The karate club, and a vertex that is far from the others."""
    edges = [(u + shift, v + shift) for u, v in nx.karate_club_graph().edges]
    return [*edges, (shift, 0 if shift < 0 else 2**63 - 1)]


def ways(edges: list[tuple[int, int]], folder: Path) -> dict[str, Any]:
    kind = pa.uint64() if max(map(max, edges)) >= 2**63 else pa.int64()
    table = pa.table({"source": pa.array([u for u, _ in edges], kind), "target": pa.array([v for _, v in edges], kind)})
    (folder / "g.txt").write_text("".join(f"{u}\t{v}\n" for u, v in edges))
    (folder / "g.csv").write_text("weight,source,target\n" + "".join(f'0.5,"{u}",{v}\n' for u, v in edges))
    pq.write_table(table, folder / "g.parquet")
    nx.write_graphml(nx.Graph(edges), folder / "g.graphml")
    nx.write_gexf(nx.Graph(edges), folder / "g.gexf")
    array = table.to_pandas().to_numpy()
    return {
        **{path.name: longwall.open_graph(path) for path in folder.iterdir()},
        "table": longwall.graph(table),
        "array": longwall.graph(array),
        "two arrays": longwall.graph((array[:, 0], array[:, 1])),
        "list": longwall.graph(edges),
        "networkx": longwall.graph(nx.Graph(edges)),
    }


@pytest.mark.parametrize("name", SHIFTS)
def test_every_way_in_has_the_same_ids(tmp_path: Path, name: str) -> None:
    edges = shifted(SHIFTS[name])
    (tmp_path / "in").mkdir()
    expected = {frozenset(edge) for edge in edges}
    hashes = set()
    for way, graph in ways(edges, tmp_path / "in").items():
        table = graph.to_arrow()
        ends = zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)
        assert {frozenset(edge) for edge in ends} == expected, way
        assert table.schema.field("source").type == (pa.uint64() if SHIFTS[name] > 2**62 else pa.int64()), way
        hashes.add(graph.content_hash)
    assert len(hashes) == 1
    graph.save(tmp_path / "g.zarr")
    stored = longwall.open_graph(tmp_path / "g.zarr")
    assert stored.content_hash == graph.content_hash
    assert stored.all_ids().equals(graph.all_ids())


@pytest.mark.parametrize("name", SHIFTS)
def test_results_have_the_ids_of_the_input(name: str) -> None:
    shift, edges = SHIFTS[name], shifted(SHIFTS[name])
    graph, plain = longwall.graph(edges), nx.Graph(edges)
    kind = pa.uint64() if shift > 2**62 else pa.int64()
    found = longwall.match(graph, "triangle").to_arrow()
    assert found.schema.types == [kind] * 3
    triangles = {frozenset(one) for one in nx.enumerate_all_cliques(plain) if len(one) == 3}
    assert {frozenset(row.values()) for row in found.to_pylist()} == triangles
    table = longwall.triangles(graph, per="vertex")
    assert table.schema.field("vertex").type == kind
    counted = dict(zip(table["vertex"].to_pylist(), table["triangles"].to_pylist(), strict=True))
    assert counted == nx.triangles(plain)
    cliques = longwall.maximal_cliques(graph).to_arrow()
    assert cliques.schema.field("clique").type.value_type == kind
    expected = sorted(sorted(clique) for clique in nx.find_cliques(plain))
    assert sorted(cliques["clique"].to_pylist()) == expected  # ascending, also those below 0
    assert set(longwall.orbits(graph, 3)["vertex"].to_pylist()) == set(plain)


def test_the_same_bits_are_not_the_same_id(tmp_path: Path) -> None:
    """A label of vertex 2^64 - 1 is none of vertex -1."""
    (tmp_path / "g.txt").write_text("-1 2\n2 3\n")
    (tmp_path / "l.txt").write_text(f"2 7\n3 8\n{2**64 - 1} 9\n")
    with pytest.raises(InputError, match="vertex -1 has an edge but no label"):
        longwall.open_graph(tmp_path / "g.txt", tmp_path / "l.txt")
    with (tmp_path / "l.txt").open("w") as file:
        file.write("2 7\n3 8\n-1 9\n")
    graph = longwall.open_graph(tmp_path / "g.txt", tmp_path / "l.txt")
    assert graph.labels is not None
    assert dict(zip(graph.original_ids.tolist(), graph.labels.tolist(), strict=True)) == {-1: 9, 2: 7, 3: 8}
    (tmp_path / "g.txt").write_text(f"{2**64 - 1} 2\n2 3\n")
    with pytest.raises(InputError, match=f"vertex {2**64 - 1} has an edge but no label"):
        longwall.open_graph(tmp_path / "g.txt", tmp_path / "l.txt")
    labels = pa.table({"vertex": pa.array([2, 3, 2**64 - 1], pa.uint64()), "label": [7, 8, 9]})
    assert longwall.graph(longwall.open_graph(tmp_path / "g.txt").to_arrow(), labels).stats.num_labels == 3


def test_two_files_of_two_signs_are_no_graph(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-1 2\n")
    (tmp_path / "b.txt").write_text(f"2 {2**63}\n")
    with pytest.raises(InputError, match=r"ids below 0 and ids from 2\^63 on do not fit one type of 64 bits"):
        longwall.open_graph([tmp_path / "a.txt", tmp_path / "b.txt"])


def test_embeddings_of_frequent_patterns_and_the_library_keep_huge_ids(tmp_path: Path) -> None:
    graph = longwall.graph(shifted(SHIFTS["hashes"]), {v: v % 2 for edge in shifted(SHIFTS["hashes"]) for v in edge})
    workload = {"kind": "frequent", "min_support": 5, "max_edges": 2, "output": "embeddings"}
    result = longwall.run({"graph": graph, "workload": workload, "run": {"directory": str(tmp_path), "name": "r"}})
    table = result.table("embeddings")
    assert table.schema.field("v0").type == pa.uint64()
    assert set(table["v0"].to_pylist()) <= set(graph.original_ids.tolist())
    assert min(table["v0"].to_pylist()) >= 2**63 - 1
    longwall.export(longwall.extend_vertices(longwall.vertices(graph), adjacent_to=[0]), tmp_path / "w.parquet")
    assert set(pq.read_table(tmp_path / "w.parquet").schema.types) == {pa.uint64()}


def test_columns_that_are_no_ids_are_refused_in_one_line(tmp_path: Path) -> None:
    for kind in (pa.binary(), pa.date32(), pa.float64(), pa.bool_(), pa.null(), pa.list_(pa.int64()), pa.binary(15)):
        column = pa.nulls(2, kind)
        pq.write_table(pa.table({"source": column, "target": column}), tmp_path / "g.parquet")
        with pytest.raises(InputError, match="two columns of integers or texts are needed") as caught:
            longwall.open_graph(tmp_path / "g.parquet")
        assert "\n" not in str(caught.value)
    texts = pa.array(["a", "b"])
    for column in (texts.cast(pa.string_view()), texts.dictionary_encode(), texts.cast(pa.large_string())):
        assert longwall.graph(pa.table({"source": column, "target": pa.array(["b", "c"], column.type)})).num_edges == 2
    numbers = pa.array(np.array([-5, 6])).dictionary_encode()
    assert longwall.graph(pa.table({"source": numbers, "target": [6, 7]})).original_ids.tolist() == [6, -5, 7]
