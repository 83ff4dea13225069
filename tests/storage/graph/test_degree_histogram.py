"""Degrees and ranks of a graph that is being built, against NumPy: any number of threads, any room for tables."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from budgets import make_budgets
from cases import each_case

from longwall.storage.graph import degree_buckets, degree_histogram
from longwall.storage.graph.degree_histogram import NO_RANK, DegreeHistogram, count_degrees, rank_by_degree, summarize
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.sorting.sorted_keys import KeyBlock, SortedKeys

_BASE, _POSITIONS = 7, 70_000  # the hub has more neighbours than there are common degrees


def _edges() -> npt.NDArray[np.uint64]:
    """Return edges of a hub, and of random pairs of which most have small positions."""
    random = np.random.Generator(np.random.Philox(5))
    pairs = np.sort((random.random((60_000, 2)) ** 3 * _POSITIONS).astype(np.uint64), axis=1)
    hub = np.column_stack((np.full(69_000, 3), np.arange(4, 69_004))).astype(np.uint64)
    pairs = np.concatenate((pairs[pairs[:, 0] < pairs[:, 1]], hub)) + np.uint64(_BASE)
    return np.unique(pairs[:, 0] << np.uint64(32) | pairs[:, 1])


@each_case(("budget", "files"), [(1 << 27, False), (700_000, True), (200_000, True)])
@each_case("threads", [1, 2, 5])
def test_degrees_and_ranks_are_those_of_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int, files: bool, threads: int
) -> None:
    monkeypatch.setattr(degree_histogram, "core_count", lambda: threads)
    monkeypatch.setattr(degree_histogram, "_WORTH_A_THREAD", 1)
    keys = _edges()
    ends = np.concatenate((keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF))).astype(np.int64) - _BASE
    expected = np.bincount(ends, minlength=_POSITIONS)
    ranks = np.full(_POSITIONS, NO_RANK, np.int64)
    order = np.argsort(-expected, kind="stable")[: np.count_nonzero(expected)]
    ranks[order] = np.arange(len(order))

    budgets = make_budgets(budget)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        edges = SortedKeys.empty(scratch, labelled=False)
        for start in range(0, len(keys), 10_000):
            edges.append(KeyBlock(keys[start : start + 10_000], None))
        degrees = count_degrees(edges, _BASE, _POSITIONS, scratch)
        assert (degrees.read(0, _POSITIONS) == expected).all()
        histogram = summarize(degrees, scratch)
        distinct, counts = np.unique(expected[expected > 0], return_counts=True)
        assert (histogram.degrees == distinct[::-1]).all()
        assert (histogram.counts == counts[::-1]).all()
        assert (rank_by_degree(degrees, histogram, scratch).read(0, _POSITIONS) == ranks).all()
        assert (scratch.spilled > 0) == files


def test_threads_have_tables_of_their_own_only_within_the_work_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(degree_histogram, "core_count", lambda: 64)
    monkeypatch.setattr(degree_histogram, "_WORTH_A_THREAD", 1)
    used: list[int] = []
    cut = degree_histogram._bounds

    def bounds(length: int, parts: int) -> list[tuple[int, int]]:
        used.append(parts)
        return cut(length, parts)

    monkeypatch.setattr(degree_histogram, "_bounds", bounds)
    keys = _edges()
    with SpillFolder(tmp_path) as spill, Scratch(make_budgets(4_000_000).at(spill)) as scratch:
        edges = SortedKeys.empty(scratch, labelled=False)
        edges.append(KeyBlock(keys, None))
        count_degrees(edges, _BASE, _POSITIONS, scratch)
        assert 1 < used[0] <= 1 + scratch.work // 2 // (4 * _POSITIONS)


@pytest.mark.parametrize("bits", [3, 10, 20])
def test_degrees_of_many_positions_are_counted_bucket_by_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    monkeypatch.setattr(degree_histogram, "_CACHED", 0)
    monkeypatch.setattr(degree_buckets, "_POSITION_BITS", bits)
    keys = _edges()
    ends = np.concatenate((keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF))).astype(np.int64) - _BASE
    expected = np.bincount(ends, minlength=_POSITIONS)
    with SpillFolder(tmp_path) as spill, Scratch(make_budgets(1 << 24).at(spill), most_work=1 << 20) as scratch:
        edges = SortedKeys.empty(scratch, labelled=False)
        edges.append(KeyBlock(keys, None))
        table = np.zeros(_POSITIONS, np.uint32)
        assert degree_buckets.count_in_buckets(keys, _BASE, table, scratch)
        np.testing.assert_array_equal(table, expected)
        np.testing.assert_array_equal(count_degrees(edges, _BASE, _POSITIONS, scratch).read(0, _POSITIONS), expected)
        with scratch.host.reserve(scratch.host.free, "all"):
            table[:] = 0
            assert not degree_buckets.count_in_buckets(keys, _BASE, table, scratch)
            assert not table.any()


@pytest.mark.parametrize("seed", range(5))
def test_starts_of_consecutive_rows_are_sums_of_degrees(seed: int) -> None:
    random = np.random.Generator(np.random.Philox(seed))
    distinct = np.sort(random.choice(50, 1 + 3 * seed, replace=False) + 1)[::-1]
    counts = random.integers(1, 5, len(distinct))
    sums = np.concatenate(([0], np.cumsum(np.repeat(distinct, counts))))
    histogram = DegreeHistogram(distinct, counts)
    for first in range(len(sums)):
        for stop in range(first + 1, len(sums) + 1):
            assert (histogram.consecutive_starts(first, stop) == sums[first:stop]).all()
