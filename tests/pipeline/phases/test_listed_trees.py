"""Listings that are written from prefix trees, against networkx: any ids, columns and orders of the work."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

import longwall
from longwall.stages import export
from longwall.storage.tables import tree_parquet
from longwall.storage.tables.tree_parquet import TreeSink

IDS = {
    "negative": np.random.default_rng(1).integers(-(10**12), 0, 14),
    "far apart": np.array([-(2**63), 2**63 - 1, *range(-6, 6)]),
    "unsigned": np.random.default_rng(2).integers(2**63, 2**64 - 1, 14, np.uint64),
}
PATTERNS = {"0-1,1-2": 2, "0-1,0-2,0-3,1-2,1-3": 4, "0-1,1-2,2-3,3-4": 2}  # and their automorphisms


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize(
    ("order", "threads", "backwards"), [("depth", 1, False), ("depth", 2, True), ("levels", 1, True)]
)
def test_row_groups_have_the_rows_and_bounds_of_networkx(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
    ids: str,
    order: str,
    threads: int,
    *,
    backwards: bool,
) -> None:
    monkeypatch.setattr(export, "ROWS_PER_GROUP", 70)
    monkeypatch.setattr(tree_parquet, "_PAGE_ROWS", 24)
    groups, write = [], TreeSink.write
    monkeypatch.setattr(TreeSink, "write", lambda sink, parts: groups.append(len(parts)) or write(sink, parts))
    graph = nx.relabel_nodes(nx.gnp_random_graph(14, 0.4, seed=3), dict(enumerate(IDS[ids].tolist())))
    wanted = nx.Graph([tuple(map(int, edge.split("-"))) for edge in pattern.split(",")])
    names = [f"v{vertex}" for vertex in range(len(wanted))]
    longwall.run(
        {
            "graph": longwall.graph(np.array(graph.edges, IDS[ids].dtype)),
            "workload": {"kind": "match", "pattern": pattern, "output": "embeddings"},
            "export": {"columns": names[::-1] if backwards else names},
            "memory": {"host": "1GiB", "spill": tmp_path / "spill"},
            "engine": {"kind": "cpu", "threads": threads},
            "scheduler": {"order": order},
            "run": {"directory": tmp_path, "name": "run"},
        }
    )
    rows = []
    for path in (tmp_path / "run" / "results").glob("embeddings*.parquet"):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        for number in range(file.num_row_groups):
            table = file.read_row_group(number)
            for column, name in enumerate(table.column_names):
                bounds, values = file.metadata.row_group(number).column(column).statistics, table[name].to_pylist()
                assert (bounds.min, bounds.max, bounds.null_count) == (min(values), max(values), 0)
            rows += list(zip(*(table[name].to_pylist() for name in names), strict=True))
    automorphisms = [
        turned
        for turned in permutations(range(len(wanted)))
        if all(wanted.has_edge(turned[u], turned[v]) for u, v in wanted.edges)
    ]
    assert len(automorphisms) == PATTERNS[pattern]
    mappings = Counter(tuple(row[place] for place in turned) for row in rows for turned in automorphisms)
    assert groups, "Arrow wrote the files"
    found = GraphMatcher(graph, wanted).subgraph_monomorphisms_iter()
    assert mappings == Counter(tuple(sorted(mapping, key=mapping.__getitem__)) for mapping in found)
