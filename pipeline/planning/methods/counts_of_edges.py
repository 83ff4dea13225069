"""The triangles, 4-cliques or 4-cycles of each edge, for as many edges at a time as there is room for, in a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.local_counts import EdgeGraph, EdgeShape, edge_numbers
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.task_ranges import range_memory, sure_share, workspace_advice
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.count_per_edge import CountPerEdge
from longwall.pipeline.phases.edge_graph import edge_graph
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import INDUCED, Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query, Want
from longwall.stages.edge_counting import SHAPES, CountOfEdges
from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph

if TYPE_CHECKING:
    import pyarrow as pa

_WORK_SHARE, _HOST_SHARE = 2, 4  # what a worker's counts may take of its memory, and their sums of the host's
_MOST_PASSES = 256
_ROWS_AT_ONCE = 1 << 17  # that are written together
_ROW_BYTES = 64
_STEPS: dict[EdgeShape, float] = {"triangle": 0.25, "clique-4": 0.5, "cycle-4": 0.75}
"""Of an estimate, per unit of the sum of squared degrees."""


@dataclass(frozen=True)
class CountsOfEdgesPlan(CountPlan):
    """How many subgraphs of a shape contain each edge, in a table."""

    shape: EdgeShape

    def phase(self, first: int, number: int) -> CountPerEdge:
        """Return what counts them for a range of edges."""
        return CountPerEdge(CountOfEdges(self.shape, first, number), self.cost)

    @cached_property
    def _whole(self) -> CountPerEdge:
        return self.phase(0, 1)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts(f"{self.shape} of edges")

    def describe(self) -> str:
        """The plan as text."""
        return self._title() + self._whole.describe()

    def count(self, env: Coordinator) -> int:
        """Write the subgraphs of every edge to ``edges.parquet``; return how many there are.

        The columns are ``source`` and ``target``, ids of the input, and the count; edges are in the order of
        `longwall.Graph.to_arrow`.
        """
        import pyarrow as pa

        from longwall.storage.parquet_files import ParquetSink

        graph, total, began = env.graph, 0, time.perf_counter()
        column, edges_of_shape, _ = SHAPES[self.shape]
        ids = graph.ids_of(np.zeros(0, np.int64)).type
        schema = pa.schema([("source", ids), ("target", ids), (column, pa.int64())])
        host = env.resources.host
        rows = max(min(_ROWS_AT_ONCE, graph.num_edges, host.free // _HOST_SHARE // _ROW_BYTES), 1)
        with (
            host.reserve(8 * (graph.num_vertices + 1) + _ROW_BYTES * rows, "the rows of edges"),
            ParquetSink(env.results / "edges.parquet", schema) as sink,
        ):
            numbers = edge_numbers(graph.indptr, graph.split)
            for first, last in _pieces(env, self.shape):
                with self.phase(first, last - first).run(env) as counts:
                    for begin in range(first, last, rows):
                        some = counts[begin - first : begin - first + rows]
                        total += int(some.sum())
                        ends = _ends(graph, numbers, begin, begin + len(some))
                        sink.write(pa.table([*ends, pa.array(some)], schema=schema))
        found, rest = divmod(total, edges_of_shape)
        if rest:
            raise RunError(f"internal fault: {self.shape} was not found once at each of its edges")
        env.metrics.record("count", 2, len(graph.indices), found, time.perf_counter() - began)
        return found


class CountsOfEdges(Method):
    """Counts the triangles, 4-cliques or 4-cycles of each edge."""

    name: ClassVar[str] = "counts-of-edges"
    plain: ClassVar[bool] = True
    wants: ClassVar[tuple[Want, ...]] = ("per_edge",)

    def lacks(self, query: Query) -> Refusal | None:
        """Return the refusal of a pattern that is counted at no edge, too."""
        if (refusal := super().lacks(query)) is not None:
            return refusal
        if query.induced and not query.pattern.is_clique:
            return INDUCED
        if _edge_shape(query.pattern) is None:
            return Refusal("the pattern is neither a triangle, a 4-clique nor a 4-cycle")
        return None

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the kernel of the shape."""
        shape = _edge_shape(query.pattern)
        assert shape is not None, "see `lacks`"
        return CountsOfEdgesPlan(query.pattern, _STEPS[shape] * facts.stats.sum_degree_squared, shape, method=self.name)


def _edge_shape(pattern: Pattern) -> EdgeShape | None:
    """Return which shape an unlabelled pattern is, if it is one that is counted at every edge."""
    if pattern.is_clique and pattern.num_vertices in (3, 4):
        return "triangle" if pattern.num_vertices == 3 else "clique-4"
    square = pattern.num_vertices == 4 and all(len(near) == 2 for near in pattern.neighbours)
    return "cycle-4" if square else None


def _pieces(env: Coordinator, shape: EdgeShape) -> Iterator[tuple[int, int]]:
    """Yield the ranges of edges that are counted at a time; every one takes as long as all."""
    graph, edges = edge_graph(env), env.graph.num_edges  # what it takes is no longer free
    memory = range_memory(env, CountOfEdges.source)
    capacity = min(memory // _WORK_SHARE, env.resources.host.free // _HOST_SHARE)
    if not env.resources.on_device:  # where each worker has counts of its own
        capacity = min(capacity, _counts_capacity(env, graph, shape, sure_share(env, memory)))
    number = -(-edges // max(capacity // 8, 1))
    ends = np.linspace(0, edges, number + 1).astype(np.int64).tolist()
    yield from pairwise(ends)


def _counts_capacity(env: Coordinator, graph: EdgeGraph, shape: EdgeShape, share: int) -> int:
    """Return what a worker's share leaves for its counts, so that there are not too many passes."""
    least = -(-8 * env.graph.num_edges // _MOST_PASSES)
    try:
        return share - CountOfEdges(shape, 0, 0).counter(env.engine, graph, share - least).workspace_bytes
    except WorkspaceTooLarge as error:
        short = WorkspaceTooLarge(error.needed + least)
        short.advice = workspace_advice(env, short.needed, 1 - 1 / _HOST_SHARE)
        raise short from error


def _ends(graph: Graph, numbers: NDArray[np.int64], first: int, last: int) -> tuple[pa.Array, pa.Array]:
    """Return the ids of both ends of the edges `first` to `last` - 1."""
    begin, end = int(np.searchsorted(numbers, first, "right")) - 1, int(np.searchsorted(numbers, last))
    bounds = np.clip(numbers[begin : end + 1], first, last)
    owners = np.repeat(np.arange(begin, end), bounds[1:] - bounds[:-1])
    arcs = np.arange(first, last) - numbers[owners] + graph.indptr[owners]
    return graph.ids_of(owners), graph.ids_of(graph.indices[arcs])
