"""Tasks over ranges of roots, which are arcs or vertices, for kernels that count on their own."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Task, equal_tasks
from longwall.stages.counting import arc_reads
from longwall.storage.pages.paged_graph import state_bytes

_STEPS_PER_TASK, _MOST_TASKS = 1e11, 256  # about a second of a GPU: a task that is cut short is lost
_READ_BYTES = 64  # of an arc in a list of what is read
_READS_SHARE = 2  # the part of the memory that such lists may take


def pieces_of(env: Environment, cost: float) -> int:
    """Return into how many tasks work over all arcs should be cut: what the engine wants, more where it is long."""
    return max(env.engine.tasks(2 * env.graph.num_edges), min(int(cost / _STEPS_PER_TASK), _MOST_TASKS))


def range_reads(tasks: Sequence[Task], graph: GraphArrays) -> int:
    """Return the bytes that it may take to list what ranges of arcs read, and to choose the pages for it."""
    return _READ_BYTES * max(task.last - task.first for task in tasks) + state_bytes(graph.num_arcs)


def range_memory(env: Environment) -> int:
    """Return the bytes of the workspace of a worker whose kernel goes over ranges of roots."""
    graph, memory = load_graph(env)
    return memory // env.engine.workers // (1 if graph.pages is None else 2)


def prepare_range(
    env: Environment, first: int, last: int, part: NeighbourRange, *, vertices: bool = False, copies: bool = False
) -> None:
    """Prepare the pages that a kernel reads for a range of arcs, or of vertices; see `arc_reads`.

    With `copies`, for kernels that look for them, the hottest pages are copied to the device. Where there is no memory
    to look at what is read, all stays as it is.
    """
    graph, _ = load_graph(env)
    if graph.pages is not None:
        if vertices:
            first, last = (int(env.graph.indptr[vertex]) for vertex in (first, last))
        with suppress(ShortOfMemory), env.engine.faults():
            look = graph.pages.prepare if copies else graph.pages.touch
            look(1, list(arc_reads(graph, first, last, part, env.engine.xp)))


def arc_tasks(env: Environment, cost: float) -> list[Task]:
    """Return tasks over the arcs."""
    graph, memory = load_graph(env)
    pieces = pieces_of(env, cost)
    if graph.pages is not None:  # what a range reads is listed before
        pieces = max(pieces, -(-graph.num_arcs * _READ_BYTES // (memory // _READS_SHARE)))
    return equal_tasks(graph.num_arcs, pieces)


def vertex_tasks(env: Environment, cost: float) -> list[Task]:
    """Return tasks over the vertices, cut so that each has about as many arcs as the others."""
    ends = np.searchsorted(env.graph.indptr, [task.last for task in arc_tasks(env, cost)], side="left")
    cuts = np.unique(np.concatenate([[0], ends, [env.graph.num_vertices]])).tolist()
    arcs = env.graph.indptr[cuts].tolist()
    return [Task(*ends, b - a) for ends, (a, b) in zip(pairwise(cuts), pairwise(arcs), strict=True)]
