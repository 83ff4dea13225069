"""The phases that aggregate a batch of a level's patterns over the partitions, wherever the tasks of a run are done.

1. `CountRows`: how many mappings each rightmost extension has, over partitions; an array of numbers per commit.
2. `MarkSets`: what supports the candidates that the coordinator chose of them, over partitions; bits per commit.
3. `CountSupports`: the sets of all partitions are united and counted, over candidates.

What a phase reads of an earlier one are arrays of the checkpoint, as commits name them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task, Worker, equal_tasks
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.grown_patterns import GROWN_BYTES, read_patterns
from longwall.pipeline.workloads.frequent.partitions import (
    PARTS,
    ArrayWorker,
    ConcatenatedRows,
    Lineage,
    PartitionPhase,
    Partitions,
    partitions_of,
)
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower, grown_sizes
from longwall.stages.aggregation.support import ROWS, bits_on_host, united

_TOGETHER = 8  # partitions
_PIECES = 64  # of some candidates, whose supports are counted
_BLOCK_BYTES = 3 << 22  # of sets that are united at once
_SUPPORT_BYTES = 32  # of the support of a candidate, and its number


@dataclass(frozen=True)
class CountRows(PartitionPhase):
    """Count the mappings of every rightmost extension of a batch of patterns: int64[num_extensions].

    Attributes
    ----------
    batch
        What the batch is called.
    first, last, num_extensions
        Its patterns, and the number of their rightmost extensions.
    """

    batch: str
    first: int
    last: int
    num_extensions: int

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"rows of {self.batch}"

    def worker(self, env: Environment, parts: Partitions) -> Worker:
        """See `PartitionPhase`."""
        return _RowsWorker(env, parts, self)


class _RowsWorker(ArrayWorker):
    def __init__(self, env: Environment, parts: Partitions, phase: CountRows):
        super().__init__(env, parts, phase)
        self._phase = phase

    def run(self, first: int, last: int) -> None:
        phase, grower = self._phase, self.parts.grower
        for table in [self.parts.table(part) for part in range(first, last)]:
            found = self.array((phase.num_extensions,), np.int64, "the counts of rightmost extensions")
            at = 0
            for _, extensions in grower.batches(self.patterns, phase.first, phase.last):
                counts = grower.stage.count(table, extensions.growth, extensions.total)
                ROWS.combine([found[at : at + extensions.total], counts])
                at += extensions.total


@dataclass(frozen=True)
class Cut:
    """Candidates of a batch whose sets are on disk at the same time.

    Attributes
    ----------
    batch
        What the batch is called.
    candidates
        The file of all candidates of the batch, as a commit names it.
    begin, end
        Candidates `begin` to `end` - 1 of them.
    columns
        Sets of each candidate.
    """

    batch: str
    candidates: dict[str, Any]
    begin: int
    end: int
    columns: int


@dataclass(frozen=True)
class MarkSets(PartitionPhase):
    """Mark what supports some candidates: uint32[end - begin, columns, words].

    Attributes
    ----------
    cut
        The candidates.
    """

    cut: Cut

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"sets {self.cut.begin} of {self.cut.batch}"

    def worker(self, env: Environment, parts: Partitions) -> Worker:
        """See `PartitionPhase`."""
        return _SetsWorker(env, parts, self)


class _SetsWorker(ArrayWorker):
    """Marks for several partitions at once: an image of all of them is looked at once."""

    def __init__(self, env: Environment, parts: Partitions, phase: MarkSets):
        super().__init__(env, parts, phase)
        self._env, self._cut = env, phase.cut
        self._waiting: list[int] = []

    def run(self, first: int, last: int) -> None:
        self._waiting += range(first, last)
        if len(self._waiting) >= _TOGETHER:
            self._mark()

    def take_partial(self) -> PartialResult:
        if self._waiting:
            self._mark()
        return super().take_partial()

    def _mark(self) -> None:
        tables, self._waiting = ConcatenatedRows([self.parts.table(part) for part in self._waiting]), []
        shape = (self._cut.end - self._cut.begin, self._cut.columns, self.parts.grower.support.words)
        found = self.array(shape, np.uint32, "the images of patterns")
        at = 0
        for some in self._sets(tables):
            united([found[at : at + len(some)], some])
            at += len(some)

    def _sets(self, tables: ConcatenatedRows) -> Iterator[NDArray[np.uint32]]:
        """Yield what of some tables supports the candidates, in their order."""
        cut, grower = self._cut, self.parts.grower
        with grower.pool.reserve(GROWN_BYTES * (cut.end - cut.begin), "candidates"):
            candidates = read_patterns(self._env.files, cut.candidates, cut.begin, cut.end)
            parents, edges = candidates.parents, candidates.edges
            for number, extensions in grower.batches(self.patterns, int(parents[0]), int(parents[-1]) + 1):
                low, high = np.searchsorted(parents, [number, number + len(extensions.patterns)]).tolist()
                if low < high:
                    yield from grower.sets(tables, extensions, parents[low:high] - number, edges[low:high], cut.columns)


@dataclass(frozen=True)
class CountSupports(Phase):
    """Unite the sets of all partitions, and count them, over the candidates of a cut.

    The file of a partial result has a row for each candidate, int64[k, 2]: its number in the cut, and its support.

    Attributes
    ----------
    lineage
        The level's.
    cut
        The candidates.
    sets
        The files of `MarkSets`, as commits name them.
    """

    lineage: Lineage
    cut: Cut
    sets: tuple[dict[str, Any], ...]
    unit = PARTS

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"counted sets {self.cut.begin} of {self.cut.batch}"

    def tasks(self, env: Environment) -> Sequence[Task]:  # noqa: ARG002 - the same in every process
        """Return tasks over the candidates."""
        return equal_tasks(self.cut.end - self.cut.begin, _PIECES)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Read the levels that this process does not know yet."""
        parts = partitions_of(env, self.lineage)
        with parts.lock:
            patterns = parts.follow(self.lineage)
        yield lambda: _SupportsWorker(env, parts.grower, patterns, self)


