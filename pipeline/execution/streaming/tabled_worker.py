"""A worker that keeps tables of ranges of vertices on a device, while the lists of their neighbours pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from longwall.kernels.interface.engine import ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.kcliques import TabledCliqueCounter
from longwall.kernels.interface.workspaces import Targets
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.streaming.part_sums import PartSums
from longwall.pipeline.execution.streaming.stream_worker import StreamWorker
from longwall.pipeline.execution.streaming.tabled_ways import enough_memory
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.range_counting import CountCliques
from longwall.storage.streaming.graph_parts import GraphPart, GraphParts
from longwall.storage.streaming.list_capacity import ListRoom
from longwall.storage.streaming.table_ranges import range_end

_SLACK = 1 << 16  # bytes of a device that arrays take besides, for being many


class TabledWorker(StreamWorker):
    """Counts range after range of the graph's vertices; where its tables find no room, part after part.

    Parameters
    ----------
    env, sums, take, memory
        See `StreamWorker`.
    count
        The stage that counts.
    parts
        Makes the parts of the graph: as large as those are that one range is joined with.
    whole
        Bytes of a part where tables find no room.
    """

    _count: CountCliques

    def __init__(
        self,
        env: Environment,
        count: CountCliques,
        parts: GraphParts,
        sums: PartSums,
        take: Callable[[Any], PartialResult],
        memory: int,
        whole: int,
    ):
        super().__init__(env, count, parts, sums, take, memory)
        self._whole = whole
        self._capacity: ListRoom | None = None
        self._counter: TabledCliqueCounter | None = None
        with suppress(ShortOfMemory, WorkspaceTooLarge), self._engine.faults():
            self._make_room()
        if self._counter is None:
            self._give_up()

    def _make_room(self) -> None:
        graph, engine, parts = self._graph, self._engine, self._parts
        self._capacity = capacity = ListRoom(engine, graph.num_vertices, parts.size, graph.stats.max_out_degree)
        # Counting takes half a byte for each arc of a range besides; see `heavy_tasks`.
        left = self._memory - capacity.nbytes - parts.size // 8 - _SLACK
        if left <= 0:
            raise WorkspaceTooLarge(-left)
        self._counter = self._count.tabled_counter(engine, capacity.graph, min(left, enough_memory(graph, self._count)))

    def _give_up(self) -> None:
        """Count part after part from now on."""
        self._capacity = self._counter = None
        self._engine.memory.release()
        self._parts.resize(self._whole)

    def _count_window(self, first: int, arcs: tuple[int, int]) -> int:
        if self._capacity is None or self._counter is None:
            return super()._count_window(first, arcs)
        with suppress(ShortOfMemory, WorkspaceTooLarge), self._engine.faults():
            return self._count_range(first, arcs, self._capacity, self._counter)
        self._give_up()  # nothing was added of this range
        return first

    def _count_range(self, first: int, arcs: tuple[int, int], capacity: ListRoom, counter: TabledCliqueCounter) -> int:
        """Count what belongs to roots from `first` on; return the first one that has to wait."""
        starts, parts = self._graph.starts, self._parts
        first = int(np.searchsorted(starts, starts[first], side="right")) - 1  # those before have no lists
        last = int(np.searchsorted(starts, arcs[1], side="left"))
        end = range_end(starts, first, last, counter.least_degree, counter.table_capacity)
        some = arcs[0], min(arcs[1], int(starts[end]))
        window = parts.window(first, some, counter.least_degree, split=True)
        blocks = parts.parts(window, split=True)
        part = next(blocks)
        if part.first == part.last:
            return window.last
        shift = capacity.bring(part)
        found = counter.count(part.first + shift, part.last + shift, self._targets(part, blocks, capacity))
        if not self._done:
            self._sums.add(self._count.aggregation.combine([found]), part)
        return window.last

    def _targets(self, part: GraphPart, blocks: Iterator[GraphPart], capacity: ListRoom) -> Iterator[Targets | None]:
        """Bring the other blocks, each when the one before was read; yield the vertices whose lists are there."""
        yield part.targets
        for block in blocks:
            if self._done:
                return
            capacity.bring(block, block.roots)
            yield block.targets
