"""Rows of a graph are checked where the engine works: all that kernels rely on, and both directions of each edge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from longwall.kernels.interface.engine import Engine
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

KEY = np.array([3**40 | 1, 5**27 | 1, 7**22 | 1], np.uint64)


def edges_hashed(graph: Graph) -> int:
    """Return the sum of hashes by its definition, in Python's integers."""
    add, first, second = KEY.tolist()
    total, owners = 0, np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)).tolist()
    for own, other in zip(owners, graph.indices.tolist(), strict=True):
        mixed = ((min(own, other) << 32 | max(own, other)) + add) * first % 2**64
        mixed = (mixed ^ mixed >> 32) * second % 2**64
        total += (mixed ^ mixed >> 32) * (1 if other < own else -1)
    return total % 2**64


def checked(engine: Engine, graph: Graph, **changed: Any) -> tuple[bool, int]:
    arrays = [changed.get(name, getattr(graph, name)) for name in ("indptr", "split", "indices")]
    with engine.faults():
        return engine.kernels.check_rows(engine.device, *map(engine.xp.asarray, arrays), KEY)


@pytest.mark.parametrize("scale", [3, 7, 10])
def test_rows_of_a_graph_are_right(engine: Engine, scale: int) -> None:
    graph = generate("rmat", seed=scale, scale=scale, edge_factor=4)
    assert checked(engine, graph) == (True, 0)


def test_hashes_of_edges_in_one_direction(engine: Engine) -> None:
    graph = generate("rmat", seed=3, scale=6, edge_factor=4)
    ends = graph.indptr[1:] - 1
    for at in ends[(graph.split <= ends) & (graph.indices[ends] < graph.num_vertices - 1)][:5].tolist():
        indices = graph.indices.copy()
        indices[at] += 1  # rows still ascend
        expected = edges_hashed(replace(graph, indices=indices))
        assert expected != 0
        assert checked(engine, graph, indices=indices) == (True, expected)


def test_wrong_rows_are_found(engine: Engine) -> None:
    graph = generate("rmat", seed=3, scale=10, edge_factor=4)
    n, arcs, random = graph.num_vertices, 2 * graph.num_edges, np.random.default_rng(2)
    for at in (0, arcs - 1, *random.integers(0, arcs, 6).tolist()):
        row = int(np.searchsorted(graph.indptr, at, side="right")) - 1
        for wrong in (row, n, 2**32 - 1):
            indices = graph.indices.copy()
            indices[at] = wrong
            assert not checked(engine, graph, indices=indices)[0], (at, wrong)
    for at in random.integers(0, n, 6).tolist():
        for by in (-1, 1):
            split = graph.split.copy()
            split[at] += by
            if graph.indptr[at] <= split[at] <= graph.indptr[at + 1]:
                assert not checked(engine, graph, split=split)[0], (at, by)
    begins = np.flatnonzero(np.diff(graph.indptr) > 1)
    for row in (begins[0], begins[-1]):
        indices, begin = graph.indices.copy(), int(graph.indptr[row])
        indices[[begin, begin + 1]] = indices[[begin + 1, begin]]
        assert not checked(engine, graph, indices=indices)[0]
