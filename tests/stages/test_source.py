"""The source stage makes the edges of a range of arcs whose ends may be at their levels, as a look at each arc does."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from longwall.kernels.interface.search_program import Level, admissible
from longwall.pipeline.execution.device_graph import load_graph
from longwall.stages.source import edge_source
from longwall.storage.generators.kinds import generate

LEVELS = [
    (Level(-1), Level(-1)),
    (Level(-1, label=1), Level(-1, below=1)),
    (Level(-1, degree=4), Level(-1, above=1, label=0)),
    (Level(-1, label=2, degree=3), Level(-1, below=1, degree=5)),
    (Level(-1, label=7), Level(-1)),
]


@pytest.mark.parametrize("levels", LEVELS)
def test_edges_are_those_of_a_look_at_each_arc(lab: Any, engine_kind: str, levels: tuple[Level, Level]) -> None:
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 60, (220, 2)).tolist()
    labels = {vertex: int(rng.integers(3)) for vertex in range(60)}
    context = lab.context(lab.graph(ends, labels), engine=engine_kind)
    host, graph = context.graph, load_graph(context)[0]
    degrees = np.diff(host.indptr)
    owners = np.repeat(np.arange(len(degrees)), degrees)
    arcs = list(zip(owners.tolist(), host.indices.tolist(), strict=True))

    def fits(level: Level, vertex: int) -> bool:
        return degrees[vertex] >= level.degree and level.label in (-1, host.labels[vertex])

    def wanted(low: int, high: int) -> bool:
        if (levels[1].below and high >= low) or (levels[1].above and high <= low):
            return False
        return fits(levels[0], low) and fits(levels[1], high)

    for first, last in product((0, 3, 100, len(arcs) - 1), (1, 4, 101, 250, len(arcs))):
        if first >= last:
            continue
        rows = [arc for arc in arcs[first:last] if wanted(*arc)]
        table = edge_source(graph, levels, first, last, context.engine.xp)
        assert len(table) == len(rows)
        if rows:
            columns = table.columns()
            found = columns if engine_kind == "cpu" else columns.get()
            assert list(zip(*found.tolist(), strict=True)) == rows


@pytest.mark.parametrize("times", [0, 1, 3], ids=("fewer than the graph has", "each once", "more"))
@pytest.mark.parametrize("label", [-1, 1])
def test_vertices_have_the_degree_and_the_label_of_a_level(lab: Any, engine_kind: str, times: int, label: int) -> None:
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
