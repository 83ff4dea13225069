"""Rows of a graph that is built: the same from buckets in memory, from a merge, and where the buckets had to go."""

from pathlib import Path

import numpy as np
import pytest
from budgets import make_budgets

from longwall.storage.graph.degree_histogram import count_degrees, rank_by_degree, summarize
from longwall.storage.ingest import ranked_rows
from longwall.storage.ingest.ranked_rows import BucketRows, MergedRows, rank_rows
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.sorting.sorted_keys import sort_distinct

VERTICES, BASE = 3_000, 70


def some_edges() -> list[np.ndarray]:
    ends = (np.random.default_rng(2).random((40_000, 2)) ** 3 * VERTICES).astype(np.uint64) + np.uint64(BASE)
    small, large = ends.min(axis=1), ends.max(axis=1)
    return [(small << np.uint64(32) | large)[small != large]]


@pytest.mark.parametrize("kind", ["buckets", "many small blocks", "merge", "spilled", "small budget"])
def test_all_ways_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if kind == "many small blocks":
        monkeypatch.setattr(ranked_rows, "_BUCKET", 50)
        monkeypatch.setattr(ranked_rows, "_LEAST_PIECE", 300)
        monkeypatch.setattr(ranked_rows, "_FRAGMENT", 1)
        monkeypatch.setattr(ranked_rows, "_TOGETHER", 500)
    budgets = make_budgets(300_000 if kind == "small budget" else 1 << 26)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill), most_work=1 << 25) as scratch:
        edges = sort_distinct(some_edges(), scratch, scratch.work // 2)
        neighbours: list[list[int]] = [[] for _ in range(VERTICES)]
        for key in (key for block in edges.blocks(100_000) for key in block.keys.tolist()):
            u, v = (key >> 32) - BASE, (key & 0xFFFFFFFF) - BASE
            neighbours[u].append(v)
            neighbours[v].append(u)
        degrees = count_degrees(edges, BASE, VERTICES, scratch)
        histogram = summarize(degrees, scratch)
        ranks = rank_by_degree(degrees, histogram, scratch)
        order = sorted(range(VERTICES), key=lambda vertex: (-len(neighbours[vertex]), vertex))
        rank_of = {vertex: rank for rank, vertex in enumerate(order)}
        expected = [sorted(rank_of[v] for v in neighbours[u]) for u in order if neighbours[u]]
        relabelled = []
        arguments = edges, BASE, ranks, histogram, scratch, relabelled.append
        with rank_rows(*arguments, plain=kind != "merge") as by_rank:
            assert isinstance(by_rank, MergedRows if kind in ("merge", "small budget") else BucketRows)
            assert sum(relabelled) == len(edges)
            edges.drop()
            if kind == "spilled":
                scratch.make_room(scratch.capacity)
            indices, splits, blocks = [], [], 0
            for rows in by_rank.blocks(histogram, None, scratch):
                indices += rows.indices.tolist()
                splits += rows.splits.tolist() if rows.splits is not None else []
                blocks += 1
        assert indices == [column for row in expected for column in row]
        starts = np.cumsum([0, *map(len, expected)])
        below = [
            int(start) + sum(column < row for column in columns)
            for row, (start, columns) in enumerate(zip(starts, expected, strict=False))
        ]
        assert splits == (below if kind in ("buckets", "many small blocks") else [])
        assert blocks > 10 or kind != "many small blocks"
        ranks.drop()
        degrees.drop()
        assert budgets.host.used == scratch.work
    assert budgets.host.used == budgets.disk.used == 0
