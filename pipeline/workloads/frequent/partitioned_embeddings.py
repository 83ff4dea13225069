"""The embeddings of a level of frequent patterns in partitions, wherever the tasks of a run are done.

This is what the coordinator decides between the phases of a level (`support_phases`). It needs no table itself.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import Phase
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.embedding_files import WriteEmbeddings
from longwall.pipeline.workloads.frequent.grown_patterns import (
    GROWN_BYTES,
    FrequentPatterns,
    GrownPatterns,
    PatternParts,
    Reserve,
    read_patterns,
)
from longwall.pipeline.workloads.frequent.partitions import PARTS, Lineage
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower, grown_sizes
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.pipeline.workloads.frequent.support_phases import CountRows, CountSupports, Cut, MarkSets
from longwall.stages.aggregation.support import ROWS

_PARTITIONS = 64  # a run has as many to its end, wherever it is resumed
_MANY = np.iinfo(np.int64).max
_SETS_BYTES = 1 << 28  # of the sets of a cut
_SETS_SHARE = 8  # of the coordinator's room, that they may take: workers may have a smaller budget
_CANDIDATE_BYTES = GROWN_BYTES + 96  # of a candidate that is chosen from, with its support
_PHASE_BYTES, _COMMIT_BYTES = 1400, 1200  # of what the commit log knows of a phase, and of a commit with a file


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
        self._journal = Journal(env, grower.pool.reserve)
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
        self._journal.note(len(record.values[0]))
        self._batches = [
            PatternBatch(
                self._env, grower, self._journal, self._lineage, patterns, CountRows(self._lineage, name, *cut)
            )
            for name, cut in ((f"{edges}, batch {number}", cut) for number, cut in enumerate(record.values[0]))
        ]
        for batch in self._batches:
            batch.aggregate()

    def frequent(self, patterns: DfsPatterns) -> Iterator[GrownPatterns]:  # noqa: ARG002 - the batches have them
        """Yield what is frequent of every batch."""
        for batch in self._batches:
            yield from batch.frequent()

    def done(self) -> None:
        """Remove what is left of the level in the checkpoint, but its patterns."""
        for batch in self._batches:
            batch.done()
        self._batches = []

    def grow(self, patterns: DfsPatterns, found: FrequentPatterns, file: dict[str, Any]) -> None:  # noqa: ARG002
        """Note what partitions grow into, when a process is asked for them."""
        self._lineage = self._lineage.followed_by(file)

    def export(self, found: FrequentPatterns, first: int) -> int:  # noqa: ARG002 - processes have it in their lineage
        """Write the partitions to files ``embeddings-<edges>-<number>.parquet``."""
        return sum(self._journal.run(WriteEmbeddings(self._lineage, first)).values)

    def close(self) -> None:
        """Release what is reserved for the record of the run; processes have the tables."""
        self._journal.close()


class Journal:
    """Runs phases, and holds what is reserved for all that the commit log knows of them.

    Parameters
    ----------
    env
        The run.
    reserve
        Reserves bytes of the host, for what a noun names.
    """

    def __init__(self, env: Coordinator, reserve: Reserve):
        self._env, self._reserve, self._held = env, reserve, reserve(0, "")

    def note(self, phases: int, commits: int = 0) -> None:
        """Reserve the memory of a number of phases and commits.

        Raises
        ------
        BudgetExceeded
            If there is no room for them.
        """
        size = _PHASE_BYTES * phases + _COMMIT_BYTES * commits
        self._held.join(self._reserve(size, "the record of the phases of a run"))

    def run(self, phase: Phase) -> PhaseRecord:
        """Run a phase whose commits have a file each."""
        expected = len(phase.tasks(self._env))
        self.note(1, expected)
        record = self._env.run(phase)
        record_levels(self._env, record.partials, {})
        self._held.split(_COMMIT_BYTES * max(expected - len(record.partials), 0)).release()
        return record

    def drop(self, record: PhaseRecord) -> None:
        """Remove the files of a phase, which are not read any more, and forget its commits."""
        commits = len(record.partials)
        self._env.log.drop(record)
        self._held.split(_COMMIT_BYTES * commits).release()

    def close(self) -> None:
        """Release all."""
        self._held.release()


class PatternBatch:
    """A batch of a level's patterns, aggregated in phases.

    Candidates are cut so that the sets of a cut take a bounded part of the disk.

    Parameters
    ----------
    env, grower, journal, lineage
        The run.
    patterns
        The level's.
    rows
        The batch's first phase, which says which patterns it has.
    """

    def __init__(
        self,
        env: Coordinator,
        grower: PatternGrower,
        journal: Journal,
        lineage: Lineage,
        patterns: DfsPatterns,
        rows: CountRows,
    ):
        self._env, self._grower, self._lineage, self._plan = env, grower, lineage, lineage.plan
        self._patterns, self._rows, self._journal = patterns, rows, journal
        self._candidates = env.log.record(f"chosen of {rows.batch}", 1)
        self._counted: list[tuple[int, PhaseRecord]] = []  # the first candidate of a cut, and its supports

    def aggregate(self) -> None:
        """Run the phases; those that are committed are not done again."""
        rows = self._journal.run(self._rows) if self._plan.exact else None
        self._journal.note(1, 1)
        if not self._candidates.complete:
            self._env.observer.phase(self._candidates.name, 1, PARTS)
            self._choose(rows)
        if rows is not None:
            self._journal.drop(rows)
        if self._plan.support == "instances":
            return
        (file,), chosen = self._candidates.files(), self._candidates.values[0]
        for begin in range(0, chosen["size"], chosen["step"]):
            end = min(begin + chosen["step"], chosen["size"])
            self._count(Cut(self._rows.batch, file, begin, end, chosen["columns"]))

    def frequent(self) -> Iterator[GrownPatterns]:
        """Yield what is frequent of what the batch grows into; after `aggregate`."""
        size = self._candidates.values[0]["size"]
        with self._grower.pool.reserve(_CANDIDATE_BYTES * size, "candidates"):
            candidates = read_patterns(self._env.files, self._candidates.files()[0])
            supports = None if self._plan.support == "instances" else self._supports(size)
            yield self._grower.frequent(self._patterns, candidates, supports)

    def _supports(self, size: int) -> NDArray[np.int64]:
        """Return the supports of all candidates, int64[size]."""
        supports = np.zeros(size, np.int64)
        for begin, record in self._counted:
            for file in record.files():
                numbers, counted = self._env.files.read_array(file).T
                supports[begin + numbers] = counted
        return supports

    def done(self) -> None:
        """Remove the candidates and their supports, which are not read any more."""
        for _, record in self._counted:
            self._journal.drop(record)
        self._journal.drop(self._candidates)

    def _choose(self, rows: PhaseRecord | None) -> None:
        """Choose the candidates, and commit them and how their supports are counted."""
        grower, at, columns = self._grower, 0, 1
        with PatternParts(grower.pool.reserve) as found:
            for first, extensions in grower.batches(self._patterns, self._rows.first, self._rows.last, most=_MANY):
                with grower.pool.reserve(16 * extensions.total, "the counts of rightmost extensions"):
                    summed = None if rows is None else self._summed(rows, at, at + extensions.total)
                    _, part = grower.candidates(extensions, summed)
                sizes = grown_sizes(extensions.patterns, part.parents, part.edges)
                columns = max(columns, grower.support.columns(sizes))
                found.add(part._replace(parents=part.parents + first))
                at += extensions.total
            file = found.write(self._env.files, self._rows.folder.replace("rows", "candidates", 1))
            size = len(found)
        disk = self._env.resources.disk.free // (2 * self._lineage.partitions)
        capacity = min(_SETS_BYTES, grower.capacity // _SETS_SHARE, disk)
        step = max(capacity // (4 * columns * max(grower.support.words, 1) + GROWN_BYTES), 1)
        value = {"size": size, "columns": columns, "step": step}
        self._candidates.commit([(0, 1)], PartialResult(value, (file,)))

    def _summed(self, rows: PhaseRecord, begin: int, end: int) -> NDArray[np.int64]:
        found = np.zeros(end - begin, np.int64)
        for file in rows.files():
            ROWS.combine([found, self._env.files.read_array(file, begin, end)])
        return found

    def _count(self, cut: Cut) -> None:
        """Count the supports of some candidates."""
        sets = self._journal.run(MarkSets(self._lineage, cut))
        self._counted.append((cut.begin, self._journal.run(CountSupports(self._lineage, cut, tuple(sets.files())))))
        self._journal.drop(sets)
