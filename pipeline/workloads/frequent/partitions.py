"""Partitions of the embeddings, as a process of the run has them, and what all phases over partitions share.

The first level's vertices are cut into partitions; a partition's table has the embeddings that grew from its vertices.
It is grown in the process that was asked for it last, from level to level, or anew from its vertices where that process
has nothing of it.
"""

import threading
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from longwall.pipeline.execution.derived import Derivation, derived
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task, Worker, equal_tasks
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.stages.stage_timer import StageTimer
from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import Reservation
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import EmbeddingTable

PARTS = "parts"
"""The unit of progress."""
_making = threading.Lock()


@dataclass(frozen=True)
class Lineage:
    """What the partitions of a level are grown from, in any process.

    Attributes
    ----------
    plan
        The run's.
    partitions
        Their number.
    levels
        The frequent patterns of one edge, of two, and so on: arrays of the checkpoint, as commits name them.
    """

    plan: FrequentPlan
    partitions: int
    levels: tuple[dict[str, Any], ...] = ()

    def followed_by(self, level: dict[str, Any]) -> "Lineage":
        """The lineage of the next level, whose frequent patterns are in a file."""
        return replace(self, levels=(*self.levels, level))


class Partitions:
    """The partitions as this process has them.

    Parameters
    ----------
    env
        What the process works with.
    lineage
        Of any level.

    Attributes
    ----------
    grower
        Grows them; its edge types are those of the levels that were read.
    lock
        Held by the one thread that works with the tables: it has all threads of the engine.
    timer
        What their growth took, per level.
    """

    def __init__(self, env: Environment, lineage: Lineage):
        self._files, self._number = env.files, lineage.partitions
        self.grower = PatternGrower(lineage.plan, env)
        self._levels: list[tuple[DfsPatterns, FrequentPatterns]] = []
        self._of_levels = self.grower.pool.reserve(0, "")
        self._tables: dict[int, tuple[int, ChunkedTable]] = {}  # with the edges of their patterns
        self.lock = threading.Lock()
        self.timer = StageTimer()

    @property
    def patterns(self) -> DfsPatterns:
        """The patterns of the level that was read last."""
        return self.found.patterns if self._levels else self.grower.roots

    @property
    def found(self) -> FrequentPatterns:
        """The same with their figures; there is a level."""
        return self._levels[-1][1]

    def follow(self, lineage: Lineage) -> DfsPatterns:
        """Read the levels that this process does not know yet; tables grow when they are asked for.

        To be called with the lock.

        Returns
        -------
        DfsPatterns
            The patterns of the last level.

        Raises
        ------
        RunError
            If the run has gone on to a later level.
        """
        if len(lineage.levels) < len(self._levels):
            raise RunError("the level is finished: this task came too late")
        for file in lineage.levels[len(self._levels) :]:
            for part, (level, table) in list(self._tables.items()):
                if level < len(self._levels):  # another process was asked for it
                    table.drop()
                    del self._tables[part]
            patterns = self.patterns
            found, reserved = self.grower.read_level(self._files, patterns, file)
            self._of_levels.join(reserved)
            if not self._levels:
                self.grower.leave_out_rare(found)
            self._levels.append((patterns, found))
        return self.patterns

    def close(self) -> None:
        """Drop all tables, and what grows them."""
        self.forget()
        self._of_levels.release()
        self.grower.close()

    def forget(self) -> None:
        """Drop all tables."""
        for _, table in self._tables.values():
            table.drop()
        self._tables.clear()

    def table(self, part: int) -> ChunkedTable:
        """Return a partition's embeddings of the patterns of the last level."""
        _ = self.grower.stage  # before there are tables: the graph does not make them spill
        level, table = self._tables.get(part) or (0, self.grower.vertices(part, self._number))
        self._tables[part] = level, table
        for patterns, found in self._levels[level:]:
            level += 1
            with self.timer.time(level) as sample:
                grown = self.grower.grown(patterns, table, found)
                sample.rows_in, sample.rows_out, sample.size = len(table), len(grown), grown.nbytes
            table.drop()
            table = grown
            self._tables[part] = level, table
        return table


