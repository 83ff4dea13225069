"""Cut the arcs into tasks of about equal work for an enumeration of motifs: most of it is at arcs between hubs."""

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.task_ranges import arc_tasks

_BIN = 16  # arcs that are weighed together
_ARCS_AT_ONCE = 1 << 18
_ARC_BYTES = 64  # of the arrays that weigh one


def motif_ranges(env: Environment, k: int, cost: float) -> list[Task]:
    """Tasks over the arcs for motifs of `k` vertices; their sizes are estimates of their work."""
    uniform = arc_tasks(env, cost)
    if len(uniform) == 1:
        return uniform
    arcs = uniform[-1].last
    size = min(arcs, _ARCS_AT_ONCE) * _ARC_BYTES + -(-arcs // _BIN) * 16
    with env.resources.host.reserve(size, "the weights of arcs"):
        weights = np.concatenate(
            [_weights(env, k, at, min(at + _ARCS_AT_ONCE, arcs)) for at in range(0, arcs, _ARCS_AT_ONCE)]
        )
        ends = np.cumsum(weights, out=weights)
        shares = np.linspace(0, ends[-1], len(uniform) + 1)[1:-1]
        heavy = np.minimum((np.searchsorted(ends, shares) + 1) * _BIN, arcs)
        cuts = np.unique(np.concatenate([[0], heavy, [task.last for task in uniform]])).astype(np.int64)
        # In thousands, so that progress has whole numbers.
        done = np.concatenate([[0.0], ends[(cuts[1:] - 1) // _BIN]]) / ends[-1] * 1000 * len(uniform)
    places = done.astype(np.int64).tolist()
    bounds = cuts.tolist()
    return [Task(bounds[i], bounds[i + 1], places[i + 1] - places[i]) for i in range(len(bounds) - 1)]


def _weights(env: Environment, k: int, first: int, last: int) -> NDArray[np.float64]:
    """Weigh bins of arcs: by the number of continuations of each arc, roughly."""
    indptr, indices = env.graph.indptr, env.graph.indices
    begin = int(np.searchsorted(indptr, first, side="right")) - 1
    end = int(np.searchsorted(indptr, last, side="left"))
    bounds = np.clip(indptr[begin : end + 1], first, last)
    owners = np.repeat(np.arange(begin, end), bounds[1:] - bounds[:-1])
    seconds = np.asarray(indices[first:last]).astype(np.int64)
    continuations = indptr[owners + 1] - np.arange(first, last) + indptr[seconds + 1] - indptr[seconds]
    weights = np.where(seconds > owners, continuations.astype(np.float64) ** (k - 2), 1.0)
    found: NDArray[np.float64] = np.add.reduceat(weights, np.arange(0, last - first, _BIN))
    return found
