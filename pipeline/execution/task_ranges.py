"""Tasks over ranges of roots, which are arcs or vertices, for kernels that count on their own."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.device_graph import loaded_graph, reads_known
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Task, equal_tasks
from longwall.stages.source import ALL_ARCS, Scan
from longwall.storage.memory.sizes import size_from
from longwall.storage.pages.paged_graph import state_bytes

_STEPS_PER_TASK, _MOST_TASKS = 1e11, 256  # about a second of a GPU: a task that is cut short is lost
_STREAMED_STEPS = 3e12  # the same, where lists of smaller neighbours are looked up
# The same, where sets grow by `_GROWTH` vertices or more: the estimates of such work are too low at hubs.
_GROWN_STEPS, _GROWTH = 1e9, 4
# A task takes about 40 us of Python besides its work, and only one thread at a time runs Python. So it has this many
# arcs or, if more work is estimated, this many steps; but each worker has some tasks, unless they have only a few arcs,
# since those of hubs take longer.
_ARCS_PER_TASK, _LEAST_STEPS, _LEAST_ARCS, _PER_WORKER = 1 << 14, 1e7, 1 << 8, 8
# A listing task takes 1 ms of Python besides its work, and only one thread at a time runs Python. So a task has this
# many steps, about 40 ms, but each worker has at least this many tasks, since tasks of hubs take longer.
_LISTED_STEPS, _LISTED_PER_WORKER = 1e8, 4
_BRIEF_STEPS, _BRIEF_STEPS_OF_DEVICE = 1e7, 1e10  # about 0.1 s at most
_READ_BYTES = 64  # of an arc in a list of what is read
_WORK_BYTES = 1  # of an arc of a list of the tasks of blocks
# The part of the memory that lists of tasks may take, with what a pool cannot join of it; twice as much where blocks
# are as long as there is room for, and half where there are no lists.
_WORK_SHARE = 10
_READS_SHARE = 2  # the part of the memory that lists of what is read may take
_PAGED_SHARE = 0.5  # of the memory, that a workspace may take beside pages that are not copied
_OVERLAPPED_BYTES = 1 << 30  # of a device, at least, for two workers: one makes better use of less
_LEAST_TASKS = 4  # of a phase that may bring the graph anew for each, so that some of it is committed on the way
_BIN, _BIN_BYTES = 16, 16  # arcs that are weighed together, or more where memory is short; and what each bin takes
_ARCS_AT_ONCE = 1 << 18
_ARC_BYTES = 64  # of the arrays that weigh one
_WEIGHTS_SHARE = 8  # of the host's memory that is free, for bins, and again for arcs


def pieces_of(env: Environment, cost: float) -> int:
    """Return into how many tasks work over all arcs should be cut: what the engine wants, more where it is long."""
    return max(env.engine.tasks(2 * env.graph.num_edges), min(int(cost / _STEPS_PER_TASK), _MOST_TASKS))


def is_brief(env: Environment, cost: float) -> bool:
    """Return whether work of an estimated number of steps takes at most about a tenth of a second."""
    return cost <= (_BRIEF_STEPS_OF_DEVICE if env.resources.on_device else _BRIEF_STEPS)


def listed_pieces(env: Environment, cost: float) -> int:
    """Return into how many tasks a listing should be cut."""
    return min(pieces_of(env, cost), max(int(cost / _LISTED_STEPS), _LISTED_PER_WORKER * env.engine.workers))


def range_reads(env: Environment, roots: Scan, tasks: Sequence[Task], graph: GraphArrays) -> int:
    """Return the bytes that it may take to list what ranges of arcs read, and to choose the pages for it."""
    longest = max(task.last - task.first for task in tasks)
    if roots.streams or reads_known(env):
        # A longer range is cut where memory is short, and by the room for pages where it is brought block by block.
        most = env.resources.work.free // _WORK_SHARE
        lists = 2 * most if roots.streams else min(_WORK_BYTES * longest, most) if roots.lists_tasks else most // 2
    else:
        lists = _READ_BYTES * longest
    return lists + state_bytes(graph.num_arcs)


def range_memory(env: Environment, roots: Scan) -> int:
    """Return the bytes of the workspace of a worker whose kernel goes over ranges of roots of the loaded graph."""
    graph, memory = loaded_graph(env), env.resources.work.free
    share = 1.0 if graph.pages is None else roots.share if graph.pages.staged else _PAGED_SHARE
    return int(share * memory) // env.engine.workers


def may_overlap(env: Environment) -> bool:
    """Return whether two workers may share a device: it holds the graph, has room for both, and has several tasks."""
    resources = env.resources
    if not resources.on_device or loaded_graph(env).pages is not None:
        return False
    return resources.work.free >= _OVERLAPPED_BYTES and env.engine.tasks(2 * env.graph.num_edges) > 1


def sure_share(env: Environment, memory: int) -> int:
    """Return the bytes that every worker can have, where `memory` is the `range_memory` before the first is made.

    Workers are made one after the other, and each has its share of what those before have left.
    """
    workers = env.engine.workers
    return memory * workers // (2 * workers - 1)


def workspace_advice(env: Environment, needed: int, share: float = 1.0) -> str:
    """Return what the user can do if a worker needs more bytes than are free.

    Parameters
    ----------
    env
        What the process works with.
    needed
        Bytes of the workspace.
    share
        Of more memory, the part that workers would have.
    """
    work, workers = env.resources.work, env.engine.workers
    more = (2 * workers - 1) * (needed + workers) - work.free
    enough = size_from(work.limit + max(int(more / share), 0) + 1)
    return f"raise {work.option} to {enough}" + (", or lower engine.threads" if workers > 1 else "")


def root_tasks(env: Environment, roots: Scan, cost: float) -> list[Task]:
    """Return tasks over the roots of a source, cut by arcs or, if their work differs much, by estimates of it.

    The graph is on the engine; what the estimates take of the host is free again afterwards.
    """
    arcs = _arc_tasks(env, roots, cost)
    if roots.kind == "vertices" and len(arcs) == 1:
        return [Task(0, env.graph.num_vertices, arcs[0].size)]
    if roots.kind == "vertices":
        return _vertex_tasks(env, arcs)
    return _weighed_tasks(env, arcs, roots.growth) if roots.growth and len(arcs) > 1 else arcs


def _arc_tasks(env: Environment, roots: Scan, cost: float) -> list[Task]:
    graph, memory = loaded_graph(env), env.resources.work.free
    arcs = 2 * env.graph.num_edges  # on every engine, whatever its graph has of them
    some = min(arcs // _LEAST_ARCS, _PER_WORKER * env.engine.workers)
    most = pieces_of(env, cost if roots.growth < _GROWTH else cost * (_STEPS_PER_TASK / _GROWN_STEPS))
    pieces = min(most, max(arcs // _ARCS_PER_TASK, int(cost / _LEAST_STEPS), some, 1))
    if roots.arcs and env.resources.on_device and graph.pages is None:
        pieces = min(pieces, max(arcs // roots.arcs, 1))
    if graph.pages is not None:
        # Every range brings lists anew: the fewer, the better.
        if reads_known(env):
            pieces = 1 if roots.arcs >= ALL_ARCS else min(pieces, max(int(cost / _STREAMED_STEPS), _LEAST_TASKS))
        elif roots.streams and graph.pages.staged:
            pieces = min(pieces, max(int(cost / _STEPS_PER_TASK), _LEAST_TASKS))
        else:
            pieces = max(pieces, -(-arcs * _READ_BYTES // (memory // _READS_SHARE)))
    return equal_tasks(arcs, pieces)


def _vertex_tasks(env: Environment, tasks: Sequence[Task]) -> list[Task]:
    """Cut the vertices so that each task has about as many arcs as the others."""
    ends = np.searchsorted(env.graph.indptr, [task.last for task in tasks], side="left")
    cuts = sorted({0, *ends.tolist(), env.graph.num_vertices})  # np.unique imports numpy.ma
    arcs = env.graph.indptr[cuts].tolist()
    return [Task(*ends, b - a) for ends, (a, b) in zip(pairwise(cuts), pairwise(arcs), strict=True)]


def _weighed_tasks(env: Environment, uniform: Sequence[Task], growth: int) -> list[Task]:
    """Cut the arcs into tasks of about equal work, most of which is at arcs between hubs; sizes are estimates of it."""
    arcs, capacity = uniform[-1].last, env.resources.host.free // _WEIGHTS_SHARE
    size = max(_BIN, -(-arcs * _BIN_BYTES // max(capacity, 1)))
    step = max(min(_ARCS_AT_ONCE, capacity // _ARC_BYTES) // size, 1) * size
    with env.resources.host.reserve(
        min(arcs, step) * _ARC_BYTES + -(-arcs // size) * _BIN_BYTES, "the weights of arcs"
    ):
        weights = np.concatenate([_weights(env, growth, at, min(at + step, arcs), size) for at in range(0, arcs, step)])
        ends = np.cumsum(weights, out=weights)
        shares = np.linspace(0, ends[-1], len(uniform) + 1)[1:-1]
        heavy = np.minimum((np.searchsorted(ends, shares) + 1) * size, arcs)
        cuts = np.unique(np.concatenate([[0], heavy, [task.last for task in uniform]])).astype(np.int64)
        # In thousands, so that progress has whole numbers.
        done = np.concatenate([[0.0], ends[(cuts[1:] - 1) // size]]) / ends[-1] * 1000 * len(uniform)
    places = done.astype(np.int64).tolist()
    bounds = cuts.tolist()
    return [Task(bounds[i], bounds[i + 1], places[i + 1] - places[i]) for i in range(len(bounds) - 1)]


def _weights(env: Environment, growth: int, first: int, last: int, size: int) -> NDArray[np.float64]:
    """Weigh bins of `size` arcs: by a power of the number of continuations of each arc, roughly."""
    indptr, indices = env.graph.indptr, env.graph.indices
    begin = int(np.searchsorted(indptr, first, side="right")) - 1
    end = int(np.searchsorted(indptr, last, side="left"))
    bounds = np.clip(indptr[begin : end + 1], first, last)
    owners = np.repeat(np.arange(begin, end), bounds[1:] - bounds[:-1])
    seconds = np.asarray(indices[first:last]).astype(np.int64)
    continuations = indptr[owners + 1] - np.arange(first, last) + indptr[seconds + 1] - indptr[seconds]
    weights = np.where(seconds > owners, continuations.astype(np.float64) ** growth, 1.0)
    found: NDArray[np.float64] = np.add.reduceat(weights, np.arange(0, last - first, size))
    return found
