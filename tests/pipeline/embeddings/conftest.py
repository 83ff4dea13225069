"""Small graphs that the calls are tested on."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from call_tables import everything

from longwall.storage.ingest.build import build_graph


@pytest.fixture(scope="module")
def network() -> nx.Graph:
    graph = nx.gnp_random_graph(25, 0.25, seed=5)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    return nx.relabel_nodes(graph, {v: 10 * v + 3 for v in graph})


@pytest.fixture(scope="module")
def graph(network):
    ends = np.array(network.edges, dtype=np.int64)
    ids = np.array(sorted(network), dtype=np.int64)
    return build_graph(ends[:, 0], ends[:, 1], vertex_labels=(ids, ids % 3))


@pytest.fixture(scope="module")
def small():
    edges = np.array(nx.barbell_graph(5, 2).edges, dtype=np.int64)
    ids = np.unique(edges)
    return build_graph(edges[:, 0], edges[:, 1], vertex_labels=(ids, ids % 2))


@pytest.fixture(scope="module")
def expected(small):
    results = everything(small)
    return lambda: results  # hypothesis shows its arguments
