"""A batch of a level's patterns, aggregated over the partitions in phases that a cluster's workers do.

1. *rows*: how many mappings each rightmost extension has, over partitions; an array of numbers per answer, summed.
2. *candidates*: the coordinator chooses the extensions whose support is to be counted.
3. *sets*: what supports the candidates, over partitions; an array of bits per answer.
4. *supports*: over candidates; the sets of all partitions are united and counted.

Candidates are cut so that the sets of a cut take a bounded part of the disk.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.execution.thread_executor import Worker, ranges, run_tasks
from longwall.pipeline.run_store.array_files import read_array, write_array
from longwall.pipeline.run_store.commit_log import PartialResult, Phase, checkpoint_bytes
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.grown_patterns import GrownPatterns, joined
from longwall.pipeline.workloads.frequent.partition_worker import ArrayWorker
from longwall.pipeline.workloads.frequent.partitions import ConcatenatedRows, Partitions
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower, grown_sizes
from longwall.pipeline.workloads.frequent.plan import FrequentPlan

MANY = np.iinfo(np.int64).max
_SETS_BYTES = 1 << 28  # of the sets of a cut
_SETS_SHARE = 8  # of the coordinator's room, that they may take: workers may have a smaller budget
_TOGETHER = 8  # partitions
_PIECES = 64  # of a cut, whose supports are counted
_BLOCK_BYTES = 1 << 22  # of sets that are united at once
_BLOCK_COPIES = 3  # united, read, counted
_CANDIDATE_BYTES = 3 * 72  # of a candidate, as read, as numbers, and chosen from
_COLUMNS = 8  # numbers of a candidate: what it grows from and by, automorphisms, rows


class PatternBatch:
    """A batch of a level's patterns.

    Parameters
    ----------
    plan, context, growing, parts
        The run.
    patterns
        The level's.
    name
        Of the batch, for phases.
    first, last, num_extensions
        Its patterns, and the number of their rightmost extensions.
    """

    def __init__(
        self,
        plan: FrequentPlan,
        context: Environment,
        growing: PatternGrower,
        parts: Partitions,
        patterns: DfsPatterns,
        name: str,
        first: int,
        last: int,
        num_extensions: int,
    ):
        self._plan, self._context, self._growing, self._parts = plan, context, growing, parts
        self._patterns, self._name = patterns, name
        self._first, self._last, self._num_extensions = first, last, num_extensions
        self._supports: list[NDArray[np.int64]] = []

    def aggregate(self) -> None:
        """Go through the phases; what is in the journal is not done again."""
        rows = self._rows() if self._plan.exact else None
        self._candidates = self._begin("candidates", 1)
        if not self._candidates.complete:
            self._choose(rows)
        if rows is not None:
            self._remove(rows)
        self._columns: int = self._candidates.partials[0].value["columns"]
        for begin, end in self._candidates.partials[0].value["cuts"]:
            self._supports.append(self._count(begin, end))

    def frequent(self) -> GrownPatterns:
        """What is frequent of what the batch grows into; after `aggregate`."""
        size = self._candidates.partials[0].value["size"]
        with self._growing.pool.reserve(_CANDIDATE_BYTES * size, "candidates"):
            numbers = self._numbers(0, size)
            parents, edges, counts, rows = numbers[:, 0], numbers[:, 1:6].astype(np.int32), numbers[:, 6], numbers[:, 7]
            candidates = GrownPatterns(parents, edges, counts, rows, np.zeros(size, np.int64))
            supports = (
                None if self._plan.support == "instances" else np.concatenate([np.empty(0, np.int64), *self._supports])
            )
            return self._growing.frequent(self._patterns, candidates, supports)

    def done(self) -> None:
        """Remove what is read no more."""
        self._remove(self._candidates)

    def _begin(self, what: str, total: int) -> Phase:
        """Begin a phase; the disk's account has what an earlier attempt wrote."""
        phase = self._context.checkpoint.phase(f"{what} of {self._name}", total)
        if self._folder(phase).exists():
            self._context.checkpoint.reserve(phase, self._context.resources.disk)
        self._context.observer.phase(f"{what} of {self._name}", total, "parts")
        return phase

    def _folder(self, phase: Phase) -> Any:
        return self._context.checkpoint.folder / _folder_name(phase)

    def _remove(self, phase: Phase) -> None:
        """Remove the files of a phase."""
        if self._context.checkpoint.remove(self._folder(phase)):
            self._context.resources.disk.charge(-checkpoint_bytes(phase.files()), "")

    def _over_parts(self, phase: Phase, make_worker: Callable[[int], Worker]) -> None:
        run_tasks(
            self._context, phase, ranges(phase.total, phase.total), self._context.engine.workers, make_worker, kept=True
        )
        record_levels(self._context, phase.partials, {})

    def _rows(self) -> Phase:
        """Count the mappings of every extension."""
        phase = self._begin("rows", self._parts.number)
        batch, growing = self, self._growing

        class RowsWorker(ArrayWorker):
            def __init__(self, number: int):  # noqa: ARG002 - workers are alike
                super().__init__(batch._parts, batch._context, _folder_name(phase))

            def run(self, first: int, last: int) -> None:
                for table in [self._parts.table(part) for part in range(first, last)]:
                    found = self._begun((batch._num_extensions,), np.int64, "the counts of rightmost extensions")
                    at = 0
                    for _, extensions in growing.batches(batch._patterns, batch._first, batch._last):
                        found[at : at + extensions.total] += growing.stage.count(
                            table, extensions.growth, extensions.total
                        )
                        at += extensions.total

        self._over_parts(phase, RowsWorker)
        return phase

    def _choose(self, rows: Phase | None) -> None:
        """Choose the candidates, and say how their supports are counted."""
        growing, found, at = self._growing, [], 0
        for first, extensions in growing.batches(self._patterns, self._first, self._last, most=MANY):
            with growing.pool.reserve(16 * extensions.total, "the counts of rightmost extensions"):
                summed = None if rows is None else self._summed(rows, at, at + extensions.total)
                _, part = growing.candidates(extensions, summed)
            found.append(part._replace(parents=part.parents + first))
            at += extensions.total
        chosen = joined(found)
        numbers = np.empty((len(chosen.parents), _COLUMNS), np.int64)
        numbers[:, 0], numbers[:, 1:6], numbers[:, 6], numbers[:, 7] = chosen[:4]
        columns = growing.support.columns(grown_sizes(self._patterns, chosen.parents, chosen.edges))
        room = min(
            _SETS_BYTES, growing.room // _SETS_SHARE, self._context.resources.disk.free // (2 * self._parts.number)
        )
        step = max(room // (4 * columns * max(growing.support.words, 1)), 1)
        size = 0 if self._plan.support == "instances" else len(numbers)
        cuts = [(begin, min(begin + step, size)) for begin in range(0, size, step)]
        file = write_array(self._context, _folder_name(self._candidates), numbers.shape, np.int64, [numbers])
        self._candidates.commit(
            [(0, 1)], PartialResult({"size": len(numbers), "columns": columns, "cuts": cuts}, (file,))
        )

    def _summed(self, rows: Phase, begin: int, end: int) -> NDArray[np.int64]:
        found = np.zeros(end - begin, np.int64)
        for file in rows.files():
            found += read_array(self._context, file, begin, end)
        return found

    def _numbers(self, begin: int, end: int) -> NDArray[np.int64]:
        """Candidates `begin` to `end` - 1, int64[k, 8]: what each grows from and by, automorphisms, rows."""
        return read_array(self._context, self._candidates.files()[0], begin, end)

    def _count(self, begin: int, end: int) -> NDArray[np.int64]:
        """The supports of candidates `begin` to `end` - 1."""
        sets = self._mark(begin, end)
        phase = self._begin(f"supports {begin}", end - begin)
        batch, context = self, self._context

        class SupportsWorker(Worker):
            def __init__(self, number: int):  # noqa: ARG002 - workers are alike
                self._found: list[tuple[int, list[int]]] = []

            def run(self, first: int, last: int) -> None:
                self._found.append((first, batch._united(sets, begin, first, last).tolist()))

            def take(self) -> PartialResult:
                found, self._found = self._found, []
                return PartialResult(found)

            def close(self) -> None:
                pass

        values = run_tasks(context, phase, ranges(phase.total, _PIECES), context.engine.workers, SupportsWorker)
        self._remove(sets)
        supports = np.zeros(end - begin, np.int64)
        for first, some in (piece for value in values for piece in value):
            supports[first : first + len(some)] = some
        return supports

    def _mark(self, begin: int, end: int) -> Phase:
        """Mark what supports candidates `begin` to `end` - 1."""
        phase = self._begin(f"sets {begin}", self._parts.number)
        batch = self

        class SetsWorker(ArrayWorker):
            """Marks for several partitions at once: an image of all of them is looked at once."""

            def __init__(self, number: int):  # noqa: ARG002 - workers are alike
                super().__init__(batch._parts, batch._context, _folder_name(phase))
                self._waiting: list[int] = []

            def run(self, first: int, last: int) -> None:
                self._waiting += range(first, last)
                if len(self._waiting) >= _TOGETHER:
                    self._mark()

            def _mark(self) -> None:
                tables, self._waiting = ConcatenatedRows([self._parts.table(part) for part in self._waiting]), []
                shape = (end - begin, batch._columns, batch._growing.support.words)
                found = self._begun(shape, np.uint32, "the images of patterns")
                at = 0
                for some in batch._sets(tables, begin, end):
                    found[at : at + len(some)] |= some
                    at += len(some)

            def take(self) -> PartialResult:
                if self._waiting:
                    self._mark()
                return super().take()

        self._over_parts(phase, SetsWorker)
        return phase

    def _sets(self, tables: ConcatenatedRows, begin: int, end: int) -> Iterator[NDArray[np.uint32]]:
        """What of some tables supports candidates `begin` to `end` - 1."""
        numbers = self._numbers(begin, end)
        parents, edges = numbers[:, 0], numbers[:, 1:6].astype(np.int32)
        first, last = int(parents[0]), int(parents[-1]) + 1
        for number, extensions in self._growing.batches(self._patterns, first, last):
            low, high = np.searchsorted(parents, [number, number + len(extensions.patterns)]).tolist()
            if low < high:
                yield from self._growing.sets(
                    tables, extensions, parents[low:high] - number, edges[low:high], self._columns
                )

    def _united(self, sets: Phase, begin: int, first: int, last: int) -> NDArray[np.int64]:
        """The supports of candidates `begin` + `first` to `begin` + `last` - 1."""
        numbers, found = self._numbers(begin + first, begin + last), np.zeros(last - first, np.int64)
        sizes = grown_sizes(self._patterns, numbers[:, 0], numbers[:, 1:6])
        support = self._growing.support
        each = 4 * self._columns * support.words
        step = min(max(min(_BLOCK_BYTES, self._growing.room // _BLOCK_COPIES) // each, 1), last - first)
        with self._growing.pool.reserve(_BLOCK_COPIES * step * each, "the images of patterns"):
            for at in range(first, last, step):
                some = slice(at, min(at + step, last))
                united = np.zeros((some.stop - at, self._columns, support.words), np.uint32)
                for file in sets.files():
                    united |= read_array(self._context, file, some.start, some.stop)
                counts = np.bitwise_count(united).sum(axis=-1, dtype=np.int64)
                there = slice(at - first, some.stop - first)
                found[there] = support.least(counts, sizes[there])
        return found


def _folder_name(phase: Phase) -> str:
    return phase.name.split(" ", 1)[1].replace(",", "").replace(" ", "-")
