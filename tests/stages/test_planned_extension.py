"""Rows that are extended a few at a time, or as far as there is room, are those that are extended at once."""

import numpy as np
import pytest

from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.extension.planned import extend_planned
from longwall.stages.source import edge_source
from longwall.storage.generators.kinds import generate

MEMORY = 1 << 26


@pytest.mark.parametrize("capacity", [1 << 20, 60, 5])
@pytest.mark.parametrize("most", [None, 1, 7, 1000])
def test_parts_have_the_rows_of_the_whole(lab, engine_kind, capacity, most):
    graph = generate("rmat", scale=5, edge_factor=4, seed=2)
    program = plan_match(parse_pattern("diamond"), graph.stats, counting=False).program
    context = lab.context(graph, engine=engine_kind)
    loaded, engine = load_graph(context)[0], context.engine
    searcher = engine.kernels.searcher(engine.device, loaded, program, MEMORY)
    table = edge_source(loaded, (program.levels[0], program.levels[1]), 0, loaded.num_arcs, engine.xp)
    whole, rest, _ = extend_planned(table, searcher, 1 << 20)
    assert rest is None
    waiting, begun, found = table, 0, []
    while waiting is not None:
        before = len(waiting)
        extended, waiting, begun = extend_planned(waiting, searcher, capacity, first=begun, most=most)
        assert waiting is None or begun or len(waiting) < before, "no row was extended"
        found += rows_of(extended)
    assert sorted(found) == sorted(rows_of(whole))
    assert len(found) > 100


def rows_of(table):
    columns = table.columns()
    return np.transpose(columns.get() if hasattr(columns, "get") else columns).tolist()
