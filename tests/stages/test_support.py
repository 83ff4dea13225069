"""The records by which rows and supports of frequent patterns are aggregated: the same however rows are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.interface.pattern_growth import TypedGraph
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns, rightmost_extensions
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.stages.aggregation.support import ROWS, Candidates, Support, bits_on_host
from longwall.stages.extension.grow_patterns import GrowPatterns
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.typed_graph import Labels, typed_graph
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.tables.embedding_table import from_columns


class Table:
    """Rows in chunks, each ascending by column 0."""

    num_levels = 2

    def __init__(self, chunks: list[Any]):
        self._chunks = chunks

    def __len__(self) -> int:
        return sum(chunk.shape[1] for chunk in self._chunks)

    def stream(self) -> Any:
        yield from (from_columns(chunk, np) for chunk in self._chunks)


class Level:
    """The vertices of a small labelled graph as rows, and the ways in which they grow."""

    def __init__(self) -> None:
        graph = generate("erdos-renyi", seed=3, vertices=60, edges=200, num_labels=3)
        host = MemoryBudget("memory.host", 1 << 30)
        labels = Labels(graph, host)
        types = labels.types(host)
        roots = np.arange(len(labels.values), dtype=np.int32)
        patterns = DfsPatterns(roots, np.empty((len(roots), 0, 5), np.int32))
        self.extensions = rightmost_extensions(patterns, 0, types, 3)
        self.graph = TypedGraph(*(np.asarray(a) for a in typed_graph(graph, labels, types, host).arrays()))
        order = np.argsort(labels.ranks, kind="stable")
        self.rows = np.stack([labels.ranks[order], order]).astype(np.uint32)
        self.ranks, self.near = labels.ranks, graph
        self.num_vertices = graph.num_vertices
        self.looked_at: list[int] = []  # rows that were reported, with zeros in between

    def grower(self, support: Support, workers: int, memory: int = 1 << 20) -> GrowPatterns:
        def take(most: int, work: Any) -> Any:
            return work(most)

        budget = MemoryBudget("memory.host", 1 << 30)
        return GrowPatterns(
            CpuEngine(workers),
            self.graph,
            support,
            take,
            memory,
            budget.reserve,
            budget.reserve,
            self.looked_at.append,
        )

    def candidates(self) -> Candidates:
        numbers = np.arange(self.extensions.total)
        pattern, _ = self.extensions.edges(numbers)
        return Candidates(
            self.extensions.growth, self.extensions.total, numbers, pattern, np.full(len(numbers), 2, np.int64)
        )

    def by_brute_force(self) -> tuple[list[int], list[int]]:
        """The rows of every extension, and the least number of images of its two vertices."""
        rows, least = [], []
        numbers = np.arange(self.extensions.total)
        for _, _, own, _, other in self.extensions.edges(numbers)[1].tolist():
            arcs = [
                (v, w)
                for v in range(self.num_vertices)
                for w in self.near.indices[self.near.indptr[v] : self.near.indptr[v + 1]].tolist()
                if (self.ranks[v], self.ranks[w]) == (own, other)
            ]
            rows.append(len(arcs))
            least.append(min(len({v for v, _ in arcs}), len({w for _, w in arcs})))
        return rows, least


@pytest.fixture
def level() -> Level:
    return Level()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("chunks", [4, 1])
def test_rows_and_supports_are_those_of_brute_force(level: Level, workers: int, chunks: int) -> None:
    rows, least = level.by_brute_force()
    stage = level.grower(Support("images", level.num_vertices, 10**6), workers)
    table = Table(np.array_split(level.rows, chunks, axis=1))
    assert stage.count(table, level.extensions.growth, level.extensions.total).tolist() == rows
    assert sum(level.looked_at) == len(table)
    assert stage.supports(table, level.candidates()).tolist() == least


@pytest.mark.parametrize("enough", [3, 10**6])
def test_parts_are_combined_as_by_one_worker(level: Level, enough: int) -> None:
    """As processes do: each has some of the rows, and its partial values are combined, whatever the order."""
    support = Support("images", level.num_vertices, enough)
    stage, candidates = level.grower(support, 2), level.candidates()
    parts = [Table([part]) for part in np.array_split(level.rows, 3, axis=1)]
    counts = [stage.count(part, level.extensions.growth, level.extensions.total) for part in parts]
    rows, least = level.by_brute_force()
    assert ROWS.finalize(ROWS.combine(counts[::-1])).tolist() == rows
    sets = []
    for part in parts:
        ((_, marked),) = stage.sets(part, candidates, 2)
        sets.append(marked.copy())
    record = support.aggregation(candidates.sizes, bits_on_host)
    found = record.finalize(record.combine(sets[::-1]))
    assert found.tolist() == np.minimum(least, enough).tolist()


def test_a_worker_that_has_all_that_is_wanted_stops(level: Level) -> None:
    """All rows come ten times; one image of each vertex is soon found."""
    stage = level.grower(Support("images", level.num_vertices, 1), 1, memory=46 * level.num_vertices)
    table = Table([level.rows] * 10)
    found = stage.supports(table, level.candidates()).tolist()
    assert found == [min(one, 1) for one in level.by_brute_force()[1]]
    pieces = level.looked_at.count(0)
    level.looked_at.clear()
    stage.count(table, level.extensions.growth, level.extensions.total)
    assert 0 < pieces < level.looked_at.count(0)


@pytest.mark.parametrize("support", ["mni", "instances", "transactions"])
def test_a_plan_names_the_stages_of_its_passes(support: Any) -> None:
    plan = FrequentPlan(support, 10, 3, 4, embeddings=True, exact=True)
    lines = plan.describe().splitlines()
    verbs = [line.split()[0] for line in lines if line.split()[0] in ("source", "aggregate", "extend", "export")]
    marking = [] if support == "instances" else ["source", "aggregate"]
    assert verbs == ["source", "aggregate", *marking, "source", "extend", "export", "source", "export"]
    assert all(len(line.split()) > 1 for line in lines), "a stage says what it works on"
    assert any("transactions, as sets" in line for line in lines) == (support == "transactions")
