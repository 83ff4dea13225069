"""Frequent patterns: level by level, each pattern once as its minimum DFS code (gSpan), over embedding tables.

A level has a barrier: what of it is frequent is known when all of its embeddings are aggregated. A level's patterns are
in an array of the checkpoint, and in the commit log, once they are known; its embeddings are made anew when a run is
resumed.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Protocol

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns, GrownPatterns, PatternParts
from longwall.pipeline.workloads.frequent.local_embeddings import LocalEmbeddings
from longwall.pipeline.workloads.frequent.partitioned_embeddings import PartitionedEmbeddings
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.plan import MAX_PATTERN_EDGES, FrequentPlan
from longwall.storage.memory.reservations import Reservation


class Embeddings(Protocol):
    """The embeddings of a level, wherever they are."""

    def prepare(self, patterns: DfsPatterns, rows: int) -> None:
        """Aggregate a level where that is done in phases.

        Parameters
        ----------
        patterns
            The level's.
        rows
            Its embeddings, where they were counted.
        """
        ...

    def frequent(self, patterns: DfsPatterns) -> Iterator[GrownPatterns]:
        """Yield what the patterns of the level grow into that is frequent, in several parts; after `prepare`."""
        ...

    def done(self) -> None:
        """Remove what the level was aggregated with: what is frequent is in the commit log."""
        ...

    def grow(self, patterns: DfsPatterns, found: FrequentPatterns, file: dict[str, Any]) -> None:
        """Go on to the next level: what the patterns grow into, and the file that has it, as a commit names it."""
        ...

    def export(self, found: FrequentPatterns, first: int) -> int:
        """Write the embeddings of the level that was grown; return their number.

        Parameters
        ----------
        found
            The level's patterns.
        first
            Row of its first frequent pattern in ``patterns.parquet``.
        """
        ...

    def close(self) -> None:
        """Drop all embeddings."""
        ...


def mine_frequent(
    plan: FrequentPlan, env: Coordinator, grower: PatternGrower
) -> Iterator[tuple[FrequentPatterns, Embeddings | None]]:
    """Mine the frequent patterns, level by level.

    Parameters
    ----------
    plan, env
        The run.
    grower
        What grows and chooses patterns, and holds them in its budgets: those of a level until the one after the next.

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
    kind = LocalEmbeddings if env.alone else PartitionedEmbeddings
    with closing(kind(plan, env, grower)) as embeddings, grower.pool.reserve(0, "") as held:
        yield from _levels(plan, env, grower, embeddings, held)


def _levels(
    plan: FrequentPlan, env: Coordinator, grower: PatternGrower, embeddings: Embeddings, held: Reservation
) -> Iterator[tuple[FrequentPatterns, Embeddings | None]]:
    """Grow until nothing is frequent, or the patterns are as large as they may be; see `mine_frequent`.

    `held` has what is reserved for the patterns of the level, and of the one that they grow into.
    """
    patterns, rows = grower.roots, env.graph.num_vertices
    while True:
        level = patterns.num_edges + 1
        last = level == plan.max_edges
        began = time.perf_counter()
        embeddings.prepare(patterns, rows)
        record = env.log.record(f"patterns of {level} edges", 1)
        if not record.complete:
            with PatternParts(grower.pool.reserve) as parts:
                for part in embeddings.frequent(patterns):
                    parts.add(part)
                written = parts.write(env.files, f"patterns-of-{level}-edges")
            # With `bytes`: a resumed run needs the file.
            record.commit([(0, 1)], PartialResult(None, (written | {"bytes": written["stored"]},)))
        embeddings.done()
        (file,) = record.files()
        found, reserved = grower.read_level(env.files, patterns, file)
        of_level = held.size
        held.join(reserved)
        before, rows = rows, int(found.rows.sum()) if plan.exact else 0
        env.metrics.record("aggregate", level, before, rows, time.perf_counter() - began)
        if level == MAX_PATTERN_EDGES and len(found.patterns):
            env.observer.note(f"patterns of more than {level} edges are not looked for")
        if not len(found.patterns) or (last and not plan.embeddings):
            yield found, None
            return
        if level == 1:
            grower.leave_out_rare(found)
        embeddings.grow(patterns, found, file)
        held.split(of_level).release()
        patterns = found.patterns
        yield found, embeddings
        if last:
            return
