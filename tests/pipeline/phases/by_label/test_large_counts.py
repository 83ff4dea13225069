"""Counts of labelled patterns by search that do not fit 64 bits, and searches modulo primes."""

import random
from math import comb

import networkx as nx
import numpy as np
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

import longwall
from longwall.kernels import exact_numbers
from longwall.pipeline.patterns.pattern_of import pattern
from longwall.pipeline.planning.rewrites import label_partition


def _count(graph, text, engine_kind, folder, **workload):
    sections = {"graph": graph, "engine": {"kind": engine_kind}, "run": {"directory": str(folder)}}
    sections |= {"memory": {"spill": str(folder / "spill")}, "workload": {"kind": "match", "pattern": text} | workload}
    return longwall.run(sections).count


def _star(leaves):
    """A centre with label 0; its leaves have the labels 0, 1, 2, ..., repeated cyclically."""
    labels = np.array([0, *(np.arange(leaves) % 3)])
    edges = np.stack([np.zeros(leaves, int), np.arange(1, leaves + 1)], 1)
    return longwall.graph(edges, labels=(np.arange(leaves + 1), labels))


# Products of five numbers of leaves are below and beyond 2**53, 2**62, 2**64, and far beyond; of seven beyond 2**112.
@pytest.mark.parametrize("leaves", [1_500, 5_400, 5_405, 7_130, 7_135, 66_000])
def test_free_leaves(leaves, engine_kind, tmp_path):
    star = ",".join(f"(a:0)-(b{leaf})" for leaf in range(5))
    assert _count(_star(leaves), star, engine_kind, tmp_path) == comb(leaves, 5)


@pytest.mark.parametrize("leaves", [20_000, 66_000])
def test_leaves_of_two_labels(leaves, engine_kind, tmp_path):
    star = ",".join(f"(a:0)-(b{leaf}:{1 + leaf % 2})" for leaf in range(7))
    of_one, of_two = (leaves + 1) // 3, leaves // 3
    assert _count(_star(leaves), star, engine_kind, tmp_path) == comb(of_one, 4) * comb(of_two, 3)


@pytest.mark.parametrize("induced", [False, True])
@pytest.mark.parametrize(
    "text", ["(a:0)-(b),(a)-(c),(a)-(d:1)", "(a:0)-(b)-(c:1)-(d)", "(a:1)-(b),(a)-(c),(a)-(d),(d)-(e:2)"]
)
def test_searches_modulo_primes(text, induced, engine_kind, tmp_path, monkeypatch):
    """Numbers of few digits, as if they had many: a residue that is wrong makes a number of 126 bits."""
    network, draw = nx.gnp_random_graph(16, 0.3, seed=3), random.Random(1)
    nx.set_node_attributes(network, {node: draw.randrange(3) for node in network}, "label")
    query = pattern(text)
    small = nx.Graph(query.edges)
    nx.set_node_attributes(small, {v: query.label(v) for v in small}, "label")
    matcher = GraphMatcher(network, small, node_match=lambda data, wanted: wanted["label"] in (-1, data["label"]))
    found = matcher.subgraph_isomorphisms_iter() if induced else matcher.subgraph_monomorphisms_iter()
    want = sum(1 for _ in found)
    asked = []
    monkeypatch.setattr(label_partition, "plan_label_sums", lambda *_: None)  # else tables are less work
    monkeypatch.setattr(exact_numbers, "moduli_for", lambda *_: asked.append(1) or list(exact_numbers.PRIMES[:2]))
    graph = longwall.graph(network, labels="label")
    assert _count(graph, text, engine_kind, tmp_path, induced=induced, count="mappings") == want > 0
    assert asked
