"""Ids that are there twice, found by several threads in tables of bits, or by sorting."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import each_case

from longwall.storage.graph import graph_checks
from longwall.storage.graph.graph_checks import check_distinct
from longwall.storage.stored_files import Damage


def distinct(ids: np.ndarray, largest: int, workers: int) -> bool:
    space = np.full(len(ids), -1, np.int64)
    with ThreadPoolExecutor(workers) as pool:
        try:
            check_distinct(ids, largest, space, pool, workers)
        except Damage:
            return False
    return True


@each_case("workers", [1, 2, 3, 16])
@each_case("most", [400, 1000, 10_000, 2**40])
def test_an_id_that_is_there_twice_is_found_wherever_it_is(
    monkeypatch: pytest.MonkeyPatch, workers: int, most: int
) -> None:
    monkeypatch.setattr(graph_checks, "_PIECE", 8)
    random = np.random.default_rng(most)
    for length in (1, 2, 9, 100, 300):
        ids = random.permutation(most)[:length] if most < 2**20 else random.integers(0, most, length)
        ids = ids.astype(np.int64)
        assert len(np.unique(ids)) == length
        assert distinct(ids, int(ids.max()), workers)
        for _ in range(12 if length > 1 else 0):
            one, other = random.choice(length, 2, replace=False)
            wrong = ids.copy()
            wrong[one] = wrong[other]
            assert not distinct(wrong, int(ids.max()), workers)
