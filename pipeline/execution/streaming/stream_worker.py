"""A worker that counts at ranges of arcs of a graph that stays in its store, with all threads of the engine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from longwall.kernels.interface.engine import ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Worker
from longwall.pipeline.execution.streaming.part_sums import PartSums
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.range_counting import Counter, CountRanges
from longwall.storage.streaming.graph_parts import GraphPart, GraphParts
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.system.concurrency import map_all

_PIECES_PER_WORKER, _LEAST_PIECE = 32, 1 << 12  # of the roots of a part; arcs
_SHORTER, _LEAST_PART = 0.75, 1 << 10  # what becomes of a part where a workspace does not fit; bytes
_AT_ONCE = 4  # times that a part is shorter then, at most


class StreamWorker(Worker):
    """Counts part after part of the graph; the only worker of its phase.

    Parameters
    ----------
    env
        What the process works with; its graph is a `StoredGraph`.
    count
        The stage that counts.
    parts
        Makes the parts of the graph.
    sums
        Adds up what is found.
    take
        Makes a partial result of what `sums` has.
    memory
        Bytes for a part and for the workspaces, where the engine works.
    """

    def __init__(
        self,
        env: Environment,
        count: CountRanges,
        parts: GraphParts,
        sums: PartSums,
        take: Callable[[Any], PartialResult],
        memory: int,
    ):
        assert isinstance(env.graph, StoredGraph)
        self._env, self._count, self._parts, self._sums, self._take = env, count, parts, sums, take
        self._graph, self._engine = env.graph, env.engine
        self._memory = memory
        self._pool = ThreadPoolExecutor(env.engine.workers, thread_name_prefix="count")

    def run(self, first: int, last: int) -> None:
        """Count what belongs to a range of arcs of the data graph."""
        arcs = self._graph.oriented_arc(first), self._graph.oriented_arc(last)
        vertex = int(np.searchsorted(self._graph.starts, arcs[0], side="right")) - 1
        end = int(np.searchsorted(self._graph.starts, arcs[1], side="left"))
        while vertex < end and not self._done:
            vertex = self._count_window(vertex, arcs)

    def take_partial(self) -> PartialResult:
        """Return what was found since the last call, or all of it; see `PartSums`."""
        return self._take(self._sums.take())

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    @property
    def _done(self) -> bool:
        return self._env.cancel.is_set()

    def _count_window(self, first: int, arcs: tuple[int, int]) -> int:
        """Count what belongs to roots from `first` on; return the first one that has to wait."""
        parts, split = self._parts, self._count.splits
        while True:
            window = parts.window(first, arcs, self._count.smallest - 1, split=split)
            counted, part = False, None
            try:
                for part in parts.parts(window, split=split):
                    if self._done:
                        return window.last
                    self._count_part(part)
                    counted = True
                return window.last
            except (ShortOfMemory, WorkspaceTooLarge) as short:
                size = int(parts.size * _SHORTER)
                if isinstance(short, WorkspaceTooLarge):  # workspaces shrink with the part
                    size = max(min(size, self._memory - short.needed * self._engine.workers), parts.size // _AT_ONCE)
                if counted or size < _LEAST_PART:
                    raise
            part = None  # it is in the memory of all parts, which goes before there is new memory for smaller ones
            parts.resize(size)
            self._engine.memory.release()

    def _count_part(self, part: GraphPart) -> None:
        if part.first == part.last:
            return
        with self._engine.faults():
            graph = self._engine.load(part.graph)
        pieces = min(_PIECES_PER_WORKER * self._engine.workers, -(-(part.last - part.first) // _LEAST_PIECE))
        cuts = np.linspace(part.first, part.last, (pieces if self._engine.workers > 1 else 1) + 1).astype(int).tolist()
        counters: list[Counter] = []
        idle: list[Counter] = []

        def count(piece: int) -> None:
            if self._done:
                return
            with self._engine.faults():
                counter = idle.pop() if idle else self._new_counter(graph, counters)
                self._count.add_to(counter, cuts[piece], cuts[piece + 1], part.targets)
                idle.append(counter)

        map_all(self._pool, self._engine.workers, count, range(len(cuts) - 1))
        if self._done:
            return
        with self._engine.faults():
            chunk = self._count.aggregation.chunk
            self._sums.add(self._count.aggregation.combine([chunk(counter) for counter in counters]), part)

    def _new_counter(self, graph: GraphArrays, counters: list[Counter]) -> Counter:
        memory = (self._memory - self._parts.size) // self._engine.workers
        counter = self._count.counter(self._engine, graph, memory)
        counters.append(counter)
        return counter
