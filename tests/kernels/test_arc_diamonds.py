"""Diamonds at ranges of arcs: in the whole adjacency and in arcs to smaller neighbours alone, in blocks and at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from engines import make_engine
from oriented import orient

from longwall.kernels.interface.engine import Engine, WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import NARROW_DEGREE, GraphArrays
from longwall.kernels.interface.local_counts import ArcPiece, Corner
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.pages.orientation import target_blocks

GRAPHS = {
    "rmat": cache(lambda: generate("rmat", seed=4, scale=7, edge_factor=8)),
    "dense": cache(lambda: generate("erdos-renyi", seed=1, vertices=70, edges=1500)),
    "one clique": cache(lambda: generate("erdos-renyi", seed=1, vertices=30, edges=435)),
    "path": cache(lambda: build_graph(np.arange(50), np.arange(1, 51))),
}


def pairs_of(graph: Graph) -> np.ndarray:
    """Pairs of triangles at each arc, 0 at arcs to larger neighbours; by the neighbours of both ends."""
    whole: Any = nx.Graph()
    ends = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    whole.add_edges_from(zip(ends.tolist(), graph.indices.tolist(), strict=True))
    common = [len(list(nx.common_neighbors(whole, v, int(x)))) if x < v else 0 for v, x in whole_arcs(graph)]
    return np.array([c * (c - 1) // 2 for c in common])


def whole_arcs(graph: Graph) -> list[tuple[int, int]]:
    ends = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    return list(zip(ends.tolist(), graph.indices.tolist(), strict=True))


@pytest.fixture(params=[20, 1 << 16, None])
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Return the least degree of a vertex whose counts have 32 bits; None: all have."""
    if request.param is not None:
        monkeypatch.setattr("longwall.storage.pages.orientation.NARROW_DEGREE", request.param)
    return request.param  # type: ignore[no-any-return]


def oriented(graph: Graph, narrow: int | None) -> GraphArrays:
    return orient(graph) if narrow is not None else replace(orient(graph), narrow_from=None)


def test_the_oracle_finds_diamonds() -> None:
    assert pairs_of(GRAPHS["one clique"]()).sum() == 6 * len(list(combinations(range(30), 4)))


@pytest.mark.parametrize("name", list(GRAPHS))
def test_pairs_of_triangles_at_ranges_of_arcs(name: str, engine: Engine) -> None:
    graph = GRAPHS[name]()
    host, expected = host_arrays(graph), pairs_of(graph)
    counter = engine.kernels.arc_diamond_counter(engine.device, engine.load(host), 1 << 28)
    end = host.num_arcs
    assert counter.count(0, end) == expected.sum()
    for first, last in pairwise([0, 1, end // 3, end // 3 + 7, end]):
        assert counter.count(first, last) == expected[first:last].sum()


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(GRAPHS))
def test_pairs_of_triangles_block_by_block(name: str, narrow: int | None) -> None:
    graph, chosen = GRAPHS[name](), make_engine("cuda")
    host, expected = oriented(graph, narrow), pairs_of(graph)
    expected = expected[graph.indices < np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))]
    counter = chosen.kernels.arc_diamond_counter(chosen.device, chosen.load(host), 1 << 28)
    starts, n = host.indptr.tolist(), graph.num_vertices
    for low, high in ((0, n // 3), (n // 3, n // 2), (n // 2, n)):
        own, cuts = (starts[low], starts[high]), [*range(0, high, 7), high]
        below = [(*own, part, Corner.LARGEST) for part in pairwise(cuts)]
        cuts = [*range(low, n, 11), n]
        above = [(starts[a], starts[b], (low, high), Corner.SMALLER) for a, b in pairwise(cuts)]
        for first, last in pairwise([own[0], (own[0] + own[1]) // 2, own[1]]):
            assert counter.count(first, last, iter(below + above)) == expected[first:last].sum()


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("owned", [100, 300, 1000])
@pytest.mark.parametrize("most", [30, 90, 1000])
def test_pairs_of_triangles_while_counts_come_in_turn(name: str, owned: int, most: int, narrow: int | None) -> None:
    graph, chosen = GRAPHS[name](), make_engine("cuda")
    host = oriented(graph, narrow)
    counter = chosen.kernels.arc_diamond_counter(chosen.device, chosen.load(host), 1 << 28)
    starts = host.indptr
    owners = target_blocks(starts, min(owned, counter.piece_capacity))

    def parts_of(first: int, last: int) -> list[tuple[int, int]]:
        blocks = target_blocks(starts[first : last + 1], min(most, counter.part_capacity))
        return [(first + low, first + high) for low, high in blocks]

    def pieces() -> Iterator[ArcPiece]:
        for number, (low, high) in enumerate(owners):
            parts = [part for before in owners[:number] for part in parts_of(*before)]
            parts.append((low, high))
            targets = [(part, (int(starts[part[0]]), int(starts[part[1]]))) for part in parts]
            yield ArcPiece((int(starts[low]), int(starts[high])), iter(targets), parts, number == len(owners) - 1)

    for _ in range(2):
        assert counter.count_pieces(pieces()) == pairs_of(graph).sum()


@pytest.mark.gpu
@pytest.mark.parametrize("leaves", [NARROW_DEGREE - 2, NARROW_DEGREE - 1, NARROW_DEGREE + 100])
def test_more_triangles_at_an_arc_than_16_bits_count(leaves: int) -> None:
    """An edge, and vertices that are adjacent to both of its ends."""
    chosen, others = make_engine("cuda"), np.arange(2, leaves + 2)
    ends = np.concatenate([[0], np.zeros(leaves, int), np.ones(leaves, int)])
    host = orient(build_graph(ends, np.concatenate([[1], others, others])))
    assert host.narrow_from == (0 if leaves + 1 < NARROW_DEGREE else 2)
    counter = chosen.kernels.arc_diamond_counter(chosen.device, chosen.load(host), 1 << 28)
    assert counter.count_bytes == 2
    n, middle = host.num_vertices, 2 + leaves // 2
    starts, parts = host.indptr.tolist(), [(0, middle), (middle, n)]
    pieces = [
        ArcPiece((0, starts[middle]), iter([((0, middle), (0, starts[middle]))]), parts[:1], final=False),
        ArcPiece(
            (starts[middle], starts[n]),
            iter([((0, middle), (0, starts[middle])), ((middle, n), (starts[middle], starts[n]))]),
            parts,
            final=True,
        ),
    ]
    assert counter.count_pieces(iter(pieces)) == leaves * (leaves - 1) // 2
    assert counter.count(0, host.num_arcs) == leaves * (leaves - 1) // 2


@pytest.mark.gpu
def test_counts_without_room_are_refused_before_anything_is_made() -> None:
    graph, chosen = GRAPHS["rmat"](), make_engine("cuda")
    loaded = chosen.load(host_arrays(graph))
    with pytest.raises(WorkspaceTooLarge):
        chosen.kernels.arc_diamond_counter(chosen.device, loaded, 16 * (graph.num_vertices + 1))
    least = chosen.kernels.arc_diamond_counter(chosen.device, loaded, 16 * (graph.num_vertices + 1) + 4)
    assert least.arc_capacity > 0
