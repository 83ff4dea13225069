"""The embeddings of a level of frequent patterns in partitions, wherever the tasks of a run are done.

This is what the coordinator decides between the phases of a level (`support_phases`). It needs no table itself.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.embedding_files import WriteEmbeddings
from longwall.pipeline.workloads.frequent.grown_patterns import (
    FrequentPatterns,
    GrownPatterns,
    joined,
    read_patterns,
    write_patterns,
)
from longwall.pipeline.workloads.frequent.partitions import PARTS, Lineage, PartitionPhase
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower, grown_sizes
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.pipeline.workloads.frequent.support_phases import CountRows, CountSupports, Cut, MarkSets
from longwall.stages.aggregation.support import ROWS

_PARTITIONS = 64  # a run has as many to its end, wherever it is resumed
_MANY = np.iinfo(np.int64).max
_SETS_BYTES = 1 << 28  # of the sets of a cut
_SETS_SHARE = 8  # of the coordinator's room, that they may take: workers may have a smaller budget
_CANDIDATE_BYTES = 3 * 72  # of a candidate, as read, as numbers, and chosen from


class PartitionedEmbeddings:
    """See :class:`longwall.pipeline.workloads.frequent.levels.Embeddings`.

    Parameters
    ----------
    plan, env, grower
        The run, and what chooses candidates.
    """

    def __init__(self, plan: FrequentPlan, env: Coordinator, grower: PatternGrower):
        self._plan, self._env, self._grower = plan, env, grower
        record = env.log.record("partitions", 1)
        if not record.complete:
            record.commit([(0, 1)], PartialResult(min(_PARTITIONS, env.graph.num_vertices)))
        self._lineage = Lineage(plan, record.values[0])
        self._batches: list[PatternBatch] = []

    def prepare(self, patterns: DfsPatterns, rows: int) -> None:
        """Aggregate the level, batch by batch."""
        grower = self._grower
        if self._plan.exact:
            grower.require_countable(rows)
        edges = f"{patterns.num_edges + 1} edges"
        record = self._env.log.record(f"batches of {edges}", 1)
        if not record.complete:
            extensions = grower.batches(patterns, most=_MANY)
            cuts = [(first, first + len(batch.patterns), batch.total) for first, batch in extensions]
            record.commit([(0, 1)], PartialResult(cuts))
        self._batches = [
            PatternBatch(self._env, grower, self._lineage, patterns, CountRows(self._lineage, name, *cut))
            for name, cut in ((f"{edges}, batch {number}", cut) for number, cut in enumerate(record.values[0]))
        ]
        for batch in self._batches:
            batch.aggregate()

    def frequent(self, patterns: DfsPatterns) -> list[GrownPatterns]:  # noqa: ARG002 - the batches have them
        """Return what is frequent of every batch."""
        return [batch.frequent() for batch in self._batches]

    def done(self) -> None:
        """Remove what is left of the level in the checkpoint, but its patterns."""
        for batch in self._batches:
            batch.done()

    def grow(self, patterns: DfsPatterns, found: FrequentPatterns, file: dict[str, Any]) -> None:  # noqa: ARG002
        """Note what partitions grow into, when a process is asked for them."""
        self._lineage = self._lineage.followed_by(file)

    def export(self, found: FrequentPatterns, first: int) -> int:  # noqa: ARG002 - processes have it in their lineage
        """Write the partitions to files ``embeddings-<edges>-<number>.parquet``."""
        record = self._env.run(WriteEmbeddings(self._lineage, first))
        record_levels(self._env, record.partials, {})
        return sum(record.values)

    def close(self) -> None:
        """Release nothing: processes have the tables."""


class PatternBatch:
    """A batch of a level's patterns, aggregated in phases.

    Candidates are cut so that the sets of a cut take a bounded part of the disk.

    Parameters
    ----------
    env, grower, lineage
        The run.
    patterns
        The level's.
    rows
        The batch's first phase, which says which patterns it has.
    """

    def __init__(
        self, env: Coordinator, grower: PatternGrower, lineage: Lineage, patterns: DfsPatterns, rows: CountRows
    ):
        self._env, self._grower, self._lineage, self._plan = env, grower, lineage, lineage.plan
        self._patterns, self._rows = patterns, rows
        self._candidates = env.log.record(f"candidates of {rows.batch}", 1)
        self._supports: list[NDArray[np.int64]] = []

    def aggregate(self) -> None:
        """Run the phases; those that are committed are not done again."""
        rows = self._run(self._rows) if self._plan.exact else None
        if not self._candidates.complete:
            self._env.observer.phase(self._candidates.name, 1, PARTS)
            self._choose(rows)
        if rows is not None:
            self._env.log.drop(rows)
        chosen = self._candidates.values[0]
        for begin, end in chosen["cuts"]:
            cut = Cut(self._rows.batch, self._candidates.files()[0], begin, end, chosen["columns"])
            self._supports.append(self._count(cut))

    def frequent(self) -> GrownPatterns:
        """Return what is frequent of what the batch grows into; after `aggregate`."""
        with self._grower.pool.reserve(_CANDIDATE_BYTES * self._candidates.values[0]["size"], "candidates"):
            candidates = read_patterns(self._env.files, self._candidates.files()[0])
            counted = self._plan.support != "instances"
            supports = np.concatenate([np.empty(0, np.int64), *self._supports]) if counted else None
            return self._grower.frequent(self._patterns, candidates, supports)

    def done(self) -> None:
        """Remove the candidates, which are not read any more."""
        self._env.log.drop(self._candidates)

    def _run(self, phase: PartitionPhase) -> PhaseRecord:
        record = self._env.run(phase)
        record_levels(self._env, record.partials, {})
        return record

    def _choose(self, rows: PhaseRecord | None) -> None:
        """Choose the candidates, and commit them and how their supports are counted."""
        grower, found, at = self._grower, [], 0
        for first, extensions in grower.batches(self._patterns, self._rows.first, self._rows.last, most=_MANY):
            with grower.pool.reserve(16 * extensions.total, "the counts of rightmost extensions"):
                summed = None if rows is None else self._summed(rows, at, at + extensions.total)
                _, part = grower.candidates(extensions, summed)
            found.append(part._replace(parents=part.parents + first))
            at += extensions.total
        chosen = joined(found)
        columns = grower.support.columns(grown_sizes(self._patterns, chosen.parents, chosen.edges))
        disk = self._env.resources.disk.free // (2 * self._lineage.partitions)
        room = min(_SETS_BYTES, grower.room // _SETS_SHARE, disk)
        step = max(room // (4 * columns * max(grower.support.words, 1)), 1)
        size = len(chosen.parents)
        cuts = [(begin, min(begin + step, size)) for begin in range(0, size, step)]
        value = {"size": size, "columns": columns, "cuts": [] if self._plan.support == "instances" else cuts}
        file = write_patterns(self._env.files, self._rows.folder.replace("rows", "candidates", 1), [chosen])
        self._candidates.commit([(0, 1)], PartialResult(value, (file,)))

    def _summed(self, rows: PhaseRecord, begin: int, end: int) -> NDArray[np.int64]:
        found = np.zeros(end - begin, np.int64)
        for file in rows.files():
            ROWS.combine([found, self._env.files.read_array(file, begin, end)])
        return found

    def _count(self, cut: Cut) -> NDArray[np.int64]:
        """Count the supports of some candidates."""
        sets = self._run(MarkSets(self._lineage, cut))
        record = self._env.run(CountSupports(self._lineage, cut, tuple(sets.files())))
        self._env.log.drop(sets)
        supports = np.zeros(cut.end - cut.begin, np.int64)
        for first, some in (piece for value in record.values for piece in value):
            supports[first : first + len(some)] = some
        return supports
