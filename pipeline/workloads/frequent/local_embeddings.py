"""The embeddings of a level of frequent patterns in one table, in this process."""

import itertools
import time
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns, RightmostExtensions
from longwall.pipeline.workloads.frequent.embedding_files import LevelWriter
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns, GrownPatterns
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.plan import FrequentPlan


class LocalEmbeddings:
    """See :class:`longwall.pipeline.workloads.frequent.levels.Embeddings`.

    Parameters
    ----------
    plan, context, growing
        The run, and what grows the table.
    """

    def __init__(self, plan: FrequentPlan, context: Environment, growing: PatternGrower):
        self._plan, self._context, self._growing = plan, context, growing
        _ = growing.stage  # before there are tables: the graph does not make them spill
        self._table = growing.vertices(0, 1)

    def prepare(self, patterns: DfsPatterns, rows: int) -> None:
        """Nothing is done elsewhere."""

    def frequent(self, patterns: DfsPatterns) -> list[GrownPatterns]:
        """Aggregate the level, batch by batch."""
        name = f"patterns of {patterns.num_edges + 1} edges"
        self._context.observer.phase(name, len(self._table), "embeddings")
        found = []
        for first, extensions in self._growing.batches(patterns):
            part = self._frequent_of(extensions)
            found.append(part._replace(parents=part.parents + first))
        return found

    def _frequent_of(self, extensions: RightmostExtensions) -> GrownPatterns:
        """Aggregate the embeddings of a batch by rightmost extension, and keep the frequent patterns."""
        growing, table = self._growing, self._table
        rows = supports = None
        if self._plan.exact:
            growing.require_countable(len(table))
            rows = growing.stage.count(table, extensions.growth, extensions.total)
        numbers, candidates = growing.candidates(extensions, rows)
        if self._plan.support != "instances":
            supports = growing.supports(table, extensions, numbers)
        return growing.frequent(extensions.patterns, candidates, supports)

    def close(self) -> None:
        """Let go of the table."""
        self._table.drop()

    def done(self) -> None:
        """Nothing is kept."""

    def grow(self, patterns: DfsPatterns, found: FrequentPatterns) -> None:
        """Make the next level's table of the level's."""
        context, before, level = self._context, self._table, patterns.num_edges + 1
        began = time.perf_counter()
        context.observer.phase(f"embeddings of {level} edges", len(before), "embeddings")
        table = self._growing.grown(patterns, before, found)
        before.drop()
        self._table = table
        seconds = time.perf_counter() - began
        context.metrics.record("extend", level, 0, len(table), seconds, table.nbytes, table.num_chunks)

    def export(self, found: FrequentPatterns, numbers: NDArray[np.int64]) -> int:
        """Write the table to files ``embeddings-<edges>-<number>.parquet``."""
        context = self._context
        context.observer.phase("writing embeddings", len(self._table), "embeddings")
        next_number = itertools.count().__next__
        with closing(LevelWriter(next_number, found, numbers, self._plan, context, self._growing)) as writer:
            rows = writer.write(self._table)
            writer.take()
        return rows
