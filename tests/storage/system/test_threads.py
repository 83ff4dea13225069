"""Work that threads share."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from longwall.storage.system.concurrency import map_all


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_results_are_in_order(workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        assert map_all(pool, workers, lambda x: x * x, range(100)) == [x * x for x in range(100)]
        assert map_all(pool, workers, abs, []) == []


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_the_first_error_is_raised_and_nothing_is_begun_after_it(workers: int) -> None:
    begun: list[int] = []
    failed = threading.Event()

    def work(item: int) -> None:
        begun.append(item)
        if item in (20, 21, 22):
            failed.set()
            raise ValueError(item)
        if item > 22:
            failed.wait(10)

    with ThreadPoolExecutor(workers) as pool, pytest.raises(ValueError, match="20"):
        map_all(pool, workers, work, range(10_000))
    assert len(begun) < 23 + 2 * workers
