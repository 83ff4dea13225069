"""Rows of the patterns of a batch are shared by workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from longwall.stages.base import Stage
from longwall.stages.extension.pattern_rows import RowRange, ShareRows
from longwall.storage.tables.embedding_table import from_columns


class Take(Stage):
    """Takes rows; one of them is a fault."""

    verb = "filter"

    def __init__(self, fault: int):
        self.fault, self.taken = fault, set[int]()

    def describe(self) -> str:
        return "take"

    def run(self, chunk: RowRange, context: Any) -> Any:
        rows = set(range(chunk.begin, chunk.end))
        if self.fault in rows:
            raise ArithmeticError("a fault of a worker")
        self.taken |= rows
        return ()


@pytest.mark.parametrize("fault", [0, 5, 9, -1])
def test_the_fault_of_any_worker_ends_the_stage(fault: int) -> None:
    """Its rows would be missing else."""
    chunk = from_columns(np.array([np.arange(10) // 5, np.arange(10)], np.uint32), np)
    seen: list[int] = []
    with ThreadPoolExecutor(3) as threads:
        context = SimpleNamespace(
            first=0, last=2, workers=[SimpleNamespace(done=False)] * 3, threads=threads, check=seen.append
        )
        take = Take(fault)
        if fault < 0:
            assert not list(ShareRows((take,)).run(chunk, context))
            assert (take.taken, seen) == (set(range(10)), [10])
        else:
            with pytest.raises(ArithmeticError, match="of a worker"):
                list(ShareRows((take,)).run(chunk, context))
            assert not seen
