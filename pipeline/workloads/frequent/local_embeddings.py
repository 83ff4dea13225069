"""The embeddings of a level of frequent patterns in one table, in this process."""

import itertools
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns, RightmostExtensions
from longwall.pipeline.workloads.frequent.embedding_files import LevelWriter
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns, GrownPatterns
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.plan import FrequentPlan


class LocalEmbeddings:
    """See :class:`longwall.pipeline.workloads.frequent.levels.Embeddings`.

    Parameters
    ----------
    plan, env, grower
        The run, and what grows the table.
    """

    def __init__(self, plan: FrequentPlan, env: Coordinator, grower: PatternGrower):
        self._plan, self._env, self._grower = plan, env, grower
        _ = grower.stage  # before there are tables: the graph does not make them spill
        self._table = grower.vertices(0, 1)

    def prepare(self, patterns: DfsPatterns, rows: int) -> None:
        """Do nothing: this process aggregates the level in `frequent`."""

    def frequent(self, patterns: DfsPatterns) -> Iterator[GrownPatterns]:
        """Aggregate the level, batch by batch; yield what is frequent."""
        name = f"patterns of {_edges(patterns.num_edges + 1)}"
        self._env.observer.phase(name, len(self._table), "embeddings")
        for first, extensions in self._grower.batches(patterns):
            part = self._frequent_of(extensions)
            yield part._replace(parents=part.parents + first)

    def _frequent_of(self, extensions: RightmostExtensions) -> GrownPatterns:
        """Aggregate the embeddings of a batch by rightmost extension, and keep the frequent patterns."""
        grower, table = self._grower, self._table
        rows = supports = None
        if self._plan.exact:
            grower.require_countable(len(table))
            rows = grower.stage.count(table, extensions.growth, extensions.total)
        numbers, candidates = grower.candidates(extensions, rows)
        if self._plan.support != "instances":
            supports = grower.supports(table, extensions, numbers)
        return grower.frequent(extensions.patterns, candidates, supports)

    def close(self) -> None:
        """Drop the table."""
        self._table.drop()

    def done(self) -> None:
        """Do nothing: nothing of the level is in the checkpoint."""

    def grow(self, patterns: DfsPatterns, found: FrequentPatterns, file: dict[str, Any]) -> None:  # noqa: ARG002
        """Make the next level's table of the level's."""
        env, before, level = self._env, self._table, patterns.num_edges + 1
        began = time.perf_counter()
        env.observer.phase(f"embeddings of {_edges(level)}", len(before), "embeddings")
        table = self._grower.grown(patterns, before, found)
        before.drop()
        self._table = table
        seconds = time.perf_counter() - began
        env.metrics.record("extend", level, 0, len(table), seconds, table.nbytes, table.num_chunks)

    def export(self, found: FrequentPatterns, first: int) -> int:
        """Write the table to files ``embeddings-<edges>-<number>.parquet``."""
        env = self._env
        env.observer.phase("writing embeddings", len(self._table), "embeddings")
        next_number = itertools.count().__next__
        with closing(LevelWriter(next_number, found, first, self._plan, env, self._grower)) as writer:
            rows = writer.write(self._table)
            writer.take()
        return rows


def _edges(number: int) -> str:
    return f"{number} edge{'s' if number != 1 else ''}"
