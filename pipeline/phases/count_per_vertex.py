"""Counts per vertex: every commit replaces a worker's file of counts; the files are added up in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MergingPhase
from longwall.pipeline.phases.range_count import RangePhase
from longwall.pipeline.run_store.commit_log import PartialResult, PhaseRecord
from longwall.pipeline.run_store.store import changed
from longwall.stages.range_counting import CountOfVertices, VertexCounts
from longwall.storage.graph.graph import Graph
from longwall.storage.hashed_file import file_sha256


@dataclass(frozen=True)
class CountPerVertex(RangePhase, MergingPhase):
    """Count something per vertex; the partial values of the stage are arrays in files, and values are 0."""

    count: CountOfVertices

    def take(self, env: Environment) -> Callable[[Any], PartialResult]:
        """See `RangePhase`; a file has all that the worker found, and replaces the one before."""
        before: list[dict[str, Any]] = []

        def take(counts: VertexCounts) -> PartialResult:
            file = self._write(env, counts)
            replaced = tuple(one["name"] for one in before)
            for one in before:
                env.resources.disk.charge(-one["stored"], "")  # the commit removes it
            before[:] = [file]
            return PartialResult(0, (file,), replaces=replaced)

        return take

    def merging_bytes(self, graph: Graph) -> int:
        """See `RangePhase`."""
        return 2 * 8 * self.count.places(graph.num_vertices)

    def merge(self, env: Environment, files: Sequence[dict[str, Any]]) -> PartialResult:
        """Add files of counts up into one."""
        with env.resources.host.reserve(self.merging_bytes(env.graph), "counts that are added up"):
            file = self._write(env, self._sum(env, files))
        return PartialResult(0, (file,), replaces=tuple(file["name"] for file in files))

    def counted(self, env: Coordinator) -> PhaseRecord:
        """Count, if there will be room for the counts; raises what `run` raises."""
        with env.resources.host.reserve(self.merging_bytes(env.graph), "the counts"):
            pass
        return env.run(self)

    @contextmanager
    def run(self, env: Coordinator, counted: PhaseRecord | None = None) -> Iterator[VertexCounts]:
        """Count, unless that is done, and have the counts while the block lasts; their memory is reserved.

        Yields
        ------
        int64[num_vertices] or int64[rows, num_vertices], or what else the stage has places for
            The result of the stage's aggregation.

        Raises
        ------
        FinalError
            If they do not fit 64-bit integers.
        BudgetExceeded
            If the host's budget has no room for them; mostly before anything is counted.
        """
        record = counted or self.counted(env)
        with env.resources.host.reserve(self.merging_bytes(env.graph), "the counts"):
            yield self.count.aggregation.finalize(self._sum(env, record.files()))

    def _write(self, env: Environment, counts: VertexCounts) -> dict[str, Any]:
        """Write a file of counts; return what a commit says of it. It must be there as long as the run goes on."""
        file = env.files.write_array(self.folder, counts.shape, counts.dtype, [counts])
        return file | {"bytes": file["stored"]}

    def _sum(self, env: Environment, files: Sequence[dict[str, Any]]) -> VertexCounts:
        """Add up files of counts; a graph without arcs has no task, and so no file."""
        total: VertexCounts | None = None
        for file in files:
            counts = _read(env, file)
            total = self.count.aggregation.combine([counts] if total is None else [total, counts])
            del counts
        return np.zeros(self.count.counts_shape(env.graph.num_vertices), np.int64) if total is None else total


def _read(env: Environment, file: dict[str, Any]) -> VertexCounts:
    with env.files.opened(file) as path:
        try:
            with path.open("rb") as opened:
                if file_sha256(opened) != file["sha256"]:
                    raise changed(str(path))
                opened.seek(0)
                counts: VertexCounts = np.load(opened)
        except (OSError, ValueError, EOFError):
            raise changed(str(path)) from None
    return counts
