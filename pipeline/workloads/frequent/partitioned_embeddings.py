"""The embeddings of a level of frequent patterns in partitions, wherever the tasks of a run are done.

Partial aggregates are files of the checkpoint, and any worker reduces them; partitions stay where they are.
"""

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.execution.thread_executor import ranges, run_tasks
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.embedding_files import LevelWriter, level_prefix
from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns, GrownPatterns
from longwall.pipeline.workloads.frequent.partition_worker import PartitionWorker
from longwall.pipeline.workloads.frequent.partitions import Partitions
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.pipeline.workloads.frequent.support_phases import MANY, PatternBatch

_PARTITIONS = 64  # a run has as many to its end, wherever it goes on


class PartitionedEmbeddings:
    """See :class:`longwall.pipeline.workloads.frequent.levels.Embeddings`.

    Parameters
    ----------
    plan, context, growing
        The run, and what grows the partitions that this process is asked for.
    """

    def __init__(self, plan: FrequentPlan, context: Environment, growing: PatternGrower):
        self._plan, self._context, self._growing = plan, context, growing
        phase = context.checkpoint.phase("partitions", 1)
        if not phase.complete:
            phase.commit([(0, 1)], PartialResult(min(_PARTITIONS, context.graph.num_vertices)))
        self._parts = Partitions(growing, phase.partials[0].value)
        self._batches: list[PatternBatch] = []

    def prepare(self, patterns: DfsPatterns, rows: int) -> None:
        """Aggregate the level, batch by batch."""
        plan, growing = self._plan, self._growing
        if plan.exact:
            growing.require_countable(rows)
        edges = f"{patterns.num_edges + 1} edges"
        phase = self._context.checkpoint.phase(f"batches of {edges}", 1)
        if not phase.complete:
            extensions = growing.batches(patterns, most=MANY)
            cuts = [(first, first + len(batch.patterns), batch.total) for first, batch in extensions]
            phase.commit([(0, 1)], PartialResult(cuts))
        self._batches = [
            PatternBatch(plan, self._context, growing, self._parts, patterns, f"{edges}, batch {number}", *cut)
            for number, cut in enumerate(phase.partials[0].value)
        ]
        for batch in self._batches:
            batch.aggregate()

    def frequent(self, patterns: DfsPatterns) -> list[GrownPatterns]:  # noqa: ARG002 - the batches have them
        """What is frequent of every batch."""
        return [batch.frequent() for batch in self._batches]

    def close(self) -> None:
        """Let go of the tables."""
        self._parts.close()

    def done(self) -> None:
        """Remove what is left of the level in the checkpoint."""
        for batch in self._batches:
            batch.done()

    def grow(self, patterns: DfsPatterns, found: FrequentPatterns) -> None:
        """Partitions grow when they are asked for."""
        self._parts.follow(patterns, found)

    def export(self, found: FrequentPatterns, numbers: NDArray[np.int64]) -> int:
        """Write the partitions to files ``embeddings-<edges>-<number>.parquet``."""
        plan, context, growing, parts = self._plan, self._context, self._growing, self._parts
        prefix = f"results.partial/{level_prefix(found)}"
        phase = context.checkpoint.phase(f"embeddings of {found.patterns.num_edges} edges", parts.number)
        context.observer.phase("writing embeddings", phase.total, "parts")

        class ExportWorker(PartitionWorker):
            def __init__(self, number: int):  # noqa: ARG002 - workers are alike
                super().__init__(parts)
                self._writer: LevelWriter | None = None
                self._rows = 0

            def run(self, first: int, last: int) -> None:
                for part in range(first, last):
                    table = parts.table(part)
                    if self._writer is None:
                        self._writer = LevelWriter(
                            lambda: context.checkpoint.next_number(prefix), found, numbers, plan, context, growing
                        )
                    self._rows += self._writer.write(table)

            def take(self) -> PartialResult:
                assert self._writer is not None
                rows, self._rows = self._rows, 0
                files = tuple(file | {"name": f"results.partial/{file['name']}"} for file in self._writer.take())
                self._let_go()
                return PartialResult(rows, files, parts.meter.take())

            def _let_go(self) -> None:
                """Give the writer's memory back: tables of other partitions may need it."""
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None

            def close(self) -> None:
                try:
                    self._let_go()
                finally:
                    super().close()

        tasks = ranges(phase.total, phase.total)
        rows: int = sum(run_tasks(context, phase, tasks, context.engine.workers, ExportWorker, kept=True))
        record_levels(context, phase.partials, {})
        return rows
