"""Runs of edges of one type, and of rows of one pattern."""

import numpy as np

from longwall.kernels.jit.bisect import stands_in
from longwall.kernels.jit.compile import compiled


@compiled
def first_run(runs, types, targets, u, label):
    """Return the first run of a vertex to others of a label, or the run that would follow it."""
    begin, end = runs[u], runs[u + 1]
    while begin < end:
        middle = (begin + end) >> 1
        if targets[types[middle]] < label:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled
def edge_type(runs, types, begins, indices, targets, u, vertex, label):
    """Return the type of the edge from u to a vertex of a label, -1 if they are not adjacent."""
    run = first_run(runs, types, targets, u, label)
    while run < runs[u + 1] and targets[types[run]] == label:
        if stands_in(indices[begins[run] : begins[run + 1]], vertex):
            return types[run]
        run += 1
    return np.int32(-1)


@compiled
def end_of_pattern(rows, begin):
    """Return the first row behind `begin` that belongs to another pattern."""
    end = begin
    while end < rows.shape[1] and rows[0, end] == rows[0, begin]:
        end += 1
    return end
