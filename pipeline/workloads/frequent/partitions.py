"""Tables of embeddings of the partitions that a process was asked for.

The first level's vertices are cut into partitions; a partition's table has the embeddings that grew from its vertices.
It is grown in the process that was asked for it last, from level to level, or anew from its vertices where that process
has nothing of it.
"""

import threading
from collections.abc import Iterator, Sequence

from longwall.pipeline.execution.stage_metrics import StageTimer
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import EmbeddingTable


class Partitions:
    """The partitions as this process has them.

    Parameters
    ----------
    growing
        Grows them.
    number
        Of partitions.

    Attributes
    ----------
    lock
        Held by the one thread that works with the tables: it has all threads of the engine.
    pool
        Where they are.
    meter
        What their growth took, per level.
    """

    def __init__(self, growing: PatternGrower, number: int):
        self._growing, self.number, self.pool = growing, number, growing.pool
        self._levels: list[tuple[DfsPatterns, FrequentPatterns]] = []
        self._tables: dict[int, tuple[int, ChunkedTable]] = {}  # with the edges of their patterns
        self.lock = threading.Lock()
        self.meter = StageTimer()

    def follow(self, patterns: DfsPatterns, found: FrequentPatterns) -> None:
        """Take note of what a level grows into; tables grow when they are asked for."""
        for part, (level, table) in list(self._tables.items()):
            if level < len(self._levels):  # another process was asked for it
                table.drop()
                del self._tables[part]
        self._levels.append((patterns, found))

    def close(self) -> None:
        """Let go of all tables."""
        for _, table in self._tables.values():
            table.drop()
        self._tables.clear()

    def table(self, part: int) -> ChunkedTable:
        """A partition's embeddings of the patterns that were found last."""
        _ = self._growing.stage  # before there are tables: the graph does not make them spill
        level, table = self._tables.get(part) or (0, self._growing.vertices(part, self.number))
        self._tables[part] = level, table
        for patterns, found in self._levels[level:]:
            level += 1
            with self.meter.time(level) as reading:
                grown = self._growing.grown(patterns, table, found)
                reading.rows_in, reading.rows_out, reading.size = len(table), len(grown), grown.nbytes
            table.drop()
            table = grown
            self._tables[part] = level, table
        return table


class ConcatenatedRows:
    """The rows of some tables; see :class:`longwall.stages.extension.grow_patterns.Rows`."""

    def __init__(self, tables: Sequence[ChunkedTable]):
        self._tables = tables
        self.num_levels = tables[0].num_levels

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def stream(self) -> Iterator[EmbeddingTable]:
        """All rows, chunk by chunk."""
        for table in self._tables:
            yield from table.stream()
