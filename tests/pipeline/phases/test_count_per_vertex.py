"""Counts of every vertex are refused before the work where there is no room for them."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.stages.range_counting import CountTrianglesOfVertices
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import BudgetExceeded


@cache
def rmat() -> Graph:
    return generate("rmat", seed=7, scale=8, edge_factor=6)


@pytest.mark.parametrize("left", [-1, 0])
def test_room_for_the_counts_is_asked_for_before_the_work(
    lab: SimpleNamespace, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = lab.context(rmat())
    host, began = context.resources.host, list[str]()
    run = type(context.executor).run

    def running(self: Any, phase: Any, env: Any) -> Any:
        began.append(phase.name)
        taken.release()
        return run(self, phase, env)

    monkeypatch.setattr(type(context.executor), "run", running)
    taken = host.reserve(host.free - 16 * rmat().num_vertices - left, "all but the counts")
    phase = CountPerVertex(CountTrianglesOfVertices(), 1.0)
    if left < 0:
        with pytest.raises(BudgetExceeded, match="no room for the counts"), phase.run(context):
            pass
    else:
        with phase.run(context) as counts:
            assert len(counts) == rmat().num_vertices
    assert bool(began) == (left == 0)
