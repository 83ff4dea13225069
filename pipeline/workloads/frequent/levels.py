"""Frequent patterns: level by level, each pattern once as its minimum DFS code (gSpan), over embedding tables.

A level has a barrier: what of it is frequent is known when all of its embeddings are aggregated. A level's patterns are
in the journal once they are known; its embeddings are made anew when a run goes on.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns, GrownPatterns, from_plain
from longwall.pipeline.workloads.frequent.local_embeddings import LocalEmbeddings
from longwall.pipeline.workloads.frequent.partitioned_embeddings import PartitionedEmbeddings
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.plan import MAX_PATTERN_EDGES, FrequentPlan


class Embeddings(Protocol):
    """The embeddings of a level, wherever they are."""

    def prepare(self, patterns: DfsPatterns, rows: int) -> None:
        """Have a level aggregated, where that is not done by this process.

        Parameters
        ----------
        patterns
            The level's.
        rows
            Its embeddings, where they were counted.
        """
        ...

    def frequent(self, patterns: DfsPatterns) -> list[GrownPatterns]:
        """What the patterns of the level grow into that is frequent, in several parts; after `prepare`."""
        ...

    def done(self) -> None:
        """Let go of what the level was aggregated with: what is frequent is in the journal."""
        ...

    def grow(self, patterns: DfsPatterns, found: FrequentPatterns) -> None:
        """Go on to the next level: what the patterns grow into."""
        ...

    def export(self, found: FrequentPatterns, numbers: NDArray[np.int64]) -> int:
        """Write the embeddings of the level that was grown, give their number; see `frequent.export`."""
        ...

    def close(self) -> None:
        """Let go of all embeddings."""
        ...


def mine_frequent(plan: FrequentPlan, context: Environment) -> Iterator[tuple[FrequentPatterns, Embeddings | None]]:
    """Mine the frequent patterns, level by level.

    Yields
    ------
    FrequentPatterns
        The patterns of a level; where the support is `instances`, all of them: a part may be rarer than the whole.
    Embeddings
        Their embeddings, until the next level is asked for; None of the last level, unless the plan asks for
        embeddings.

    Raises
    ------
    InputError, RunError
        If a budget has no room for the graph, or for a single pattern's images.
    """
    with closing(PatternGrower(plan, context)) as growing:
        kind = LocalEmbeddings if context.scheduler is None else PartitionedEmbeddings
        with closing(kind(plan, context, growing)) as embeddings:
            yield from _levels(plan, context, growing, embeddings)


def _levels(
    plan: FrequentPlan, context: Environment, growing: PatternGrower, embeddings: Embeddings
) -> Iterator[tuple[FrequentPatterns, Embeddings | None]]:
    """Grow until nothing is frequent, or the patterns are as large as they may be; see `mine_frequent`."""
    patterns, rows = growing.roots(), context.graph.num_vertices
    while True:
        level = patterns.num_edges + 1
        last = level == plan.max_edges
        began = time.perf_counter()
        embeddings.prepare(patterns, rows)
        phase = context.checkpoint.phase(f"patterns of {level} edges", 1)
        if not phase.complete:
            parts = embeddings.frequent(patterns)
            phase.commit([(0, 1)], PartialResult([part.plain() for part in parts if len(part.parents)]))
        embeddings.done()
        found = FrequentPatterns.grown(patterns, growing.types, from_plain(phase.partials[0].value))
        before, rows = rows, int(found.rows.sum()) if plan.exact else 0
        context.metrics.record("aggregate", level, before, rows, time.perf_counter() - began)
        if level == MAX_PATTERN_EDGES and len(found.patterns):
            context.observer.note(f"patterns of more than {level} edges are not looked for")
        if not len(found.patterns) or (last and not plan.embeddings):
            yield found, None
            return
        if level == 1:
            growing.leave_out_rare(found)
        embeddings.grow(patterns, found)
        patterns = found.patterns
        yield found, embeddings
        if last:
            return
