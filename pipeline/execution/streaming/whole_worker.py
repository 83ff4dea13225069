"""A worker that counts on a device which holds all lists of smaller neighbours, though the host does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, make_workspace
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Worker
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.range_counting import CountRanges
from longwall.storage.streaming.graph_parts import ARC_BYTES
from longwall.storage.streaming.list_file import ListFile
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.system.concurrency import core_count, map_ordered

_START_BYTES = 8  # where the list of a vertex begins


def lists_bytes(graph: StoredGraph) -> int:
    """Return what all lists of smaller neighbours of a graph take on a device."""
    return ARC_BYTES * graph.num_edges + _START_BYTES * (graph.num_vertices + 1)


class WholeWorker(Worker):
    """Brings all lists to the device, segment by segment, and counts there; the only worker of its phase.

    Parameters
    ----------
    env
        What the process works with; its graph is a `StoredGraph`.
    count
        The stage that counts, one value for the whole graph.
    lists
        The lists. One more segment of them than there are cores is in memory at a time.
    take
        Makes a partial result of what was found.
    memory
        Bytes of the device for the lists and for the workspace.
    """

    def __init__(
        self,
        env: Environment,
        count: CountRanges,
        lists: ListFile,
        take: Callable[[Any], PartialResult],
        memory: int,
    ):
        assert isinstance(env.graph, StoredGraph)
        self._env, self._count, self._take = env, count, take
        self._stored, self._engine = env.graph, env.engine
        with self._engine.faults():
            graph = self._brought(lists)
        left = memory - lists_bytes(self._stored)
        self._counter: Any = make_workspace(self._engine, left, partial(count.counter, self._engine, graph))
        self._batch = AdaptiveBatch(self._engine)

    def run(self, first: int, last: int) -> None:
        """Count what belongs to a range of arcs of the data graph, in parts where memory is short."""
        begin, end = self._stored.oriented_arc(first), self._stored.oriented_arc(last)
        while begin < end and not self._env.cancel.is_set():
            begin = self._batch.run(end - begin, partial(self._add, begin), lambda _: False)

    def take_partial(self) -> PartialResult:
        """Return what was found since the last call."""
        return self._take(self._count.aggregation.chunk(self._counter))

    def close(self) -> None:
        """Release what is on the device."""
        self._counter = None

    def _add(self, first: int, size: int) -> int:
        self._count.add_to(self._counter, first, first + size, None)
        return first + size

    def _brought(self, lists: ListFile) -> GraphArrays:
        graph, engine, xp = self._stored, self._engine, self._engine.xp
        starts, arcs = xp.empty(graph.num_vertices + 1, xp.int64), xp.empty(graph.num_edges, xp.uint32)
        engine.memory.fill(starts, graph.starts)
        at, longest = 0, lists.longest

        def read(segment: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
            if self._env.cancel.is_set():
                raise KeyboardInterrupt
            return lists.read(segment, np.empty(longest, np.uint32))

        for some in map_ordered(read, range(lists.segments), core_count()):
            engine.memory.fill(arcs[at : at + some.size], some)
            at += some.size
            lists.bytes_read += some.nbytes
        out = graph.stats.max_out_degree
        return GraphArrays(starts, arcs, starts[1:], xp.zeros(1, xp.int32), out, out, oriented=True)
