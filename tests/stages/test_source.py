"""Which vertices suit a level of a search."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from longwall.kernels.interface.search_program import Level
from longwall.pipeline.execution.device_graph import load_graph
from longwall.stages.source import admissible
from longwall.storage.generators.kinds import generate


@pytest.mark.parametrize("times", [0, 1, 3], ids=("fewer than the graph has", "each once", "more"))
@pytest.mark.parametrize("label", [-1, 1])
def test_vertices_have_the_degree_and_the_label_of_a_level(lab: Any, engine_kind: str, times: int, label: int):
    made = generate("rmat", seed=3, scale=6, edge_factor=4)
    random = np.random.default_rng(5)
    graph = replace(made, labels=random.integers(0, 3, made.num_vertices, np.int32))
    env = lab.context(graph, engine=engine_kind)
    there, _ = load_graph(env)
    vertices = random.permutation(np.tile(np.arange(graph.num_vertices, dtype=np.uint32), times or 1))
    vertices = vertices if times else vertices[:5]
    with env.engine.faults():
        found = admissible(there, Level(-1, label=label, degree=4), env.engine.xp.asarray(vertices))
    degrees, labels = np.diff(graph.indptr).tolist(), graph.labels.tolist()
    want = [degrees[v] >= 4 and (label < 0 or labels[v] == label) for v in vertices.tolist()]
    assert (found.get() if hasattr(found, "get") else found).tolist() == want
    assert len(set(want)) == 2 or not times
