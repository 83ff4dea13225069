"""Patterns in which only some vertices have labels, against networkx."""

import random

import networkx as nx
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

import longwall
from longwall.pipeline.patterns.pattern_of import pattern

PATTERNS = [
    "(a)-(b:1)",
    "(a:1)-(b)-(c:2)",
    "(a:1)-(b)-(c), (a)-(c)",
    "(a)-(b)-(c)-(d:0), (a)-(d)",
    "(a:0)-(b), (a)-(c), (a)-(d:1)",
    "(a)-(b:2), (a)-(c:2), (a)-(d)",
    "(a)-(b)-(c)-(d)-(e:1)",
    "(a:0)-(b)-(c)-(d:0), (a)-(c), (b)-(d)",
]


def graph() -> nx.Graph:
    made = nx.gnp_random_graph(18, 0.3, seed=3)
    choose = random.Random(1)
    nx.set_node_attributes(made, {node: choose.randrange(3) for node in made}, "label")
    return made


DATA = graph()


def mappings(text: str, induced: bool) -> set[tuple[int, ...]]:
    query = pattern(text)
    small = nx.Graph(query.edges)
    nx.set_node_attributes(small, {v: query.label(v) for v in small}, "label")
    matcher = GraphMatcher(DATA, small, node_match=lambda data, wanted: wanted["label"] in (-1, data["label"]))
    found = matcher.subgraph_isomorphisms_iter() if induced else matcher.subgraph_monomorphisms_iter()
    back = [{small_node: node for node, small_node in one.items()} for one in found]
    return {tuple(one[v] for v in range(query.num_vertices)) for one in back}


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("induced", [False, True])
@pytest.mark.parametrize("join", ["vertices", "edges"])
@pytest.mark.parametrize("text", PATTERNS)
def test_vertices_without_labels_match_any(text, join, induced, engine_kind, tmp_path):
    workload = {"kind": "match", "pattern": text, "induced": induced, "join": join}
    sections = {"graph": longwall.graph(DATA, labels="label"), "engine": {"kind": engine_kind}}
    sections |= {"run": {"directory": str(tmp_path)}, "memory": {"spill": str(tmp_path / "spill")}}
    wanted = mappings(text, induced)
    assert longwall.run(sections | {"workload": workload | {"count": "mappings"}}).count == len(wanted)
    listed = longwall.run(sections | {"workload": workload | {"output": "embeddings"}}).table().to_pydict()
    rows = list(zip(*listed.values(), strict=True))
    assert len({*rows} & wanted) == len(rows)
    assert len({frozenset(frozenset((row[u], row[v])) for u, v in pattern(text).edges) for row in wanted}) <= len(rows)