@dataclass(frozen=True)
class PartitionsFrom(Derivation[Partitions]):
    """The partitions of this process; they grow from level to level, independent of the lineage it began with."""

    optional: ClassVar[bool] = False

    lineage: Lineage = field(compare=False)

    def build(self, env: Environment) -> Partitions:
        """Make the partitions; their tables are made on demand."""
        return Partitions(env, self.lineage)


def partitions_of(env: Environment, lineage: Lineage) -> Partitions:
    """Return the partitions that this process keeps from phase to phase; several workers ask at a time."""
    with _making:
        return derived(env, PartitionsFrom(lineage))


class ConcatenatedRows:
    """The rows of some tables; see :class:`longwall.stages.extension.pattern_rows.Rows`."""

    def __init__(self, tables: Sequence[ChunkedTable]):
        self._tables = tables
        self.num_levels = tables[0].num_levels

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def stream(self) -> Generator[EmbeddingTable, None, None]:
        """All rows, chunk by chunk."""
        for table in self._tables:
            yield from table.stream()


@dataclass(frozen=True)
class PartitionPhase(Phase):
    """A phase whose roots are the partitions of a level.

    Attributes
    ----------
    lineage
        The level's.
    """

    sticky: ClassVar[bool] = True

    lineage: Lineage
    unit = PARTS

    def tasks(self, env: Environment) -> Sequence[Task]:  # noqa: ARG002 - the same in every process
        """Return a task for every partition."""
        return equal_tasks(self.lineage.partitions, self.lineage.partitions)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve nothing: tables are in the process's budget, and one worker at a time has them."""
        parts = partitions_of(env, self.lineage)
        yield lambda: self.worker(env, parts)

    @abstractmethod
    def worker(self, env: Environment, parts: Partitions) -> Worker:
        """Make a worker on the partitions of this process."""


class PartitionWorker(Worker):
    """A worker that has the partitions of this process for itself.

    Parameters
    ----------
    parts
        The partitions.
    lineage
        Of the level that is worked at.

    Attributes
    ----------
    parts
        See above.
    patterns
        The level's.
    """

    def __init__(self, parts: Partitions, lineage: Lineage):
        parts.lock.acquire()
        try:
            self.parts, self.patterns = parts, parts.follow(lineage)
        except BaseException:
            parts.lock.release()
            raise

    def close(self) -> None:
        """Let other workers have them."""
        self.parts.lock.release()


class ArrayWorker(PartitionWorker):
    """A worker whose result is one array for all partitions of its tasks: a file of the checkpoint.

    Parameters
    ----------
    env
        What the process works with.
    parts
        Its partitions.
    phase
        What is done.
    """

    def __init__(self, env: Environment, parts: Partitions, phase: PartitionPhase):
        super().__init__(parts, phase.lineage)
        self._files, self._folder = env.files, phase.folder
        self._memory: Reservation | None = None
        self._found: NDArray[Any] = np.empty(0)

    def array(self, shape: tuple[int, ...], dtype: DTypeLike, what: str) -> NDArray[Any]:
        """Return the result so far, zeros in the beginning; tables make room for it."""
        if self._memory is None:
            self._memory = self.parts.grower.pool.reserve(np.dtype(dtype).itemsize * int(np.prod(shape)), what)
            self._found = np.zeros(shape, dtype)
        return self._found

    def take_partial(self) -> PartialResult:
        """Write the array."""
        file = self._files.write_array(self._folder, self._found.shape, self._found.dtype, [self._found])
        self._drop()
        return PartialResult(0, (file,), self.parts.timer.take())

    def close(self) -> None:
        """Drop what was not taken, and let other workers have the partitions."""
        self._drop()
        super().close()

    def _drop(self) -> None:
        self._found = np.empty(0)
        if self._memory is not None:
            self._memory.release()
            self._memory = None