class _SupportsWorker(Worker):
    def __init__(self, env: Environment, grower: PatternGrower, patterns: DfsPatterns, phase: CountSupports):
        self._files, self._grower, self._patterns = env.files, grower, patterns
        self._cut, self._sets, self._folder = phase.cut, phase.sets, phase.folder
        self._memory = grower.pool.reserve(0, "")
        self._found: list[NDArray[np.int64]] = []

    def run(self, first: int, last: int) -> None:
        pool, size = self._grower.pool, last - first
        self._memory.join(pool.reserve(_SUPPORT_BYTES * size, "the supports of candidates"))
        with pool.reserve(GROWN_BYTES * size, "candidates"):
            self._found.append(np.column_stack([np.arange(first, last), self._supports(first, last)]))

    def take_partial(self) -> PartialResult:
        shape = sum(map(len, self._found)), 2
        file = self._files.write_array(self._folder, shape, np.int64, self._found)
        self.close()
        return PartialResult(0, (file,))

    def close(self) -> None:
        self._found = []
        self._memory.release()

    def _supports(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the supports of candidates `first` to `last` - 1 of the cut, int64[last - first]."""
        cut, grower, support = self._cut, self._grower, self._grower.support
        candidates = read_patterns(self._files, cut.candidates, cut.begin + first, cut.begin + last)
        sizes = grown_sizes(self._patterns, candidates.parents, candidates.edges)
        found = np.zeros(last - first, np.int64)
        each = 8 * cut.columns * support.words + support.counting_bytes(cut.columns)  # united, read, counted
        step = min(max(min(_BLOCK_BYTES, grower.capacity) // each, 1), last - first)
        with grower.pool.reserve(step * each, "the images of patterns"):
            for at in range(first, last, step):
                some = slice(at, min(at + step, last))
                there = slice(at - first, some.stop - first)
                record = support.aggregation(sizes[there], bits_on_host)
                sets = np.zeros((some.stop - at, cut.columns, support.words), np.uint32)
                for file in self._sets:
                    record.combine([sets, self._files.read_array(file, some.start, some.stop)])
                found[there] = record.finalize(sets)
        return found
