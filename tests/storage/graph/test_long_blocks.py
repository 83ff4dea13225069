"""Many threads read a store in blocks of several chunks: the same graph, the same checks, the same budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longwall.storage.errors import InputError
from longwall.storage.graph import graph_store
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import open_store
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.memory.reservations import MemoryBudget

MIB = 1 << 20


@pytest.fixture(scope="module")
def graph() -> Graph:
    ends = np.random.default_rng(7).integers(0, 1 << 15, (2, 5 * MIB // 4), np.uint64)
    made = build_graph(*ends)
    assert made.indices.nbytes > 8 * MIB
    return made


@pytest.fixture
def store(graph: Graph, tmp_path: Path) -> Path:
    write_graph(graph, tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Chunks of the blocks of each store that is read, by four threads."""
    found: list[int] = []
    made = graph_store.StoreReader.__init__

    def init(self: Any, header: Any, stored: Any, workers: int, chunks: int) -> None:
        found.append(chunks)
        made(self, header, stored, workers, chunks)

    monkeypatch.setattr(graph_store.StoreReader, "__init__", init)
    monkeypatch.setattr(graph_store, "core_count", lambda: 4)
    monkeypatch.setattr(graph_store, "_BLOCKS_EACH", 1)
    return found


def test_long_blocks_give_the_same_graph(graph: Graph, store: Path, sizes: list[int]) -> None:
    read = open_store(store)
    assert sizes == [2]
    for name in ("indptr", "indices", "split", "original_ids"):
        assert np.array_equal(getattr(read, name), getattr(graph, name))


def test_a_small_budget_takes_short_blocks(graph: Graph, store: Path, sizes: list[int]) -> None:
    for spare, chunks in ((40 * MIB, 2), (12 * MIB, 1), (3 * MIB, 1)):
        budget = MemoryBudget("memory.host", graph.nbytes + spare)
        open_store(store, budget)
        assert sizes.pop() == chunks
        assert budget.used == graph.nbytes
        assert budget.peak <= budget.limit


def test_damage_in_the_middle_of_a_block(store: Path, sizes: list[int]) -> None:
    shard = next(file for file in (store / "indices" / "c").iterdir() if file.stat().st_size > MIB)
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(InputError, match="the graph store is damaged or incomplete"):
        open_store(store)
    assert sizes == [2]
